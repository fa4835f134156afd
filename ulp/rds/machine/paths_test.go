package machine

import (
	"slices"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// introduces returns what a peer tells of itself: urnic, if it has a generation, else Linux 6.1.
func introduces(paths uint16, generation uint32) [wire.ExtensionLen]byte {
	x := wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: paths, Generation: generation}
	if generation != 0 {
		x.Has |= 1<<wire.ExtGeneration | 1<<wire.ExtUrnic
	}
	raw, err := x.Encode()
	if err != nil {
		panic(err)
	}
	return raw
}

// probe has the peer name its paths and its generation.
func (r *rawPeer) probe(paths uint16, generation uint32) {
	r.t.Helper()
	r.next++
	r.says(wire.Header{Sequence: r.next, SourcePort: wire.ProbePort, Extensions: introduces(paths, generation)}, nil)
}

// answer has the peer answer the node's probe.
func (r *rawPeer) answer(paths uint16, generation uint32) {
	r.t.Helper()
	r.next++
	r.says(wire.Header{Sequence: r.next, DestPort: wire.ProbePort, Extensions: introduces(paths, generation)}, nil)
}

// elsewhere binds a socket whose messages go over another path than the first of n, and returns that one's index.
func (r *rawPeer) elsewhere(n int) (s *Socket, path int) {
	r.t.Helper()
	c := Conn{m: r.m, used: n}
	for {
		s := r.bind()
		if path := c.pathOf(s.port).index; path > 0 {
			return s, path
		}
	}
}

// latest returns the path that a socket's latest message is on.
func (s *Socket) latest() int { return s.newest.path.index }

// A peer that names its paths late was taken for one with a single path. Messages go on over
// that as long as one of a socket is under way there, which the next could overtake.
func TestPathsThatAreNamedLate(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.Carriers = []Carrier{{Acks: true, Paths: 4}} })
	r.says(wire.Header{}, nil) // it speaks
	r.now += time.Minute
	r.m.Advance(r.now)
	s, _ := r.elsewhere(4)
	r.send(s, "on the only path")
	r.probe(4, 7)
	r.answer(4, 7)
	r.send(s, "behind it")
	if n := s.latest(); n != 0 {
		t.Errorf("a message overtakes one of the same socket, on path %d", n)
	}
	r.says(wire.Header{Ack: r.p.next - 1}, nil)
	if s.Unsent() > 0 {
		t.Fatalf("%d bytes are unacknowledged", s.Unsent())
	}
	r.send(s, "on its path")
	if n := s.latest(); n == 0 {
		t.Error("the paths are not used when the first is empty")
	}
}

