package machine

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/wire"
)

// A script is bytes that tell what happens; at its end, there are zeros.
type script struct{ bytes []byte }

func (s *script) next() byte {
	if len(s.bytes) == 0 {
		return 0
	}
	b := s.bytes[0]
	s.bytes = s.bytes[1:]
	return b
}

func (s *script) pick(of ...uint32) uint32 { return of[int(s.next())%len(of)] }

// FuzzMachine has hostile peers say what they like, while programs open, send, read and close. Whatever
// happens, the machine does not panic, and what it holds is bounded.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 3, 0, 0, 16, 5, 3, 1, 2, 0, 1, 2, 4, 4, 5, 6, 7, 8, 9, 10})
	f.Add([]byte{1, 1, 0, 1, 1, 128, 1, 1, 1, 64, 0, 1, 4, 1, 64, 1, 2, 5, 5, 3, 3, 3, 2, 2, 2, 9})
	f.Add([]byte{17, 0, 0, 1, 128, 2, 3, 4, 0, 64, 1, 1, 0, 64, 2, 2, 6, 6, 6, 6, 7, 8})
	f.Add([]byte{5, 12, 12, 0, 64, 1, 1, 12, 0, 96, 3, 3, 0, 72, 1, 1, 4, 20, 4, 200, 5, 1, 0, 16, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		x := &script{b}
		w := worlds[int(x.next())%len(worlds)]
		defer func() {
			if failure, ok := recover().(simFailure); ok {
				t.Fatal(failure)
			}
		}()
		h := newHostile(&w, x)
		for len(x.bytes) > 0 {
			h.act(x)
			h.verify()
		}
	})
}

// A hostile is an endpoint whose peers are hostile.
type hostile struct {
	*sim
	n    *simNode
	last *simConn
}

func newHostile(w *world, x *script) *hostile {
	w.sink = false
	h := &hostile{sim: newSim(w, uint64(x.next()))}
	h.n = h.nodes[0]
	h.open(h.n, simClient, simListen)
	h.connect(0)
	return h
}

// connect has an honest peer open a connection.
func (h *hostile) connect(port uint16) {
	syn := wire.Header{Version: h.version, Flags: wire.SYN, Source: 40 + port, Dest: simListen, Seq: 200, MaxOutstanding: 8, MaxSegment: 128}
	h.n.Receive(h.now, pathTo(1), syn.AppendTo(nil, nil, nil))
	h.events(h.n)
	var iss uint32
	h.pull(func(s *wire.Header) {
		if s.Flags == wire.SYN|wire.ACK {
			iss = s.Seq
		}
	})
	ack := wire.Header{Version: h.version, Flags: wire.ACK, Source: 40 + port, Dest: simListen, Seq: 201, Ack: iss}
	h.n.Receive(h.now, pathTo(1), ack.AppendTo(nil, nil, nil))
	h.verify()
	h.last = h.some(h.n)
}

// pull takes what is sent.
func (h *hostile) pull(f func(*wire.Header)) {
	for i := 0; ; i++ {
		b, _, ok := h.n.Pull(h.now, h.buf)
		if !ok {
			return
		}
		var s wire.Header
		if _, err := s.Parse(b, nil); err != nil || i > 10_000 {
			h.fail("segment %d that is sent: %v", i, err)
		}
		f(&s)
	}
}

func (h *hostile) act(x *script) {
	n := h.n
	if k := int(x.next()); len(n.conns) > 0 {
		h.last = n.conns[k%len(n.conns)]
	}
	switch x.next() % 14 {
	case 0, 1, 2:
		h.segment(x)
	case 3:
		h.pull(func(*wire.Header) {})
	case 4:
		h.now += Time(x.next()) * 10 * time.Millisecond
		n.Advance(h.now)
		if at, ok := n.Deadline(); ok && at <= h.now {
			h.fail("the deadline %v is over at %v", at, h.now)
		}
	case 5:
		h.send(h.last)
	case 6:
		if msg, err := h.last.Receive(); err == nil {
			n.Free(msg.Data)
		}
	case 7:
		h.close(h.last)
	case 8:
		port := uint16(x.next()) % 4
		if _, err := n.Open(h.now, OpenConfig{Path: pathTo(1), Version: h.version, Port: simClient * port, Remote: simActive + port, Params: h.paramsOf(0)}); err != nil && !errors.Is(err, ErrAlreadyOpen) && !errors.Is(err, ErrResources) {
			h.fail("Open: %v", err)
		}
	case 9:
		n.listener.Accept()
	case 10:
		if err := n.listener.Close(h.now); err != nil {
			h.fail("Close: %v", err)
		}
		h.listen(n)
	case 11:
		h.last.Report(h.now, congestion.Report{Window: int(x.next()), Drops: int(x.next())})
		h.last.SetSendLimit(int(x.next()) * 300)
	case 12:
		h.connect(uint16(x.next()))
	case 13: // bytes
		k := min(int(x.next()), len(x.bytes))
		n.Receive(h.now, Path{Remote: netip.AddrPortFrom(netip.IPv6Unspecified(), 0)}, x.bytes[:k])
		x.bytes = x.bytes[k:]
	}
}

// segment has a peer say something of which anything may be wrong, with numbers near those that matter.
func (h *hostile) segment(x *script) {
	c := h.last
	s := wire.Header{
		Version: h.version, Source: c.name.Remote, Dest: c.name.Local, Flags: wire.Flags(x.next() & 0xf8),
		Seq: c.Conn.cur + uint32(int8(x.next())), Ack: c.una - 1 + uint32(int8(x.next())),
		MaxOutstanding: uint16(x.pick(0, 1, 8, 65_535)), MaxSegment: uint16(x.pick(0, 38, 39, 60, 600, 65_535)), Sequenced: x.next()%2 > 0,
	}
	switch x.next() % 16 {
	case 0:
		s.Dest = simListen
	case 1:
		s.Source += uint16(x.next())
	case 2:
		s.Seq, s.Ack = x.pick(0, 1<<31, 1<<32-1), x.pick(0, 1<<31, 1<<32-1)
	}
	for range x.next() % 8 {
		s.EACKs = append(s.EACKs, c.una+uint32(int8(x.next())))
	}
	n := int(x.pick(0, 0, 1, 8, 20, 60, 600))
	h.n.Receive(h.now, pathTo(1), s.AppendTo(nil, make([]byte, n), nil))
}

// verify verifies what holds whatever peers do.
func (h *hostile) verify() {
	n := h.n
	for _, e := range n.Events() {
		if e.Conn != nil {
			h.of(n, e.Conn)
		}
	}
	if n.raw.Len() > maxAnswers+2*len(h.conns) || len(n.timers) > n.Conns() {
		h.fail("%d answers wait, there are %d timers for %d connections", n.raw.Len(), len(n.timers), n.Conns())
	}
	h.check(n)
	if len(n.conns) > 50 { // those that are over are forgotten
		rest := n.conns[:0]
		for _, c := range n.conns {
			if c.state != Closed || c.queue.n > 0 {
				rest = append(rest, c)
			}
		}
		n.conns = rest
	}
}
