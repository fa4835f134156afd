package machine

import (
	"errors"
	"net/netip"
	"testing"

	"urnic/ulp/rds/wire"
)

// A memory is that of a message, and counts what is not given back.
type memory struct{ held *int }

func (m memory) Use() {}

// hold sends a message whose memory is counted.
func (s *Socket) hold(t *testing.T, to Endpoint, size int, held *int) {
	t.Helper()
	*held += size
	o := Options{Memory: memory{held}, Free: func() { *held -= size }}
	if _, err := s.Send(s.m.now, to, make([]byte, size), o); err != nil {
		t.Fatal(err)
	}
}

// A closed socket gives back the memory of its messages at once, whether they wait for a peer that is not there, wait to
// be sent, or for acknowledgements that never come.
func TestClosedSocketsGiveTheirMessagesBack(t *testing.T) {
	for name, up := range map[string]bool{"the peer is not there": false, "the peer does not acknowledge": true} {
		t.Run(name, func(t *testing.T) {
			r := newRawPeer(t, Params{}, nil)
			to := Endpoint{there, 5000}
			if !up {
				to.Addr = to.Addr.Next()
			}
			held := 0
			for range 1000 {
				s := r.bind()
				s.hold(t, to, 3000, &held)
				s.hold(t, to, 0, &held)
				r.do()
				s.Close(r.now)
			}
			if held > 0 {
				t.Errorf("%d bytes are held for closed sockets", held)
			}
			for _, c := range r.m.order {
				n := c.waiting.len()
				for _, p := range c.paths {
					n += p.queue.len() + p.unacked.len()
				}
				if n > 2 || c.busy() {
					t.Errorf("%d messages of closed sockets keep a place; the connection is busy: %v", n, c.busy())
				}
			}
		})
	}
}

// What is being sent when its socket is closed keeps its memory until then only.
func TestClosedWhileItIsSent(t *testing.T) {
	r := newRawPeer(t, Params{Granted: 100, Credit: 12}, nil)
	held := 0
	s := r.bind()
	s.hold(t, Endpoint{there, 5000}, 5000, &held)
	r.do()
	s.Close(r.now)
	if held == 0 {
		t.Fatal("the memory of a message of which some fragments are sent is given back")
	}
	r.says(wire.Header{Credit: 20}, nil)
	if r.p.current != nil {
		t.Fatal("it is not sent whole")
	}
	r.says(wire.Header{Ack: r.p.next - 1}, nil)
	if held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// An address at which nobody is loses its place when nothing is to be sent there any more, and is not dialed again.
func TestDeadAddressesLoseTheirPlace(t *testing.T) {
	for _, carrier := range []string{"tcp", "multipath", "iwarp"} {
		m, err := New(Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers[carrier]}, MaxPeers: 8})
		if err != nil {
			t.Fatal(err)
		}
		fails := func() (dialed int) {
			for todo := m.Effects(); todo != nil; todo = m.Effects() {
				for _, e := range append([]Effect(nil), todo...) {
					if e.Kind == Dial {
						dialed++
						e.Path.Down(m.now, e.Link, errors.New("nobody"))
					}
				}
			}
			return dialed
		}
		for i := range byte(100) {
			s, err := m.Bind(0, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Send(m.now, Endpoint{netip.AddrFrom4([4]byte{10, 0, 1, i}), 0}, nil, Options{}); err != nil {
				t.Fatalf("%s: address %d: %v", carrier, i, err)
			}
			if fails() == 0 {
				t.Fatalf("%s: address %d is not dialed", carrier, i)
			}
			s.Close(m.now)
			m.Advance(m.now + 10_000_000_000)
			if n := fails(); n > 0 || len(m.conns) > 0 {
				t.Fatalf("%s: address %d: %d connections are kept, and dialed %d times", carrier, i, len(m.conns), n)
			}
		}
	}
}

// A peer that has gone is not dialed for ever while there is nothing to send to it. The next message has it dialed.
func TestPeerThatHasGoneIsGivenUp(t *testing.T) {
	d := newDialling(t, carriers["tcp"], "lower")
	d.send()
	p := d.m.conns[d.peer()].paths[0]
	p.Up(0, p.link, Params{})
	for _, h := range []wire.Header{
		{Sequence: 1, DestPort: wire.ProbePort, Extensions: introduces(1, 7)},
		{Sequence: 2, SourcePort: 4000, DestPort: 4000, Ack: 2},
	} {
		p.Begin(0, p.link, &h, 0)
		p.Fill(0, p.link, 0)
		d.pull(p)
	}
	p.Down(0, p.link, errors.New("gone"))
	d.count(Dial)
	if _, ok := d.s.Receive(0); !ok || d.s.Unsent() > 0 {
		t.Fatal("the messages have not arrived")
	}
	fails := func() (tries int) {
		for range 100 {
			if at, ok := d.m.Deadline(); ok {
				d.m.Advance(at)
			}
			if d.count(Dial) == 0 {
				break
			}
			tries++
			p.Down(d.m.now, p.link, errors.New("nobody"))
		}
		return tries
	}
	if n := fails(); n == 0 || n > idleTries {
		t.Errorf("it is dialed %d times with nothing to send", n)
	}
	d.send()
	if n := d.count(Dial); n != 1 {
		t.Errorf("it is dialed %d times for a message", n)
	}
}

