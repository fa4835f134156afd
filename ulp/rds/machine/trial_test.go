package machine

import (
	"errors"
	"testing"

	"urnic/ulp/rds/wire"
)

// newTried makes a node with all paths to an anonymous peer with a higher address up. The paths have passed their trials.
func newTried(t *testing.T) *anonymousPeer {
	t.Helper()
	a := newAnonymousPeer(t, true)
	a.answers(2)
	for i := 1; i < MaxPaths; i++ {
		a.up(i)
		a.passes(i)
	}
	for i, p := range a.paths {
		p.Acked(a.now, a.links[i], p.next-1)
	}
	return a
}

// lose cuts all links, and lets path 0 be dialed again.
func (a *anonymousPeer) lose() {
	for i := range a.paths {
		a.cut(i)
	}
	a.dialed, a.sent = nil, map[int][]wire.Header{}
	a.later()
	a.up(0)
}

// on returns a socket whose messages go over a path.
func (a *anonymousPeer) on(i int) *Socket {
	a.t.Helper()
	for {
		s, err := a.m.Bind(0, 0, 0)
		if err != nil {
			a.t.Fatal(err)
		}
		if a.paths[0].Conn().pathOf(s.port).index == i {
			return s
		}
	}
}

// post sends a message from a socket.
func (a *anonymousPeer) post(s *Socket, data string) {
	a.t.Helper()
	if _, err := s.Send(a.now, Endpoint{there, 4000}, []byte(data), Options{}); err != nil {
		a.t.Fatal(err)
	}
	a.do()
}

// kinds returns the kinds of what was sent on a path, without maps, probes and answers.
func (a *anonymousPeer) kinds(i int) (all []wire.Kind) {
	for _, h := range a.sent[i] {
		if k := h.Kind(); k != wire.Map && k != wire.Probe && k != wire.Pong {
			all = append(all, k)
		}
	}
	return all
}

// The numbers of each path are higher than those of the paths before it, and say that they are sent again, the ping's as well.
func TestThePathsOfATrialHaveRangesOfNumbers(t *testing.T) {
	a := newTried(t)
	last := uint64(0)
	for i := range MaxPaths {
		a.post(a.on(i), "x")
	}
	a.lose()
	a.says(0, wire.Header{Flags: wire.CongestionBitmap}, string(make([]byte, wire.MapLen)))
	for i := 1; i < MaxPaths; i++ {
		a.up(i)
		a.later() // it is not refused
	}
	for i := range MaxPaths {
		for j := i + 1; j < MaxPaths; j++ {
			if got := a.kinds(j); len(got) > 0 {
				t.Errorf("sent on path %d before path %d has passed: %v", j, i, got)
			}
		}
		for _, h := range a.sent[i] {
			if h.Kind() != wire.Data && h.Kind() != wire.Ping || h.SourcePort == wire.ProbePort {
				continue
			}
			if h.Sequence <= last || h.Flags&wire.Retransmitted == 0 {
				t.Errorf("path %d: %v after number %d", i, h, last)
			}
			last = h.Sequence
		}
		a.passes(i)
	}
}

// On a link in its trial goes what is sent again, and the ping behind it. What is new waits for the pong; TCP's
// acknowledgements count for nothing before.
func TestATrial(t *testing.T) {
	a := newTried(t)
	s := a.on(0)
	a.post(s, "sent before")
	a.lose()
	a.post(s, "new")
	a.says(0, wire.Header{Flags: wire.CongestionBitmap}, string(make([]byte, wire.MapLen)))
	if got := a.kinds(0); len(got) != 2 || got[0] != wire.Data || got[1] != wire.Ping || a.sent[0][len(a.sent[0])-1].Flags&wire.Retransmitted == 0 {
		t.Fatalf("sent %v", a.sent[0])
	}
	unsent := s.Unsent()
	a.paths[0].Acked(a.now, a.links[0], a.paths[0].next-1)
	if s.Unsent() != unsent {
		t.Errorf("before the pong, %d bytes of %d are unsent", s.Unsent(), unsent)
	}
	a.passes(0)
	if got := a.kinds(0); len(got) != 3 || got[2] != wire.Data {
		t.Errorf("after the pong, sent %v", a.sent[0])
	}
	if s.Unsent() >= unsent {
		t.Errorf("%d bytes are unsent after the pong", s.Unsent())
	}
	a.paths[0].Acked(a.now, a.links[0], a.paths[0].next-1)
	if s.Unsent() != 0 {
		t.Errorf("%d bytes are unsent at the end", s.Unsent())
	}
}

// A link whose ping gets no pong is another path's: all are made again, and what was sent stays to be sent again. If that
// happens again and again, the peer's paths have another order for good: what may have arrived is reported as lost, and the numbers
// are new ones, which the peer takes on any path.
func TestATrialThatFails(t *testing.T) {
	a := newTried(t)
	s := a.on(0)
	a.post(s, "sent before")
	a.lose()
	for n := range maxTrials {
		a.seen = nil
		first := a.paths[0].next
		a.now += a.m.cfg.Handshake << n
		a.m.Advance(a.now)
		if a.do(); a.count(Finish) != 1 {
			t.Fatalf("trial %d: %v", n, a.seen)
		}
		lost := 0
		for _, e := range a.seen {
			if e.Kind == Report && e.Event.Kind == MessageLost && e.Event.Socket != nil {
				if lost++; !errors.Is(e.Event.Err, ErrPathUnknown) {
					t.Error(e.Event.Err)
				}
			}
		}
		switch last := n == maxTrials-1; {
		case last != (lost == 1):
			t.Errorf("trial %d: %d messages are lost", n, lost)
		case last != (a.paths[0].next > uint64(ranges*pathNumbers)):
			t.Errorf("trial %d: the next number is %d, after %d", n, a.paths[0].next, first)
		}
		a.cut(0)
		a.sent = map[int][]wire.Header{}
		a.later()
		a.up(0)
		if got := a.kinds(0); len(got) != 2-lost { // what was sent, unless it is lost, and the ping
			t.Errorf("trial %d: sent %v", n+1, a.sent[0])
		}
	}
	a.passes(0)
	a.post(s, "goes on")
	if got := a.kinds(0); len(got) != 2 || got[1] != wire.Data {
		t.Errorf("sent %v", a.sent[0])
	}
}

