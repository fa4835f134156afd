package machine

import (
	"errors"
	"net/netip"
	"testing"

	"urnic/ulp/rds/wire"
)

// A generation that the peer had before its last restart is not taken again: who tells it is
// not the peer, or has stopped being it.
func TestFormerGenerationIsRefused(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	r.send(r.bind(), "the peer is remembered")
	for i, tt := range []struct {
		generation uint32
		broken     bool
	}{{7, false}, {8, false}, {7, true}, {8, false}, {9, false}, {8, true}, {7, true}} {
		r.p.Down(r.now, r.link, nil)
		r.connect(Params{})
		r.seen = nil
		x, err := (&wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: tt.generation}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		r.next++
		r.says(wire.Header{Sequence: r.next, SourcePort: wire.ProbePort, Extensions: x}, nil)
		if rule, broken, _ := r.violation(); broken != tt.broken || broken && rule != RuleGeneration {
			t.Errorf("step %d, generation %d: broken %v, %v", i, tt.generation, broken, rule)
		}
	}
}

// What a node remembers of earlier generations is bounded.
func TestFormerGenerationsAreBounded(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	r.send(r.bind(), "the peer is remembered")
	for g := range uint32(1000) {
		r.p.Down(r.now, r.link, nil)
		r.connect(Params{})
		x, _ := (&wire.Extensions{Has: 1 << wire.ExtGeneration, Generation: 1 + g}).Encode()
		r.says(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: x}, nil)
	}
	if c := r.p.conn; len(c.former) != maxFormer || c.generation != 1000 {
		t.Errorf("%d former generations; the present one is %d", len(c.former), c.generation)
	}
}

// A host that connects and says nothing loses its connection after a while, and its place. One
// that has spoken may be silent forever.
func TestSilentHostsAreForgotten(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		r := newRawPeer(t, Params{}, nil)
		if speaks {
			r.says(wire.Header{}, nil)
		}
		for range 20 {
			at, ok := r.m.Deadline()
			if !ok {
				break
			}
			r.now = max(r.now, at)
			r.m.Advance(r.now)
			r.do()
		}
		state, _ := r.p.State()
		if up := state == Up; up != speaks {
			t.Fatalf("a peer that speaks: %v; the connection is up: %v", speaks, up)
		}
		if speaks {
			continue
		}
		if want := r.m.cfg.Handshake + r.m.cfg.Silence; r.now < want {
			t.Errorf("the connection is lost after %v; want %v", r.now, want)
		}
	}
}

// Hosts that never say anything of RDS leave nothing, however many they are.
func TestUnheardHostsLeaveNothing(t *testing.T) {
	m, err := New(Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["iwarp"]}, MaxPeers: 4})
	if err != nil {
		t.Fatal(err)
	}
	for i := range byte(100) {
		p, link, err := m.Request(0, Request{Key: Key{Peer: netip.AddrFrom4([4]byte{10, 1, 0, i + 1})}})
		if err != nil {
			t.Fatalf("host %d: %v", i, err)
		}
		switch i % 3 {
		case 0: // it does not complete the connection
		case 1:
			p.Up(0, link, Params{})
		case 2:
			p.Up(0, link, Params{})
			p.Malformed(0, link, errors.New("GET / HTTP/1.1"))
			_, link = p.State()
		}
		p.Down(0, link, errors.New("gone"))
	}
	if len(m.conns) != 0 || len(m.order) != 0 || len(m.peers) != 0 {
		t.Errorf("there are %d connections of %d peers", len(m.conns), len(m.peers))
	}
	if _, ok := m.Deadline(); ok {
		t.Error("a deadline is left")
	}
}

// A peer's types of service share its memory, and it may have only so many.
func TestTypesOfServiceShareTheMemoryOfAPeer(t *testing.T) {
	const perPeer = 5
	r := newRawPeer(t, Params{}, func(c *Config) { c.MaxPerPeer = perPeer })
	if _, err := r.m.Bind(4000, 0, 0); err != nil {
		t.Fatal(err)
	}
	for tos := 1; tos <= perPeer; tos++ {
		p, link, err := r.m.Request(r.now, Request{Key: Key{Peer: there, TOS: uint8(tos)}})
		if tos == perPeer {
			if !errors.Is(err, ErrTooMany) {
				t.Errorf("one type of service too many: %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Up(r.now, link, Params{})
		for seq := uint64(1); ; seq++ {
			h := wire.Header{Sequence: seq, Len: 1000, SourcePort: 5000, DestPort: 4000}
			if _, verdict := p.Begin(r.now, link, &h, 1000); verdict != Take {
				break
			}
			p.Fill(r.now, link, 1000)
		}
	}
	if held := r.m.Held(); held > 2*10_000 || held < 10_000 {
		t.Errorf("%d bytes are held for a peer that may have 10,000, and a message for each connection", held)
	}
	if _, _, err := r.m.Request(r.now, Request{Key: Key{Peer: netip.MustParseAddr("10.0.0.9")}}); err != nil {
		t.Errorf("another peer: %v", err)
	}
}

// What a peer says when it connects that it has received may be of this node's last life, as
// long as it has not answered this one.
func TestAcknowledgementOfAnEarlierLifeIsNotBelieved(t *testing.T) {
	r := newRawPeer(t, Params{}, probed)
	s, err := r.m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := s.Send(r.now, Endpoint{there, 5000}, []byte("new life"), Options{}); err != nil {
			t.Fatal(err)
		}
	}
	r.do()
	r.p.Down(r.now, r.link, nil) // before the peer has seen anything
	r.connect(Params{Ack: 3})    // of the last life
	if want := 4 * cost(0); s.Unsent() != want {
		t.Errorf("%d bytes are unacknowledged; want %d", s.Unsent(), want)
	}
	r.says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Ack: 1}, nil) // the answer to the probe
	r.p.Down(r.now, r.link, nil)
	r.connect(Params{Ack: 3})
	if want := 2 * cost(0); s.Unsent() != want {
		t.Errorf("%d bytes are unacknowledged after 3 of 5 messages have been; want %d", s.Unsent(), want)
	}
}
