package machine

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
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

func (s *script) pick(of ...uint16) uint16 { return of[int(s.next())%len(of)] }

// FuzzMachine has a hostile peer say what it likes over each carrier, while programs send and
// read. Whatever happens, the machine does not panic, and what it holds is bounded.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 4, 0, 0, 0, 0, 2, 40, 3, 1, 0, 1, 5})
	f.Add([]byte{2, 8, 7, 0, 1, 0, 4, 0, 0, 0, 0, 2, 200, 5, 1, 1, 1, 8, 9, 4, 0})
	f.Add([]byte{5, 8, 7, 8, 8, 2, 9, 2, 9, 0, 5, 1, 2, 3, 7, 3, 6, 1, 4, 255, 1, 0, 8, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
		x := &script{b}
		w := worlds[int(x.next())%len(worlds)]
		h := newHostile(t, &w, x)
		defer func() {
			if failure, ok := recover().(simFailure); ok {
				t.Fatal(failure)
			}
		}()
		for len(x.bytes) > 0 {
			h.act(x)
			h.do()
			h.verify()
		}
	})
}

// A hostile is a node, and a peer that is hostile.
type hostile struct {
	t      *testing.T
	w      *world
	m      *Machine
	s      *simNode
	socket *Socket
	p      *Path
	link   Link
	now    Time
	next   uint64 // number of the peer's next message
	sends  int
	ops    []*Operation
	links  []Link // of those operations
	part   wire.Header
	left   int // of a message of which fragments have been sent
}

