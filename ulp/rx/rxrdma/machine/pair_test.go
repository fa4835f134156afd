package machine

import (
	"errors"
	"fmt"
	"testing"

	"urnic/internal/ring"
	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
)

// A side is one side of a connection in a test, with all that its owner does for it. What it
// sends lies in sent until it is delivered.
type side struct {
	t       testing.TB
	c       *Conn
	peer    *side
	now     *Time
	free    []int // receives that can be posted
	posted  int   // receives that the peer may use
	slots   [][]byte
	size    int // of a buffer
	buffers int // that are used
	held    int // receives that hold a message
	begun   []*Call
	failed  int
	sent    ring.Ring[packet]
	memory  map[uint32][]byte // that is offered, by STag
	tag     uint32
}

// A packet is a message on its way, with the Write before it.
type packet struct {
	message []byte
	place   *Place
}

func (s *side) Buffer() *Buffer {
	s.buffers++
	return &Buffer{Mem: make([]byte, s.size)}
}

func (s *side) Release(*Buffer) { s.buffers-- }
func (s *side) Free(slot int)   { s.free, s.held = append(s.free, slot), s.held-1 }
func (s *side) Begun(k *Call)   { s.begun = append(s.begun, k) }
func (s *side) Readable(*Call)  {}
func (s *side) Writable(*Call)  {}
func (s *side) Failed(*Call)    { s.failed++ }
func (s *side) Vacant()         {}

// pull takes out what the side sends.
func (s *side) pull() {
	s.c.Posted(len(s.free))
	s.posted += len(s.free)
	s.free = s.free[:0]
	var o Out
	for s.c.Pull(*s.now, &o) {
		p := packet{place: o.Place}
		if o.Buffer != nil {
			p.message = o.Buffer.Mem[:o.Len]
			s.buffers--
		} else {
			b := make([]byte, wire.MaxFixed)
			p.message = b[:o.Msg.Put(b)]
		}
		s.sent.Push(p)
	}
}

// deliver delivers the oldest message of the peer to the side.
func (s *side) deliver() {
	p := s.peer.sent.Pop()
	if pl := p.place; pl != nil {
		from, _ := pl.Ref.([]byte)
		to, open := s.memory[pl.STag]
		if !open {
			s.t.Fatalf("part of %d bytes is written to memory that is closed", pl.Len)
		}
		copy(to[pl.TO:], from[:pl.Len])
		s.peer.c.Done(*s.now, pl)
	}
	if s.posted == 0 {
		s.t.Fatalf("there is no receive for % x", p.message[:wire.HeaderLen])
	}
	s.posted--
	s.arrive(p.message)
}

// arrive gives the side a message.
func (s *side) arrive(b []byte) {
	s.slots = append(s.slots, b)
	s.held++
	s.c.Received(*s.now, len(s.slots)-1, b)
}

// limits are those of most tests.
var limits = wire.Private{
	Features: wire.FeatureOffer | wire.FeaturePlace, Channels: 4, Credits: 20, Window: 4, Receive: 512 + wire.HeaderLen, Bulk: 4096,
}

// pair returns the two sides of a connection.
func pair(t testing.TB, change ...func(client, server *Config)) (client, server *side) {
	t.Helper()
	now := new(Time)
	client, server = &side{t: t, now: now, memory: map[uint32][]byte{}}, &side{t: t, now: now, memory: map[uint32][]byte{}}
	client.peer, server.peer = server, client
	cc := Config{Client: true, Own: limits, Peer: limits, LeastBulk: 1000, Host: client}
	sc := Config{Own: limits, Peer: limits, LeastBulk: 1000, Host: server}
	for _, f := range change {
		f(&cc, &sc)
	}
	client.posted, server.posted = int(cc.Own.Credits), int(sc.Own.Credits)
	client.size, server.size = int(cc.Own.Receive), int(sc.Own.Receive)
	client.c, server.c = New(cc), New(sc)
	return client, server
}

// settle delivers all messages until there are no more.
func (s *side) settle() {
	for {
		s.pull()
		s.peer.pull()
		switch {
		case s.sent.Len() > 0:
			s.peer.deliver()
		case s.peer.sent.Len() > 0:
			s.deliver()
		default:
			return
		}
	}
}

// next takes the next message of the side that is not about credits.
func (s *side) next() wire.Message {
	s.t.Helper()
	for {
		s.pull()
		if s.sent.Len() == 0 {
			return wire.Message{}
		}
		m, _, err := wire.Parse(s.sent.At(0).message)
		if err != nil {
			s.t.Fatal(err)
		}
		s.peer.deliver()
		if m.Type != wire.Credit {
			return m
		}
	}
}

// want checks what the side sends next.
func (s *side) want(what string) {
	s.t.Helper()
	m := s.next()
	m.Credits = 0
	if got := m.String(); got != what {
		s.t.Fatalf("it sends %s; want %s", got, what)
	}
}

// silent checks that the side sends nothing.
func (s *side) silent() {
	s.t.Helper()
	if m := s.next(); m.Type != 0 {
		s.t.Fatalf("it sends %v; want nothing", &m)
	}
}

// begin begins a call whose request is complete.
func (s *side) begin(request string) *Call {
	s.t.Helper()
	call, err := s.c.Begin(*s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	if request != "" {
		if _, err := call.Write(*s.now, []byte(request)); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := call.CloseWrite(*s.now); err != nil {
		s.t.Fatal(err)
	}
	return call
}

// broke checks that the side has found a rule broken.
func (s *side) broke(r Rule) {
	s.t.Helper()
	var v *ViolationError
	if err := s.c.Err(); !errors.As(err, &v) || v.Rule != r || v.Error() == "" {
		s.t.Errorf("the connection has ended with %v; want the rule %v", err, r)
	}
}

// inject gives the side a message of its peer as if that had credit for it.
func (s *side) inject(m wire.Message, body string) {
	b := make([]byte, wire.MaxFixed+len(body))
	n := m.Put(b)
	s.arrive(append(b[:n], body...))
}

var _ Host = (*side)(nil)

// xor is a class of security that changes bodies, for tests: the response is the challenge,
// reversed.
type xor struct{ overhead int }

func (x xor) Overhead() int { return x.overhead }
func (xor) Multiple() int   { return 4 }
func (xor) Least() int      { return 8 }
func (x xor) Seal(p secure.Packet, body []byte, data int) (uint16, error) {
	for i := range body {
		body[i] ^= byte(p.Seq)
	}
	body[0] = byte(len(body) - x.overhead - data)
	return uint16(p.Call), nil
}

func (x xor) Open(p secure.Packet, sum uint16, body []byte) ([]byte, error) {
	if sum != uint16(p.Call) || len(body) < 8 || int(body[0]) > len(body)-x.overhead {
		return nil, fmt.Errorf("%d is not the checksum", sum)
	}
	for i := range body[1:] {
		body[i+1] ^= byte(p.Seq)
	}
	return body[x.overhead : len(body)-int(body[0])], nil
}