// A sender that waits for a congested port has the connection made again: a peer that has restarted has another map.
func TestWaitingForACongestedPortReconnects(t *testing.T) {
	for _, of := range []string{"lower", "higher"} {
		d := newDialling(t, carriers["tcp"], of)
		d.send()
		p := d.m.conns[d.peer()].paths[0]
		if of == "higher" {
			if _, _, err := d.m.Request(0, Request{Key: d.peer(), Port: -1}); err != nil {
				t.Fatal(err)
			}
		}
		p.Up(0, p.link, Params{})
		says := func(h wire.Header, data []byte) {
			b, _ := p.Begin(d.m.now, p.link, &h, len(data))
			copy(b, data)
			p.Fill(d.m.now, p.link, len(data))
			d.pull(p)
		}
		var full wire.CongestionMap
		full.Set(4000)
		says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, full[:])
		says(wire.Header{Sequence: 1, DestPort: wire.ProbePort, Extensions: introduces(1, 7)}, nil)
		says(wire.Header{Ack: p.next - 1}, nil)
		if _, err := d.s.Send(0, Endpoint{d.peer().Peer, 4000}, nil, Options{}); !errors.Is(err, ErrCongested) {
			t.Fatalf("%s: %v", of, err)
		}
		p.Down(0, p.link, errors.New("the peer has gone"))
		for try := range 30 {
			if p.state == Connecting {
				d.m.Effects()
				p.Down(d.m.now, p.link, errors.New("nobody"))
			}
			at, ok := d.m.Deadline()
			if !ok {
				t.Fatalf("%s: after %d tries the connection is %v, and no timer runs", of, try, p.state)
			}
			d.m.Advance(at)
		}
	}
}

// After Attempts tries, the messages of all paths are reported, as are those of sockets that wait for congested ports.
func TestAttemptsReportEachPath(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.Carriers, c.Attempts = []Carrier{{Acks: true, Paths: 8}}, 3 })
	r.probe(8, 7)
	r.answer(8, 7)
	var full wire.CongestionMap
	full.Set(6000)
	r.says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, full[:])
	waits := r.bind()
	if _, err := waits.Send(r.now, Endpoint{there, 6000}, nil, Options{}); !errors.Is(err, ErrCongested) {
		t.Fatal(err)
	}
	r.p.Down(r.now, r.link, errors.New("gone"))
	paths := map[int]bool{}
	for range 16 {
		s := r.bind()
		r.send(s, "never arrives")
		paths[s.latest()] = true
	}
	if len(paths) < 4 {
		t.Fatalf("the messages are on %d paths", len(paths))
	}
	for range 4 {
		if at, ok := r.m.Deadline(); ok {
			r.now = at
			r.m.Advance(at)
		}
		r.do()
		for _, p := range r.p.conn.paths {
			if p.state == Connecting {
				p.Down(r.now, p.link, errors.New("nobody"))
				r.do()
			}
		}
	}
	lost, writable := 0, false
	for _, e := range r.seen {
		if e.Kind == Report && e.Event.Kind == MessageLost && errors.Is(e.Event.Err, ErrUnreachable) {
			lost++
		}
		writable = writable || e.Kind == Writable && e.Socket == waits
	}
	if lost != 16 || !writable {
		t.Errorf("%d of 16 messages are reported; the socket that waits is notified: %v", lost, writable)
	}
}

// Nobody keeps the place of a peer by sending a map, a probe or a ping and leaving. A peer with which messages were
// exchanged keeps it until others need it, and it has been idle for some time.
func TestPlacesOfPeers(t *testing.T) {
	m, err := New(Config{Addr: here, Generation: 1, Carriers: []Carrier{carriers["tcp"]}, MaxPeers: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Bind(4000, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	visit := func(i byte, says ...wire.Header) error {
		p, link, err := m.Request(m.now, Request{Key: Key{Peer: netip.AddrFrom4([4]byte{9, 0, 0, i})}, Port: -1})
		if err != nil {
			return err
		}
		p.Up(m.now, link, Params{})
		for _, h := range says {
			p.Begin(m.now, link, &h, int(h.Len))
			p.Fill(m.now, link, int(h.Len))
			for seg := (Segment{}); p.Pull(m.now, link, &seg); {
				continue
			}
		}
		p.Down(m.now, link, errors.New("good-bye"))
		return nil
	}
	for i := range byte(100) {
		err := visit(
			i, wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen},
			wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: introduces(1, 7)}, wire.Header{Sequence: 2, SourcePort: 5000},
		)
		if err != nil {
			t.Fatalf("visitor %d: %v", i, err)
		}
	}
	message := wire.Header{Sequence: 1, SourcePort: 5000, DestPort: 4000}
	for i := range byte(8) {
		m.Advance(m.now + 1)
		if err := visit(i, message); err != nil {
			t.Fatal(err)
		}
	}
	for {
		if _, ok := s.Receive(m.now); !ok {
			break
		}
	}
	if err := visit(8, message); !errors.Is(err, ErrTooMany) {
		t.Errorf("a peer more, while all have been idle for no time: %v", err)
	}
	m.Effects()
	m.Advance(m.now + m.cfg.Silence)
	if err := visit(8, message); err != nil {
		t.Errorf("a peer more, while all are idle: %v", err)
	}
	var forgotten []netip.Addr
	for _, e := range m.Effects() {
		if e.Kind == Report && e.Event.Kind == Forgotten {
			forgotten = append(forgotten, e.Event.Peer)
		}
	}
	if len(forgotten) != 1 || forgotten[0] != netip.AddrFrom4([4]byte{9, 0, 0, 0}) {
		t.Errorf("forgotten: %v; want the one that was idle for longest", forgotten)
	}
	for i := range byte(7) {
		if err := visit(10+i, message); err != nil {
			t.Fatal(err)
		}
	}
	if err := visit(20, message); !errors.Is(err, ErrTooMany) {
		t.Errorf("a peer more, while messages of all others are unread: %v", err)
	}
}
