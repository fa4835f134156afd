package datagram

import "time"

const (
	// windowDatagrams and windowBytes are what may be in flight to a process that
	// answers: a socket's buffer of usual size holds it.
	windowDatagrams = 64
	windowBytes     = 128 << 10
	// patience is how long a process that does not answer holds up what is for it.
	patience = 250 * time.Millisecond
)

// A Flow is how much may be in flight to one process. Messages stay in the send queue while
// there is no room, as they do on a lossless Ethernet while the link is paused. A process that
// has not answered for some time is sent to without regard for that, until it answers: what
// it can't take is lost then. The zero Flow has sent nothing.
type Flow struct {
	next, acked uint32 // the last that was sent, and that is known to have come
	asked       uint32 // the last that asked
	deaf        bool
	waiting     bool
	since       time.Duration // when the wait has begun
	sent        uint32        // bytes, modulo 2^32
	at          [windowDatagrams]uint32
}

// Take returns the sequence number for one more datagram of so many bytes, and whether it is to
// ask for an Ack, or reports false: there is no room for it at this time.
func (f *Flow) Take(size int, now time.Duration) (sequence uint32, ask, ok bool) {
	if !f.deaf && f.full(uint32(size)) {
		if !f.waiting {
			f.waiting, f.since = true, now
		}
		return 0, false, false
	}
	f.waiting = false
	f.next++
	f.sent += uint32(size)
	f.at[f.next%windowDatagrams] = f.sent
	if f.next-f.asked >= windowDatagrams/2 || f.next-f.acked >= windowDatagrams || f.sent-f.at[f.asked%windowDatagrams] >= windowBytes/2 {
		f.asked, ask = f.next, true
	}
	return f.next, ask, true
}

// full reports whether there is no room. One datagram may always be in flight.
func (f *Flow) full(size uint32) bool {
	if f.next == f.acked {
		return false
	}
	return f.next-f.acked >= windowDatagrams || f.sent-f.at[f.acked%windowDatagrams]+size > windowBytes
}

// Ack notes that a datagram has come, with all before it that have not been lost, and reports whether it was an answer to
// something that is in flight.
func (f *Flow) Ack(sequence uint32) bool {
	if d := f.next - sequence; d >= windowDatagrams || sequence-f.acked-1 >= f.next-f.acked {
		return false
	}
	f.acked, f.deaf, f.waiting = sequence, false, false
	return true
}

// Wait reports how much longer something waits for room, or false if nothing does. If the
// process has not answered for too long, it is not waited for any more.
func (f *Flow) Wait(now time.Duration) (left time.Duration, waits bool) {
	if !f.waiting {
		return 0, false
	}
	if left = f.since + patience - now; left > 0 {
		return left, true
	}
	f.deaf, f.waiting = true, false
	return 0, false
}

// Under returns how many datagrams are in flight, as far as is known.
func (f *Flow) Under() uint32 { return f.next - f.acked }

// Deaf reports whether the process does not answer.
func (f *Flow) Deaf() bool { return f.deaf }