func newHostile(t *testing.T, w *world, x *script) *hostile {
	cfg := Config{
		Addr: here, Generation: 1, Carriers: []Carrier{w.carrier},
		SendBuffer: 20_000, ReceiveBuffer: 4000, PeerMemory: 20_000, MaxPeers: 4,
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &hostile{t: t, w: w, m: m, next: 1}
	h.s = &simNode{sim: &sim{world: *w}, cfg: m.cfg, Machine: m}
	h.s.sim.nodes = []*simNode{h.s}
	h.bind()
	h.connect(x)
	return h
}

func (h *hostile) bind() {
	s, err := h.m.Bind(4000, 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	h.socket = s
}

// connect has the peer connect, and says what private data may.
func (h *hostile) connect(x *script) {
	p, link, err := h.m.Request(h.now, Request{Key: Key{Peer: there}, Port: int(int8(x.next()))})
	if err != nil {
		return
	}
	h.p, h.link, h.left = p, link, 0
	p.Up(h.now, link, Params{
		Ack: uint64(x.next()), Granted: h.w.credits, Credit: int(x.next()) * h.w.credits, Generation: uint32(x.next() % 4),
	})
}

func (h *hostile) do() {
	for todo := h.m.Effects(); todo != nil; todo = h.m.Effects() {
		for _, e := range append([]Effect(nil), todo...) {
			switch e.Kind {
			case Dial:
				h.p, h.link, h.left = e.Path, e.Link, 0
				e.Path.Up(h.now, e.Link, Params{Granted: h.w.credits, Credit: h.w.credits})
			case Hangup:
				e.Path.Down(h.now, e.Link, nil)
			case Transmit:
				_, link := e.Path.State()
				var s Segment
				for n := 0; n < 1000 && e.Path.Pull(h.now, link, &s); n++ {
					if s.Op != nil {
						h.ops, h.links = append(h.ops, s.Op), append(h.links, link)
					}
				}
			}
		}
	}
}

func (h *hostile) act(x *script) {
	switch x.next() % 10 {
	case 0:
		h.segment(x)
	case 1:
		h.connect(x)
	case 2:
		h.send(x)
	case 3:
		h.socket.Receive(h.now)
	case 4:
		h.now += Time(x.next()) * 10 * time.Millisecond
		h.m.Advance(h.now)
		if at, ok := h.m.Deadline(); ok && at <= h.now {
			h.t.Fatalf("the deadline %v is over at %v", at, h.now)
		}
	case 5:
		h.socket.Hasten(h.now)
	case 6:
		h.socket.Close(h.now)
		h.bind()
	case 7:
		h.tell(x)
	case 8: // a probe or a pong with a generation and a number of paths
		e := wire.Extensions{Has: 1<<wire.ExtGeneration | 1<<wire.ExtNPaths, Generation: uint32(x.next() % 8), Paths: uint16(x.next())}
		raw, err := e.Encode()
		if err != nil {
			h.t.Fatal(err)
		}
		hd := wire.Header{Sequence: h.next, SourcePort: wire.ProbePort, Extensions: raw}
		if x.next()%2 > 0 {
			hd.SourcePort, hd.DestPort = wire.PingPort, wire.ProbePort
		}
		h.next++
		h.offer(&hd, 0)
	case 9: // an honest message
		hd := wire.Header{Sequence: h.next, Len: uint32(x.next()), SourcePort: 5000, DestPort: 4000}
		h.next++
		h.offer(&hd, int(hd.Len))
	}
}

// segment offers a segment of which anything may be wrong.
func (h *hostile) segment(x *script) {
	if h.left > 0 && x.next()%4 > 0 { // the next fragment
		hd := h.part
		hd.Ack, hd.Credit = uint64(x.next()), x.next()
		h.offer(&hd, min(h.left, max(1, h.w.carrier.Fragment)))
		return
	}
	hd := wire.Header{
		Sequence: h.next + uint64(int64(int8(x.next()))), Ack: uint64(int64(int8(x.next()))), Len: uint32(x.pick(0, 1, 255, 1024, 1025, 5000, wire.MapLen, 16_000)),
		SourcePort: x.pick(0, 1, 5000, 4000), DestPort: x.pick(0, 1, 4000, 4001), Flags: wire.Flags(x.next() % 16), Credit: x.next(),
	}
	if x.next()%4 == 0 {
		binary.BigEndian.PutUint64(hd.Extensions[:], uint64(x.next())<<56|uint64(x.next())<<40|uint64(x.next())<<32|uint64(x.next()))
	}
	n := int(hd.Len)
	if f := h.w.carrier.Fragment; f > 0 {
		n = min(n, f)
	}
	if x.next()%8 == 0 {
		n++
	}
	h.next = max(h.next, hd.Sequence+1)
	h.offer(&hd, n)
	h.part, h.left = hd, int(hd.Len)-n
}

func (h *hostile) offer(hd *wire.Header, n int) {
	if h.p == nil {
		return
	}
	buf, verdict := h.p.Begin(h.now, h.link, hd, n)
	if verdict != Take {
		return
	}
	if buf != nil && len(buf) != n {
		h.t.Fatalf("the buffer for %d bytes has %d", n, len(buf))
	}
	h.p.Fill(h.now, h.link, n)
	h.left -= n
}

func (h *hostile) send(x *script) {
	o := Options{IgnoreCongestion: x.next()%2 > 0}
	if kind := int(x.next() % 8); kind < 3 && h.w.carrier.Operations {
		o.Op = anOperation(kind)
	}
	to := Endpoint{there, x.pick(5000, 0, 4000)}
	_, err := h.socket.Send(h.now, to, make([]byte, int(x.next())*16), o)
	switch {
	case err == nil:
		h.sends++
	case !errors.Is(err, ErrCongested) && !errors.Is(err, ErrBufferFull):
		h.t.Fatal(err)
	}
}

// tell has the carrier say something, which may be of an old link.
func (h *hostile) tell(x *script) {
	if h.p == nil {
		return
	}
	link := h.link - Link(x.next()%2)
	switch x.next() % 5 {
	case 0:
		h.p.Down(h.now, link, nil)
	case 1:
		h.p.Acked(h.now, link, uint64(x.next()))
	case 2:
		h.p.Reposted(h.now, link, int(x.next()))
	case 3:
		h.p.Malformed(h.now, link, nil)
	case 4:
		if len(h.ops) > 0 {
			var err error
			if x.next()%2 > 0 {
				err = ErrOperation
			}
			i := int(x.next()) % len(h.ops)
			h.p.Done(h.now, h.links[i], h.ops[i], err)
		}
	}
}

// verify checks what holds always, and that nothing grows with what the peer says.
func (h *hostile) verify() {
	h.s.sim.check()
	if len(h.m.conns) > h.m.cfg.MaxPeers {
		h.t.Fatalf("%d connections", len(h.m.conns))
	}
	for _, c := range h.m.order {
		if len(c.paths) > MaxPaths || len(c.former) > maxFormer {
			h.t.Fatalf("%d paths, %d former generations", len(c.paths), len(c.former))
		}
		for _, p := range c.paths {
			if n := p.queue.len() + p.unacked.len() + p.ready.len(); n > h.sends+2*maxPongs+8 {
				h.t.Fatalf("path %d has %d messages; %d were sent", p.index, n, h.sends)
			}
		}
	}
	if messages, bytes := h.socket.Queued(); bytes > 20_000 || messages > 20_000/cost(0)+1 {
		h.t.Fatalf("%d messages of %d bytes are unread", messages, bytes)
	}
}
