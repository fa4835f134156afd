package capture

import (
	"encoding/binary"
	"net/netip"
)

// ackEvery is how many bytes one side sends before the recording has the
// other acknowledge them.
const ackEvery = 1 << 20

// A Stream is one connection in a recording, seen from the local side. Its
// methods do nothing once the Writer has failed or is closed. It is safe for
// concurrent use.
type Stream struct {
	w    *Writer
	ends [2]half // local, remote; guarded by w.mu, as is what follows
	key  tuple
	over bool // nothing more is recorded
}

// The two ends of a Stream.
const (
	local  = 0
	remote = 1
)

func end(byUs bool) int {
	if byUs {
		return local
	}
	return remote
}

// Stream begins to record a connection between two endpoints; initiator tells
// that the local one opened it. It writes a TCP handshake.
//
// An address that is not valid, or that both ends share, is replaced by a
// synthetic one. If the recording already has a live connection between the
// two endpoints, the local port is changed.
func (w *Writer) Stream(localAddr, remoteAddr netip.AddrPort, initiator bool) *Stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	localAddr, remoteAddr = w.distinct(localAddr, remoteAddr)
	s := &Stream{w: w, key: newTuple(localAddr, remoteAddr)}
	w.inUse[s.key] = struct{}{}
	// The initial sequence numbers differ from connection to connection, so
	// that one that uses an old one's ports is seen as new.
	isn := w.streams * 0x9E3779B1
	s.ends[local].init(localAddr, remoteAddr, isn)
	s.ends[remote].init(remoteAddr, localAddr, isn+1<<31)

	opener := end(initiator)
	s.control(opener, flagSYN)
	s.control(1-opener, flagSYN|flagACK)
	s.control(opener, flagACK)
	return s
}

// distinct makes endpoints of which no other live connection is recorded.
func (w *Writer) distinct(l, r netip.AddrPort) (_, _ netip.AddrPort) {
	if l.IsValid() {
		l = plain(l)
	} else {
		l = synthetic("local")
	}
	if r.IsValid() {
		r = plain(r)
	} else {
		r = synthetic("remote")
	}
	if l == r {
		r = synthetic("peer of " + l.String())
	}
	for range 1 << 16 {
		if _, taken := w.inUse[newTuple(l, r)]; !taken {
			break
		}
		l = netip.AddrPortFrom(l.Addr(), l.Port()+1)
	}
	return l, r
}

// Sent records that the local side sends the pieces, joined: one TCP segment,
// or several if an IP packet can't hold them. It is best called before the
// network gets the bytes: afterwards, what they cause may be recorded first.
func (s *Stream) Sent(pieces ...[]byte) { s.data(local, pieces) }

// Received records that the pieces came from the remote side.
func (s *Stream) Received(pieces ...[]byte) { s.data(remote, pieces) }

func (s *Stream) data(from int, pieces [][]byte) {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	h := &s.ends[from]
	if n == 0 || s.over || h.closed || s.w.stopped() {
		return
	}
	if h.seq-s.ends[1-from].acked >= ackEvery {
		s.control(1-from, flagACK)
	}
	// i and skip tell where in the pieces the next packet begins.
	i, skip := 0, 0
	for n > 0 {
		room := min(n, h.maxPayload())
		b := h.appendHeaders(s.w.buf[:0])
		for left := room; left > 0; {
			p := pieces[i][skip:]
			p = p[:min(len(p), left)]
			b = append(b, p...)
			left -= len(p)
			if skip += len(p); skip == len(pieces[i]) {
				i, skip = i+1, 0
			}
		}
		flags := byte(flagACK)
		if n -= room; n == 0 {
			flags |= flagPSH
		}
		s.w.buf = b
		s.emit(from, 0, room, flags)
	}
}

// Close records that one side, the local one if byUs, closed its direction
// (FIN). What it still sends is not recorded.
func (s *Stream) Close(byUs bool) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	from := end(byUs)
	if s.over || s.ends[from].closed {
		return
	}
	s.control(from, flagFIN|flagACK)
	s.control(1-from, flagACK)
	s.ends[from].closed = true
	if s.ends[1-from].closed {
		s.finish()
	}
}

// Reset records that one side, the local one if byUs, aborted the connection
// (RST). Nothing more is recorded of it.
func (s *Stream) Reset(byUs bool) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.over {
		return
	}
	s.control(end(byUs), flagRST|flagACK)
	s.finish()
}

// End reports that no more will be recorded of the connection, however it ended:
// its endpoints may be used again.
func (s *Stream) End() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.over {
		s.finish()
	}
}

func (s *Stream) finish() {
	s.over = true
	delete(s.w.inUse, s.key)
	_ = s.w.flush() // the error is kept
}

// control writes a packet without payload.
func (s *Stream) control(from int, flags byte) {
	if s.w.stopped() {
		return
	}
	h := &s.ends[from]
	b := h.appendHeaders(s.w.buf[:0])
	options := 0
	if flags&flagSYN != 0 {
		options = 8
		b = append(b, 2, 4) // maximum segment size
		b = binary.BigEndian.AppendUint16(b, uint16(h.maxPayload()))
		b = append(b, 3, 3, windowScale, 1) // window scale, no-operation
	}
	s.w.buf = b
	s.emit(from, options, 0, flags)
}

// emit completes the packet in w.buf, which carries n bytes of payload, and
// writes it.
func (s *Stream) emit(from, options, n int, flags byte) {
	h, peer := &s.ends[from], &s.ends[1-from]
	ack := uint32(0)
	if flags&flagACK != 0 {
		ack = peer.seq
		h.acked = ack
	}
	h.finish(s.w.buf, options, h.seq, ack, flags)
	h.seq += uint32(n)
	if flags&(flagSYN|flagFIN) != 0 {
		h.seq++
	}
	s.w.write()
}
