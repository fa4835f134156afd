package machine

import (
	"errors"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// dialing makes a node, and counts in its effects.
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
// refuses what the other has dialed, and dials itself.
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
	x := introduces(4, 7)
	says := func(h wire.Header) {
		d.pull(p)
		p.Begin(0, link, &h, 0)
		p.Fill(0, link, 0)
	}
	says(wire.Header{})
	says(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: x})
	says(wire.Header{Sequence: 2, DestPort: wire.ProbePort, Extensions: x, Ack: 2}) // its pong, and of the probe and the pong
	for p.conn.pathOf(d.s.port).index > 0 {
		if d.s, err = d.m.Bind(0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	d.send() // the peer is remembered
	says(wire.Header{Ack: d.pull(p)})
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

// A peer that is slow to reset what knocks gets nothing there but the handshake, however long it takes: TCP would
// acknowledge data that the peer never reads. One that never says anything is asked anew.
func TestNoDataOnALinkThatKnocks(t *testing.T) {
	for _, carrier := range []string{"tcp", "multipath"} {
		t.Run(carrier, func(t *testing.T) {
			d := newDialling(t, carriers[carrier], "higher")
			d.send()
			p := d.m.conns[d.peer()].paths[0]
			pull := func() (data int) {
				var seg Segment
				var last uint64
				for p.Pull(d.m.now, p.link, &seg) {
					last = max(last, seg.Header.Sequence)
					if seg.Header.Kind() == wire.Data {
						data++
					}
				}
				p.Acked(d.m.now, p.link, last) // by TCP
				return data
			}
			link := p.link
			p.Up(0, link, Params{}) // the peer's system has accepted it
			pull()
			patience := d.m.cfg.Handshake + d.m.cfg.Silence
			for now := time.Duration(0); now < patience; now += d.m.cfg.Handshake / 4 {
				d.m.Advance(now)
				if n := pull(); n > 0 || p.state != Up {
					t.Fatalf("after %v: %d messages are sent, the path is %v", now, n, p.state)
				}
			}
			d.m.Advance(patience)
			if n := d.count(Hangup); n != 1 || p.state == Up {
				t.Fatalf("after %v: %d links are ended, the path is %v", patience, n, p.state)
			}
			_, link, err := d.m.Request(d.m.now, Request{Key: d.peer()}) // at last
			if err != nil {
				t.Fatal(err)
			}
			p.Up(d.m.now, link, Params{})
			pull()
			d.m.Advance(d.m.now + d.m.cfg.Handshake)
			if n := pull(); n > 0 {
				t.Errorf("%d messages are sent before the peer has said something", n)
			}
			p.Begin(d.m.now, link, &wire.Header{Sequence: 1, DestPort: wire.ProbePort, Extensions: introduces(8, 0)}, 0)
			p.Fill(d.m.now, link, 0)
			if n := pull(); n != 1 {
				t.Errorf("%d messages are sent on the link that the peer has made", n)
			}
		})
	}
}

// What comes on a link that another one has replaced is not taken, and does not end that one.
func TestReplacedLinkIsDead(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	if _, err := r.m.Bind(4000, 0, 0); err != nil {
		t.Fatal(err)
	}
	old := r.link
	r.connect(Params{})
	h := r.data(2)
	if _, verdict := r.p.Begin(r.now, old, &h, 2); verdict != Dead {
		t.Errorf("the verdict is %v", verdict)
	}
	r.p.Fill(r.now, old, 2)
	r.p.Malformed(r.now, old, errors.New("no header"))
	r.p.Down(r.now, old, errors.New("lost"))
	if state, link := r.p.State(); state != Up || link != r.link || r.m.Held() != 0 {
		t.Errorf("the path is %v, %d bytes are held", state, r.m.Held())
	}
	if verdict := r.says(h, []byte("ab")); verdict != Take || r.m.Counters().Received != 1 {
		t.Errorf("on the new link, the verdict is %v", verdict)
	}
}

// A connection is made again if there was one on its path. One that only knocks is none.
func TestConnectionsThatAreMadeAgain(t *testing.T) {
	for _, of := range []string{"lower", "higher"} {
		d := newDialling(t, carriers["tcp"], of)
		d.send()
		again := func(want uint64) {
			t.Helper()
			if got := d.m.Counters().Reconnects; got != want {
				t.Errorf("%s: %d connections were made again; want %d", of, got, want)
			}
		}
		p := d.m.conns[d.peer()].paths[0]
		connect := func() Link {
			_, link := p.State()
			if of == "higher" {
				p.Up(0, link, Params{}) // it has knocked
				p.Down(0, link, errors.New("refused"))
				var err error
				if _, link, err = d.m.Request(0, Request{Key: d.peer()}); err != nil {
					t.Fatal(err)
				}
			}
			p.Up(0, link, Params{})
			return link
		}
		link := connect()
		again(0)
		p.Down(0, link, errors.New("cut"))
		again(0)
		d.m.Advance(0)
		connect()
		again(1)
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