// On another path of a peer that does not greet, as Linux, data wait for the answer to a ping on the first path: until
// then, the connection may be one that a peer has accepted which has forgotten this node, and takes for path 0.
func TestDataWaitForASignOfLife(t *testing.T) {
	d := newDialling(t, carriers["multipath"], "higher")
	linux := wire.Extensions{Has: 1<<wire.ExtNPaths | 1<<wire.ExtGeneration | 1<<wire.ExtSportIdx, Paths: 4, Generation: 7}
	raw, err := linux.Encode()
	if err != nil {
		t.Fatal(err)
	}
	accept := func(port int) *Path {
		p, link, err := d.m.Request(0, Request{Key: d.peer(), Port: port})
		if err != nil {
			t.Fatal(err)
		}
		p.Up(0, link, Params{})
		return p
	}
	pull := func(p *Path) (sent []Segment) {
		for s := (Segment{}); p.Pull(0, p.link, &s); {
			sent = append(sent, s)
		}
		return sent
	}
	first := accept(-1)
	says := func(h wire.Header) {
		first.Begin(0, first.link, &h, 0)
		first.Fill(0, first.link, 0)
	}
	pull(first)
	says(wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: raw})
	says(wire.Header{Sequence: 2, DestPort: wire.ProbePort, Extensions: raw})
	pull(first)
	other := accept(3)
	if other.index != 3 {
		t.Fatalf("the connection is for path %d", other.index)
	}
	for first.conn.pathOf(d.s.port) != other {
		if d.s, err = d.m.Bind(0, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	d.send()
	if sent := pull(other); slices.Contains(kinds(sent), wire.Data) {
		t.Fatal("data are sent before the peer has shown that it lives")
	}
	for _, s := range pull(first) {
		if s.Header.Kind() == wire.Ping {
			says(wire.Header{Sequence: 3, DestPort: s.Header.SourcePort})
		}
	}
	if sent := pull(other); !slices.Contains(kinds(sent), wire.Data) {
		t.Error("data are not sent at last")
	}
}

// A change of the congested ports goes over the first path only, where no older map can overtake it; of another
// path, no map is taken.
func TestMapsGoOverTheFirstPath(t *testing.T) {
	first := newRawPeer(t, Params{}, func(c *Config) { c.Carriers = []Carrier{{Acks: true, Paths: 4}} })
	first.probe(4, 7)
	first.answer(4, 7)
	other := *first
	other.p = first.p.conn.paths[3] // it is being dialed
	_, other.link = other.p.State()
	other.p.Up(other.now, other.link, Params{})
	other.do()
	first.sent, other.sent = nil, nil
	before := first.m.Counters().MapsSent
	first.m.local.Set(9)
	first.m.mapChanged()
	first.do()
	if n := first.m.Counters().MapsSent - before; n != 1 || !slices.Contains(kinds(first.take()), wire.Map) {
		t.Errorf("a change is sent %d times", n)
	}
	for _, tt := range []struct {
		on    *rawPeer
		taken bool
	}{{&other, false}, {first, true}} {
		var m wire.CongestionMap
		m.Set(6000)
		tt.on.says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, m[:])
		if taken := first.p.conn.remote.Congested(6000); taken != tt.taken {
			t.Errorf("on path %d a map is taken: %v", tt.on.p.index, taken)
		}
	}
}

// The number of paths is that of the peer's present life. What was not sent to the
// former one takes the paths that there are now.
func TestPathsOfAPeerThatHasRestarted(t *testing.T) {
	r := newRawPeer(t, Params{}, func(c *Config) { c.Carriers = []Carrier{{Acks: true, Paths: 4}} })
	r.probe(4, 7)
	r.answer(4, 7)
	s, _ := r.elsewhere(4)
	r.send(s, "waits for its path")
	if n := s.latest(); n == 0 {
		t.Fatal("it is on path 0")
	}
	r.p.Down(r.now, r.link, nil)
	r.next = 0
	r.connect(Params{})
	r.sent = nil
	r.probe(1, 8)
	r.answer(1, 8)
	if n := s.latest(); n != 0 {
		t.Errorf("it waits for path %d of a peer that has one", n)
	}
	sent := false
	for _, seg := range r.sent {
		sent = sent || seg.Header.Kind() == wire.Data
	}
	if !sent {
		t.Error("it is not sent")
	}
}

// On other paths than the first, data wait until the peer has said something on them, and has answered
// the probe: before, it may take the path for path 0, or this node for its former life.
func TestDataOnOtherPathsWait(t *testing.T) {
	greets := func(_, other *rawPeer) { other.says(wire.Header{}, nil) }
	answers := func(first, _ *rawPeer) { first.answer(4, 7) }
	for name, order := range map[string][2]func(first, other *rawPeer){
		"the answer is last":   {greets, answers},
		"the greeting is last": {answers, greets},
	} {
		t.Run(name, func(t *testing.T) {
			first := newRawPeer(t, Params{}, func(c *Config) { c.Carriers = []Carrier{{Acks: true, Paths: 4}} })
			first.probe(4, 7)
			s, path := first.elsewhere(4)
			first.send(s, "waits")
			other := *first
			var err error
			if other.p, other.link, err = other.m.Request(other.now, Request{Key: Key{Peer: there}, Port: path}); err != nil {
				t.Fatal(err)
			}
			other.p.Up(other.now, other.link, Params{})
			other.do()
			for i, f := range order {
				if got := kinds(other.take()); slices.Contains(got, wire.Data) {
					t.Errorf("after %d of 2: %v", i, got)
				}
				f(first, &other)
				other.p.Conn().m.Advance(other.now)
				other.do()
			}
			if got := kinds(append(first.take(), other.take()...)); !slices.Contains(got, wire.Data) {
				t.Errorf("at last: %v", got)
			}
		})
	}
}