// Linux numbers what it has sent on path 0, before it knew of others, as messages of path 0. A low number on the port's own path is no
// duplicate of those.
func TestNumbersOfBeforeAreThoseOfPath0(t *testing.T) {
	a := newAnonymousPeer(t, true)
	a.says(0, data(2, 5000, 0), "first")
	a.says(0, data(3, 5000, 0), "second")
	a.answers(4)
	a.up(1)
	a.passes(1)
	a.lose()
	a.says(0, data(3, 5000, wire.Retransmitted), "second")
	a.passes(0)
	a.up(1)
	a.passes(1)
	a.says(1, data(2, 5000, wire.Retransmitted), "third")
	a.wantReceived("first", "second", "third")
	a.says(1, data(3, 5000, 0), "fourth")
	a.says(1, data(9, 5000, 0), "fifth")
	a.wantReceived("fourth", "fifth")
	// What is left of path 0 is new, though its number is lower than those of the port's own path.
	a.says(0, data(5, 5000, wire.Retransmitted), "of before")
	a.wantReceived("of before")
}

// What can't be judged while it is not known which path a link is waits for the trial, with what comes behind it from the same port.
func TestWhatATrialDecides(t *testing.T) {
	for name, end := range map[string]func(a *anonymousPeer){
		"passed": func(a *anonymousPeer) { a.passes(1) },
		"lost":   func(a *anonymousPeer) { a.cut(1) },
		"failed": func(a *anonymousPeer) {
			a.now += a.m.cfg.Handshake
			a.m.Advance(a.now)
			a.do()
			a.cut(1)
		},
		"memory": func(a *anonymousPeer) {
			a.m.cfg.NodeMemory = 1
			if v := a.says(1, data(9, 7000, 0), "too much"); v != Wait {
				t.Errorf("verdict %v", v)
			}
		},
	} {
		a := newAnonymousPeer(t, true)
		a.says(0, data(2, 5000, 0), "first")
		a.answers(4)
		a.up(1)
		a.says(1, data(1, 5000, wire.Retransmitted), "new, or one of path 0 again")
		a.says(1, data(2, 6000, 0), "of another port")
		a.says(1, data(3, 5000, 0), "behind")
		a.wantReceived("first", "of another port")
		held := a.m.Held()
		if end(a); name == "failed" { // not delivered twice, at least
			a.wantReceived("behind")
		} else {
			a.wantReceived("new, or one of path 0 again", "behind")
		}
		if a.m.Held() >= held {
			t.Errorf("%s: %d bytes are held after %d", name, a.m.Held(), held)
		}
	}
}

// A link may pass its trial and be another path all the same, as a path of Linux takes any number before it has
// received one. What has come on it and comes again on its own path is not delivered twice.
func TestWhatHasComeOnALinkThatPassedForAnotherPath(t *testing.T) {
	for name, ways := range map[string][2]int{"path 1 for path 0": {0, 1}, "path 0 for path 1": {1, 0}} {
		a := newTried(t)
		a.says(ways[1], data(10, 5000, 0), "first")
		a.lose()
		a.passes(0)
		a.up(1)
		a.passes(1)
		a.says(ways[0], data(11, 5000, 0), "second") // of the peer's other path
		a.wantReceived("first", "second")
		a.lose()
		a.passes(0)
		a.up(1)
		a.passes(1)
		a.says(ways[1], data(11, 5000, wire.Retransmitted), "second")
		a.wantReceived()
		if ways[1] == 1 { // what has the number of another is no duplicate
			a.says(1, data(12, 5000, wire.Retransmitted), "third")
			a.wantReceived("third")
		}
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// A link that does not pass its trial may have been another path's of the peer. What has come on it and comes again on the
// port's own path is not delivered twice.
func TestWhatHasComeOnALinkThatWasAnotherPaths(t *testing.T) {
	for name, end := range map[string]func(a *anonymousPeer){
		"lost": func(*anonymousPeer) {},
		"failed": func(a *anonymousPeer) {
			a.now += a.m.cfg.Handshake
			a.m.Advance(a.now)
			a.do()
		},
	} {
		a := newTried(t)
		a.says(1, data(10, 5000, 0), "first")
		a.lose()
		a.says(0, data(11, 5000, 0), "second") // of the peer's path 1
		a.wantReceived("first", "second")
		end(a)
		a.lose()
		a.passes(0)
		a.up(1)
		a.passes(1)
		a.says(1, data(11, 5000, wire.Retransmitted), "second")
		a.says(1, data(12, 5000, 0), "third")
		a.wantReceived("third")
		if t.Failed() {
			t.Fatalf("after a trial that was %s", name)
		}
	}
}
