package machine

import "time"

// A Status is the status of a connection (U16, RFC 908 p.23, p.24).
type Status struct {
	State State
	Err   error // why it has ended; nil if it has not, or was closed by Close

	// Unacknowledged is how many messages of Send no acknowledgement names, cumulative or
	// extended, including those not sent yet. When it is 0, the peer has accepted all, and Close
	// loses nothing; the peer's program may not have read all yet. After the end of a
	// connection, it is how many may be lost.
	Unacknowledged int
	// Queued is how many messages Receive has to return.
	Queued int
	// Held is how many messages wait for predecessors.
	Held int
	// Short says, once the connection is no longer open, that something that the peer has sent is missing:
	// before what has arrived, or before the number of an RST. If the peer has reset the connection and
	// Short is false, all that the peer is known to have sent has arrived.
	Short bool

	RecvMax int // the largest segment that is accepted, with 20 bytes for IP
	SendMax int // the largest segment that may be sent; 0 if the connection is not open
	Room    int // the longest message that Send accepts; 0 if the connection is not open

	Window     int // segments that may be unacknowledged, as the peer says
	Congestion int // segments that may be in flight, as the controller says
	InFlight   int // segments that were sent, and that no acknowledgement names

	RTT       time.Duration // smoothed round-trip time; 0: there is no sample yet
	Deviation time.Duration // of the round-trip time
	Timeout   time.Duration // of retransmission, with its back-off

	Stats Stats
}

// Stats counts events of a connection.
type Stats struct {
	Sent       uint32 `json:"sent"`       // segments with a number: data, NUL, SYN; sent again counts again
	Resent     uint32 `json:"resent"`     // of them: sent again
	Acks       uint32 `json:"acks"`       // acknowledgements sent without data
	Probes     uint32 `json:"probes"`     // NULs that asked whether the peer is there
	Answered   uint32 `json:"answered"`   // of them: acknowledged
	Timeouts   uint32 `json:"timeouts"`   // segments whose timer has expired
	Gaps       uint32 `json:"gaps"`       // segments that count as lost, as later ones were acknowledged
	Received   uint32 `json:"received"`   // segments of the right form
	Messages   uint32 `json:"messages"`   // accepted
	Duplicates uint32 `json:"duplicates"` // segments that had been accepted before
	Outside    uint32 `json:"outside"`    // segments outside of the window
	Unread     uint32 `json:"unread"`     // segments with data that found no slot
}

// Status returns the status of the connection, in any state.
func (c *Conn) Status() Status {
	s := Status{
		State: c.state, Err: c.err,
		Unacknowledged: int(c.unacked), Queued: c.queue.n, Held: int(c.nHeld), Short: c.state != Open && c.short(),
		RecvMax: c.p.MaxSegment,
		RTT:     c.rtt.smoothed, Deviation: c.rtt.deviation, Timeout: c.rtt.backedOff(c.backoff, &c.m.cfg),
		Stats: c.stats,
	}
	if c.state == Open {
		s.SendMax, s.Room = c.sendMax(), c.MaxMessage()
		s.Window, s.Congestion, s.InFlight = int(c.peer.window), c.control.Window(), c.inFlight()
	}
	return s
}
