package machine

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// An opSim is two nodes whose sockets send each other messages with operations over links that are
// cut at any time. Each end of a link may learn of that later than the other, and works on with what it has
// got until then.
type opSim struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	now   Time
	nodes [2]*opNode
	alive bool // the link carries what is sent
}

type opNode struct {
	s       *opSim
	m       *Machine
	p       *Path
	link    Link
	in      []opItem // on its way to this node
	dialled []Effect
	pairs   []*opPair
}

// An opPair is a socket that sends to the one with the same port of the other node.
type opPair struct {
	socket    *Socket
	sent      uint32 // messages
	delivered uint32 // messages of the other side, the last
	lost      map[uint32]bool
	ids       map[uint64]uint32
	works     []*opWork

	// Memory of this side, which the other side writes, and adds to.
	cell    uint32
	counter int
}

// An opWork is an operation.
type opWork struct {
	kind   string
	pair   int
	number uint32 // of its message; what is written
	silent bool

	applied, settled int
	answered         bool
	err              error
}

// An opItem is a segment, an operation, or the answer to one.
type opItem struct {
	seg    Segment
	answer bool
}

const opPairs = 3

func newOpSim(t *testing.T, seed uint64) *opSim {
	s := &opSim{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 9))}
	for i := range s.nodes {
		n := &opNode{s: s}
		carrier := Carrier{Name: "op", Fragment: 0, Acks: true, Operations: true, Paths: 1, Introduces: true}
		m, err := New(Config{Addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), Generation: 1 + uint32(i), Carriers: []Carrier{carrier}, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		n.m = m
		for k := range uint16(opPairs) {
			socket, err := m.Bind(1000+k, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			n.pairs = append(n.pairs, &opPair{socket: socket, lost: map[uint32]bool{}, ids: map[uint64]uint32{}})
		}
		s.nodes[i] = n
	}
	return s
}

func (s *opSim) other(n *opNode) *opNode {
	if n == s.nodes[0] {
		return s.nodes[1]
	}
	return s.nodes[0]
}

func (s *opSim) fail(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

func (n *opNode) up() bool {
	if n.p == nil {
		return false
	}
	state, link := n.p.State()
	return state == Up && link == n.link
}

func (n *opNode) effects() {
	for todo := n.m.Effects(); todo != nil; todo = n.m.Effects() {
		for _, e := range append([]Effect(nil), todo...) {
			switch e.Kind {
			case Dial:
				n.dialled = append(n.dialled, e)
			case Settled:
				w := e.Op.Arg.(*opWork)
				w.settled++
				w.err = e.Err
			case Report:
				if e.Event.Kind == MessageLost {
					n.lost(&e.Event)
				}
				if e.Event.Kind == PeerViolation {
					n.s.fail("%v", e.Event.Err)
				}
			case Hangup, Transmit, Resume, Readable, Writable, Used:
			}
		}
	}
}

func (n *opNode) lost(e *Event) {
	for _, p := range n.pairs {
		if p.socket == e.Socket {
			p.lost[p.ids[e.ID]] = true
		}
	}
}

func (n *opNode) send() {
	i := n.s.rng.IntN(opPairs)
	p := n.pairs[i]
	w := &opWork{kind: []string{"", "write", "read", "add"}[n.s.rng.IntN(4)], pair: i, number: p.sent + 1}
	w.silent = w.kind != "" && n.s.rng.IntN(5) == 0
	var o Options
	if w.kind != "" {
		o.Op = &Operation{Arg: w, Answered: w.kind != "write", Once: w.kind == "add", Silent: w.silent}
	}
	data := binary.BigEndian.AppendUint32(nil, w.number)
	to := Endpoint{n.s.other(n).m.cfg.Addr, p.socket.Port()}
	id, err := p.socket.Send(n.s.now, to, data, o)
	if err != nil {
		return // full
	}
	p.sent++
	p.ids[id] = w.number
	if w.kind != "" {
		p.works = append(p.works, w)
	}
	if w.silent {
		p.lost[w.number] = true // nobody gets it
	}
}

// pull takes some segments, and puts them on their way.
func (n *opNode) pull() {
	for range 1 + n.s.rng.IntN(4) {
		var seg Segment
		if !n.up() || !n.p.Pull(n.s.now, n.link, &seg) {
			return
		}
		if w := n.waiting(&seg); w != nil {
			n.s.fail("message %d goes before its %s is answered", w.number, w.kind)
		}
		seg.Data = append([]byte(nil), seg.Data...)
		if n.s.alive {
			o := n.s.other(n)
			o.in = append(o.in, opItem{seg: seg})
		}
	}
}

// waiting returns the operation that the message of a segment should wait for.
func (n *opNode) waiting(seg *Segment) *opWork {
	i := int(seg.Header.SourcePort) - 1000
	if seg.Op != nil || i < 0 || i >= opPairs || seg.Header.DestPort != seg.Header.SourcePort {
		return nil
	}
	number := binary.BigEndian.Uint32(seg.Data)
	for _, w := range n.pairs[i].works {
		if w.number == number && w.kind != "write" && !w.answered {
			return w
		}
	}
	return nil
}

// carry takes what comes next over the link.
func (n *opNode) carry() {
	if len(n.in) == 0 || n.p == nil {
		return
	}
	item := n.in[0]
	n.in = n.in[1:]
	op := item.seg.Op
	switch {
	case item.answer:
		op.Arg.(*opWork).answered = true
		n.p.Done(n.s.now, n.link, op, nil)
	case op != nil:
		n.apply(op)
	default:
		h := item.seg.Header
		buf, verdict := n.p.Begin(n.s.now, n.link, &h, len(item.seg.Data))
		if verdict == Take {
			copy(buf, item.seg.Data)
			n.p.Fill(n.s.now, n.link, len(item.seg.Data))
		}
		n.receive()
	}
}

// apply carries out an operation of the peer. The RNIC does, whatever the node knows.
func (n *opNode) apply(op *Operation) {
	w := op.Arg.(*opWork)
	p := n.pairs[w.pair]
	w.applied++
	switch w.kind {
	case "write":
		if w.number <= p.delivered {
			n.s.fail("%d is written when message %d is there, and the memory the owner's again", w.number, p.delivered)
		}
		p.cell = w.number
		return
	case "add":
		p.counter++
	}
	if o := n.s.other(n); n.s.alive {
		o.in = append(o.in, opItem{seg: Segment{Op: op}, answer: true})
	}
}

// receive takes the messages that are there.
func (n *opNode) receive() {
	for i, p := range n.pairs {
		for msg, ok := p.socket.Receive(n.s.now); ok; msg, ok = p.socket.Receive(n.s.now) {
			number := binary.BigEndian.Uint32(msg.Data)
			from := n.s.other(n).pairs[i]
			for _, w := range from.works {
				if w.number == number && w.silent {
					n.s.fail("message %d of a silent %s comes", number, w.kind)
				}
			}
			if number <= p.delivered {
				n.s.fail("message %d comes after %d", number, p.delivered)
			}
			for k := p.delivered + 1; k < number; k++ {
				if !from.lost[k] && from.socket != nil {
					n.s.fail("message %d comes, and %d is missing", number, k)
				}
			}
			p.delivered = number
			for _, w := range from.works {
				if w.number == number && w.kind == "write" && p.cell != number {
					n.s.fail("message %d has come; the memory holds %d", number, p.cell)
				}
			}
		}
	}
}

// notice tells a node that its link is lost.
func (n *opNode) notice() {
	n.s.alive = false
	if n.up() {
		n.in = nil
		n.p.Down(n.s.now, n.link, errors.New("cut"))
	}
}

// connect makes a link for which a node has asked, as the other lets it.
func (n *opNode) connect() {
	if len(n.dialled) == 0 {
		return
	}
	e := n.dialled[0]
	n.dialled = n.dialled[1:]
	if state, link := e.Path.State(); state != Connecting || link != e.Link {
		return
	}
	o := n.s.other(n)
	p, link, err := o.m.Request(n.s.now, Request{Key: Key{Peer: n.m.cfg.Addr}})
	if err != nil {
		e.Path.Down(n.s.now, e.Link, err)
		return
	}
	// Before it is accepted, nothing is left of the one before.
	if o.p != nil {
		for _, item := range o.in { // what its RNIC has got
			if item.answer {
				item.seg.Op.Arg.(*opWork).answered = true
				o.p.Done(n.s.now, o.link, item.seg.Op, nil)
			}
		}
		o.in = nil
		o.p.Down(n.s.now, o.link, ErrReplaced)
	}
	o.effects()
	n.in, n.p, n.link, o.p, o.link, n.s.alive = nil, e.Path, e.Link, p, link, true
	for _, end := range []*opNode{n, o} {
		end.p.Up(n.s.now, end.link, Params{Generation: n.s.other(end).m.cfg.Generation})
		end.effects()
	}
}

func (s *opSim) step(cuts bool) {
	n := s.nodes[s.rng.IntN(2)]
	switch k := s.rng.IntN(40); {
	case k < 4 && cuts:
		n.send()
	case k == 4 && cuts:
		n.notice()
	case k == 5:
		n.connect()
	case k == 6:
		s.now++
		for _, n := range s.nodes {
			if at, ok := n.m.Deadline(); ok && s.rng.IntN(3) == 0 {
				s.now = max(s.now, at)
			}
			n.m.Advance(s.now)
			n.effects()
		}
	case k == 7 && !s.alive:
		n.notice()
	case k < 22:
		n.pull()
	default:
		n.carry()
	}
	n.effects()
}

// check reports what has become of all messages and operations.
func (s *opSim) check() (dropped int) {
	for _, n := range s.nodes {
		for i, p := range n.pairs {
			o := s.other(n).pairs[i]
			if p.socket.Unsent() > 0 {
				s.fail("pair %d: %d bytes are unacknowledged at the end", i, p.socket.Unsent())
			}
			for k := o.delivered + 1; k <= p.sent; k++ {
				if !p.lost[k] {
					s.fail("pair %d: message %d of %d has not come", i, k, p.sent)
				}
			}
			added := 0
			for _, w := range p.works {
				switch {
				case w.settled != 1:
					s.fail("the end of a %s is told %d times", w.kind, w.settled)
				case w.err == nil && w.applied == 0:
					s.fail("a %s is done that was not carried out", w.kind)
				case w.err != nil && (w.kind != "add" || !errors.Is(w.err, ErrOperation)):
					s.fail("a %s has failed: %v", w.kind, w.err)
				case w.err != nil:
					dropped++
				}
				if w.kind == "add" {
					added += w.applied
					if w.applied > 1 {
						s.fail("an atomic is carried out %d times", w.applied)
					}
				}
			}
			if added != o.counter {
				s.fail("%d atomics, and the counter is %d", added, o.counter)
			}
		}
	}
	return dropped
}

// Whatever is cut: messages come once and in order, a Write is in memory when its message
// comes and not written after that, a Read or an atomic is answered before its message goes, an atomic is
// done once at most, and only atomics may have an unknown end.
func TestOperationsInSimulation(t *testing.T) {
	dropped := 0
	for seed := range uint64(1500) {
		s := newOpSim(t, seed)
		for range 600 {
			s.step(true)
		}
		for _, n := range s.nodes {
			for _, p := range n.pairs {
				p.socket.Hasten(s.now)
			}
			n.effects()
		}
		for range 4000 {
			s.step(false)
		}
		if dropped += s.check(); t.Failed() {
			return
		}
	}
	if dropped == 0 {
		t.Error("no cut has hit an atomic")
	}
}
