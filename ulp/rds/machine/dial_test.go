package machine

import (
	"errors"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// dialling makes a node, and counts in its effects.
type dialling struct {
	t *testing.T
	m *Machine
	s *Socket
}

func newDialling(t *testing.T, c Carrier, of string) *dialling {
	t.Helper()
	addr := here
	if of == "higher" {
		addr = there
	}
	m, err := New(Config{Addr: addr, Generation: 1, Carriers: []Carrier{c}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &dialling{t, m, s}
}

// peer is the address of the other node.
func (d *dialling) peer() Key {
	if d.m.cfg.Addr == here {
		return Key{Peer: there}
	}
	return Key{Peer: here}
}

func (d *dialling) send() {
	d.t.Helper()
	if _, err := d.s.Send(d.m.now, Endpoint{d.peer().Peer, 4000}, []byte("x"), Options{}); err != nil {
		d.t.Fatal(err)
	}
}

// count returns how many effects of a kind there are.
func (d *dialling) count(k EffectKind) (n int) {
	for todo := d.m.Effects(); todo != nil; todo = d.m.Effects() {
		for _, e := range todo {
			if e.Kind == k {
				n++
			}
		}
	}
	return n
}

// With carriers whose nodes dial in the order of their addresses, the one with the lower address
// refuses what the other has dialled, and dials itself.
func TestLowerAddressDials(t *testing.T) {
	d := newDialling(t, carriers["tcp"], "lower")
	if _, _, err := d.m.Request(0, Request{Key: d.peer()}); err == nil {
		t.Error("a connection from the higher address is accepted")
	}
	if n := d.count(Dial); n != 1 {
		t.Errorf("the node with the lower address dials %d times", n)
	}
	d = newDialling(t, carriers["tcp"], "higher")
	p, link, err := d.m.Request(0, Request{Key: d.peer()})
	if err != nil {
		t.Fatalf("a connection from the lower address: %v", err)
	}
	p.Up(0, link, Params{})
	p.Down(0, link, nil)
	d.m.Advance(time.Hour)
	if n := d.count(Dial); n != 0 {
		t.Errorf("the node with the higher address dials %d times with nothing to send", n)
	}
}

// A node with the higher address and something to send knocks, whichever path it is for.
func TestHigherAddressKnocks(t *testing.T) {
	d := newDialling(t, carriers["multipath"], "higher")
	p, link, err := d.m.Request(0, Request{Key: d.peer()})
	if err != nil {
		t.Fatal(err)
	}
	p.Up(0, link, Params{})
	x, err := (&wire.Extensions{Has: 1<<wire.ExtNPaths | 1<<wire.ExtGeneration, Paths: 4, Generation: 7}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	var seg Segment
	for _, h := range []wire.Header{
		{},
		{Sequence: 1, SourcePort: wire.ProbePort, Extensions: x},
		{Sequence: 2, DestPort: wire.ProbePort, Extensions: x, Ack: 2}, // its pong, and of the probe and the pong
	} {
		for p.Pull(0, link, &seg) {
			continue
		}
		p.Begin(0, link, &h, 0)
		p.Fill(0, link, 0)
	}
	p.Down(0, link, nil)
	d.m.Advance(time.Hour)
	if n := d.count(Dial); n != 0 {
		t.Fatalf("it knocks %d times with nothing to send", n)
	}
	for port := uint16(4001); p.conn.pathOf(d.s.port).index == 0; port++ {
		if d.s, err = d.m.Bind(port, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	d.send()
	if n := d.count(Dial); n != 1 {
		t.Errorf("it knocks %d times for a message of path %d", n, p.conn.pathOf(d.s.port).index)
	}
}

// Where both may dial, and their requests cross, that of the node with the lower address
// counts.
func TestRequestsThatCross(t *testing.T) {
	for _, of := range []string{"lower", "higher"} {
		d := newDialling(t, carriers["iwarp"], of)
		d.send()
		if n := d.count(Dial); n != 1 {
			t.Fatalf("%s: it dials %d times", of, n)
		}
		_, _, err := d.m.Request(0, Request{Key: d.peer()})
		hungUp := d.count(Hangup)
		if lower := of == "lower"; lower != errors.Is(err, ErrBusy) || lower != (hungUp == 0) {
			t.Errorf("%s: the other request: %v; it gives its own up: %d", of, err, hungUp)
		}
	}
}
