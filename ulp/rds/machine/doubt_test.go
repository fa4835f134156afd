package machine

import (
	"errors"
	"testing"
	"time"

	"urnic/ulp/rds/wire"
)

// pathed is a carrier with several paths, as TCP is.
func pathed(c *Config) { c.Carriers = []Carrier{{Paths: 8}} }

// congests has the peer tell of its congested ports.
func (r *rawPeer) congests(ports ...uint16) {
	r.t.Helper()
	var m wire.CongestionMap
	for _, port := range ports {
		m.Set(port)
	}
	r.says(wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, m[:])
}

// after lets some time pass.
func (r *rawPeer) after(d time.Duration) {
	r.now += d
	r.m.Advance(r.now)
	r.do()
}

// passes returns how many messages Send takes for port 5000 before it refuses one.
func (r *rawPeer) passes(s *Socket) int {
	r.t.Helper()
	for n := range 1000 {
		_, err := s.Send(r.now, Endpoint{there, 5000}, []byte("x"), Options{})
		switch {
		case errors.Is(err, ErrCongested):
			return n
		case err != nil:
			r.t.Fatal(err)
		}
	}
	return 1000
}

// writable returns how often a socket was told that it may send, and whether an event said that ports are free.
func (r *rawPeer) writable(s *Socket) (n int, event bool) {
	for _, e := range r.seen {
		if e.Kind == Writable && e.Socket == s {
			n++
		}
		event = event || e.Kind == Report && e.Event.Kind == Uncongested
	}
	r.seen = nil
	return n, event
}

// A Linux with several paths sends each map on one of them, so that an older one may be received last. A
// port that stays congested while nothing is told is tried: with one message, and then with twice as many
// each second, up to 64. A map begins that anew.
func TestPortsThatStayCongestedAreTried(t *testing.T) {
	r := newRawPeer(t, Params{}, pathed)
	r.probe(8, 0)
	s, idle := r.bind(), r.bind()
	r.congests(5000)
	if n := r.passes(s); n != 0 {
		t.Fatalf("%d messages pass to a congested port", n)
	}
	r.seen = nil
	r.after(time.Second - 1)
	if n, _ := r.writable(s); n != 0 || r.passes(s) != 0 {
		t.Error("it is tried before a second is over")
	}
	for i, want := range []int{1, 2, 4, 8, 16, 32, 64, 64, 64} {
		r.after(time.Second)
		n, event := r.writable(s)
		if n != 1 || !event {
			t.Errorf("try %d: the socket was told %d times that it may send, and by an event %v", i, n, event)
		}
		if n, _ := r.writable(idle); n != 0 {
			t.Error("a socket is told that never waited")
		}
		if n := r.passes(s); n != want {
			t.Errorf("try %d: %d messages pass, not %d", i, n, want)
		}
	}
	r.after(time.Second / 2)
	r.congests(5000, 6000)
	r.seen = nil
	r.after(time.Second / 2)
	if n := r.passes(s); n != 0 {
		t.Errorf("%d messages pass half a second after the peer has said that the port is congested", n)
	}
	r.after(time.Second)
	if n := r.passes(s); n != 1 {
		t.Errorf("%d messages pass a second later, not 1", n)
	}
	r.congests()
	if n := r.passes(s); n != 1000 {
		t.Errorf("%d messages pass to a free port", n)
	}
}

// What may be tried lapses as the peer tells of its ports.
func TestTriesLapseWithTheNextMap(t *testing.T) {
	r := newRawPeer(t, Params{}, pathed)
	r.probe(8, 0)
	s := r.bind()
	r.congests(5000)
	r.passes(s)
	r.after(time.Second)
	r.congests(5000)
	if n := r.passes(s); n != 0 {
		t.Errorf("%d messages pass to a port that has just been told to be congested", n)
	}
}

// Nothing is tried when no socket waits any more.
func TestNothingIsTriedForNobody(t *testing.T) {
	r := newRawPeer(t, Params{}, pathed)
	r.probe(8, 0)
	s := r.bind()
	r.congests(5000)
	r.passes(s)
	s.Close(r.now)
	r.seen = nil
	r.after(time.Minute)
	if _, event := r.writable(s); event {
		t.Error("an event says that ports are free")
	}
	if at, ok := r.m.Deadline(); ok {
		t.Errorf("there is a deadline, %v", at)
	}
}

// A peer with one path, or one of this project, sends its maps in order: what it says holds.
func TestCongestionOfOtherPeersHolds(t *testing.T) {
	for name, named := range map[string]func(*rawPeer){
		"one path":         func(r *rawPeer) { r.probe(1, 0) },
		"with generations": func(r *rawPeer) { r.probe(8, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRawPeer(t, Params{}, pathed)
			named(r)
			s := r.bind()
			r.congests(5000)
			r.passes(s)
			r.seen = nil
			r.after(time.Minute)
			if n, _ := r.writable(s); n != 0 || r.passes(s) != 0 {
				t.Error("a congested port is tried")
			}
		})
	}
}
