package machine

import (
	"testing"

	"urnic/ulp/rds/wire"
)

// A peer over TCP that tells its generation, and not that it is urnic, acknowledges by TCP alone, as Linux does. One
// that says so acknowledges in headers, and what TCP has acknowledged does not count.
func TestWhatAcknowledgesDependsOnWhatThePeerSays(t *testing.T) {
	linux := wire.Extensions{Has: 1<<wire.ExtNPaths | 1<<wire.ExtGeneration | 1<<wire.ExtSportIdx, Paths: 8, Generation: 7}
	ours := linux
	ours.Has |= 1 << wire.ExtUrnic
	for name, tt := range map[string]struct {
		x       wire.Extensions
		headers bool
	}{
		"Linux 6.1":     {wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: 8}, false},
		"a later Linux": {linux, false},
		"urnic":         {ours, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDialling(t, carriers["multipath"], "higher")
			p, link, err := d.m.Request(0, Request{Key: d.peer(), Port: -1})
			if err != nil {
				t.Fatal(err)
			}
			p.Up(0, link, Params{})
			d.send()
			last := d.pull(p)
			raw, err := tt.x.Encode()
			if err != nil {
				t.Fatal(err)
			}
			says := func(h wire.Header) {
				p.Begin(0, link, &h, 0)
				p.Fill(0, link, 0)
				last = max(last, d.pull(p))
			}
			says(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: raw})
			says(wire.Header{Sequence: 2, DestPort: wire.ProbePort, Extensions: raw})
			if d.s.Unsent() == 0 {
				t.Fatal("the message is acknowledged before anything says so")
			}
			p.Acked(0, link, last)
			if done := d.s.Unsent() == 0; done == tt.headers {
				t.Errorf("TCP has acknowledged: %v", done)
			}
			says(wire.Header{Ack: last})
			if d.s.Unsent() != 0 {
				t.Error("the message is not acknowledged at last")
			}
		})
	}
}

// pull takes what a path sends, and returns the highest sequence number.
func (d *dialling) pull(p *Path) (last uint64) {
	for s := (Segment{}); p.Pull(d.m.now, p.link, &s); {
		last = max(last, s.Header.Sequence)
	}
	return last
}

// A TCP that acknowledges for a listener that never accepts says nothing of the peer's RDS: no message goes out, none
// counts as acknowledged, and the connection is given up in the end. The messages wait for the next one.
func TestNothingCountsBeforeThePeerHasSpoken(t *testing.T) {
	d := newDialling(t, carriers["multipath"], "lower")
	d.send()
	p := d.m.conns[d.peer()].paths[0]
	p.Up(0, p.link, Params{})
	link, patience := p.link, d.m.cfg.Handshake+d.m.cfg.Silence
	for now := Time(0); now < patience; now += d.m.cfg.Handshake / 2 {
		d.m.Advance(now)
		p.Acked(now, link, d.pull(p))
		if p.next > 2 || d.s.Unsent() == 0 || p.link != link {
			t.Fatalf("after %v: the next number is %d, %d bytes wait", now, p.next, d.s.Unsent())
		}
	}
	d.m.Advance(patience)
	if p.state == Up || d.s.Unsent() == 0 {
		t.Errorf("at last the path is %v, %d bytes wait", p.state, d.s.Unsent())
	}
}

// The numbers of a life of the node are higher than those of the one before: a peer that remembers that one would take
// low ones that are sent again for those that it has.
func TestNumbersBeginAtTheConfiguredOne(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.First = 5000 })
	s := r.bind()
	r.send(s, "x")
	if h := r.sent[len(r.sent)-1].Header; h.Sequence != 5000 {
		t.Errorf("the first message is %v", &h)
	}
	r.p.Down(r.now, r.link, nil)
	r.connect(Params{})
	if h := r.sent[len(r.sent)-1].Header; h.Sequence != 5000 || h.Flags&wire.Retransmitted == 0 {
		t.Errorf("sent again as %v", &h)
	}
	r.says(wire.Header{Ack: 5000}, nil)
	if s.Unsent() != 0 {
		t.Error("it is not acknowledged")
	}
}

// Pongs of another peer do not answer the pings of a socket.
func TestPongIsThatOfThePeer(t *testing.T) {
	r := newRawPeer(t, Params{}, nil)
	s := r.bind()
	other := Endpoint{Addr: here.Next().Next()}
	if _, err := s.Send(r.now, other, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	r.next++
	r.says(wire.Header{Sequence: r.next, DestPort: s.Port()}, nil)
	if n, _ := s.Queued(); n != 0 {
		t.Error("a pong of a peer that was not asked is delivered")
	}
	if _, err := s.Send(r.now, Endpoint{Addr: there}, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.next++
		r.says(wire.Header{Sequence: r.next, DestPort: s.Port()}, nil)
	}
	if n, _ := s.Queued(); n != 1 {
		t.Errorf("%d pongs are delivered of 1 ping", n)
	}
}
