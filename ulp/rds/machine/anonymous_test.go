package machine

import (
	"errors"
	"net/netip"
	"testing"

	"urnic/ulp/rds/wire"
)

// An anonymousPeer has eight paths over TCP and does not tell its generation, nor which path
// a connection is for: Linux.
type anonymousPeer struct {
	t      *testing.T
	m      *Machine
	s      *Socket
	now    Time
	links  map[int]Link // of paths that the node dials, or the peer has made
	paths  map[int]*Path
	sent   map[int][]wire.Header // by path
	dialed []int
	seen   []Effect
	slow   bool // what has come is not read at once
}

// newAnonymousPeer makes a node with a lower address than its peer's, or a higher one, and
// completes the handshake on path 0.
func newAnonymousPeer(t *testing.T, lower bool) *anonymousPeer {
	t.Helper()
	own, peer := here, there
	if !lower {
		own, peer = there, here
	}
	m, err := New(Config{Addr: own, Generation: 1, Carriers: []Carrier{{Name: "tcp", Paths: MaxPaths, OrderedDial: true}}})
	if err != nil {
		t.Fatal(err)
	}
	a := &anonymousPeer{t: t, m: m, links: map[int]Link{}, paths: map[int]*Path{}, sent: map[int][]wire.Header{}}
	if a.s, err = m.Bind(4000, 0, 0); err != nil {
		t.Fatal(err)
	}
	if lower {
		a.send(peer, "first")
		a.up(0)
	} else {
		a.connected(peer)
	}
	a.says(0, wire.Header{Sequence: 1, SourcePort: wire.ProbePort, Extensions: paths(t, MaxPaths)}, "")
	return a
}

// paths are the extensions of a probe or its answer.
func paths(t *testing.T, n uint16) [wire.ExtensionLen]byte {
	t.Helper()
	x := wire.Extensions{Has: 1 << wire.ExtNPaths, Paths: n}
	b, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (a *anonymousPeer) send(peer netip.Addr, data string) {
	a.t.Helper()
	if _, err := a.s.Send(a.now, Endpoint{peer, 4000}, []byte(data), Options{}); err != nil {
		a.t.Fatal(err)
	}
	a.do()
}

// do carries out the node's effects.
func (a *anonymousPeer) do() {
	for todo := a.m.Effects(); todo != nil; todo = a.m.Effects() {
		for _, e := range append([]Effect(nil), todo...) {
			a.seen = append(a.seen, e)
			switch e.Kind {
			case Dial:
				a.dialed = append(a.dialed, e.Path.Index())
				a.paths[e.Path.Index()], a.links[e.Path.Index()] = e.Path, e.Link
			case Transmit:
				i := e.Path.Index()
				for s := (Segment{}); e.Path.Pull(a.now, a.links[i], &s); {
					a.sent[i] = append(a.sent[i], s.Header)
				}
			case CatchUp:
				if !a.slow {
					e.Path.CaughtUp(a.now, e.Link)
				}
			default:
			}
		}
	}
}

// up completes the connection that the node dials for a path.
func (a *anonymousPeer) up(i int) {
	a.paths[i].Up(a.now, a.links[i], Params{})
	a.do()
}

// connects has the peer connect, and returns for which path the node takes that.
func (a *anonymousPeer) connects(peer netip.Addr) (int, error) {
	p, link, err := a.m.Request(a.now, Request{Key: Key{Peer: peer}, Path: 5}) // what the port seems to tell means nothing
	if err != nil {
		a.do()
		return 0, err
	}
	a.paths[p.Index()], a.links[p.Index()] = p, link
	a.up(p.Index())
	return p.Index(), nil
}

// connected has the peer connect, and returns for which path the node takes that.
func (a *anonymousPeer) connected(peer netip.Addr) int {
	a.t.Helper()
	i, err := a.connects(peer)
	if err != nil {
		a.t.Fatal(err)
	}
	return i
}

// says has the peer send a message on a path.
func (a *anonymousPeer) says(i int, h wire.Header, data string) Verdict {
	h.Len = uint32(len(data))
	buf, verdict := a.paths[i].Begin(a.now, a.links[i], &h, len(data))
	if verdict == Take {
		copy(buf, data)
		a.paths[i].Fill(a.now, a.links[i], len(data))
	}
	a.do()
	return verdict
}

// answers has the peer answer the probe.
func (a *anonymousPeer) answers(sequence uint64) {
	a.says(0, wire.Header{Sequence: sequence, DestPort: wire.ProbePort, Extensions: paths(a.t, MaxPaths)}, "")
}

func (a *anonymousPeer) cut(i int) {
	a.paths[i].Down(a.now, a.links[i], errors.New("cut"))
	a.do()
}

// passes has the peer answer the ping of a link's trial, with the next number of its path.
func (a *anonymousPeer) passes(i int) {
	a.t.Helper()
	for _, h := range a.sent[i] {
		if h.Kind() == wire.Ping && h.SourcePort != wire.ProbePort && h.Sequence == a.paths[i].trial.ping.h.Sequence {
			a.says(i, wire.Header{Sequence: a.paths[i].last + 1, DestPort: h.SourcePort}, "")
			return
		}
	}
	a.t.Fatalf("path %d is not tried: %v", i, a.sent[i])
}

// later lets the time pass that the node waits for a refusal, and before it dials again.
func (a *anonymousPeer) later() {
	a.now += max(refusal, regather)
	a.m.Advance(a.now)
	a.do()
}

// wantReceived checks what the node's socket has received.
func (a *anonymousPeer) wantReceived(want ...string) {
	a.t.Helper()
	for _, w := range want {
		if msg, ok := a.s.Receive(a.now); !ok || string(msg.Data) != w {
			a.t.Errorf("received %v, %v; want %q", msg, ok, w)
		}
	}
	if msg, ok := a.s.Receive(a.now); ok {
		a.t.Errorf("received %q as well", msg.Data)
	}
}

// count returns how many effects of a kind there were.
func (a *anonymousPeer) count(k EffectKind) (n int) {
	for _, e := range a.seen {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// all brings up all paths of a peer with a lower address.
func (a *anonymousPeer) all() {
	a.t.Helper()
	a.answers(2)
	for i := 1; i < MaxPaths; i++ {
		if got, err := a.connects(here); got != i || err != nil {
			a.t.Fatalf("path %d, %v; want %d", got, err, i)
		}
	}
	a.later()
}

func data(sequence uint64, port uint16, flags wire.Flags) wire.Header {
	return wire.Header{Sequence: sequence, SourcePort: port, DestPort: 4000, Flags: flags}
}

// What the peer has sent on path 0 before it knew of others is received before what it
// sends on others.
func TestDataOnOtherPathsWaitForPath0(t *testing.T) {
	a := newAnonymousPeer(t, false)
	if i := a.connected(here); i != 1 {
		t.Fatal(i)
	}
	if v := a.says(1, data(1, 5000, 0), "second"); v != Wait {
		t.Errorf("data on path 1 before the pong: verdict %v", v)
	}
	a.says(0, data(2, 5000, 0), "first")
	a.answers(3)
	if a.count(Resume) != 1 {
		t.Errorf("%d resumed", a.count(Resume))
	}
	a.says(1, data(1, 5000, 0), "second")
	a.wantReceived("first", "second")
}

// The pong may take longer than a handshake, if TCP has to send it again: data on other paths wait for it all the same. One
// that never comes is not waited for without end.
func TestDataOnOtherPathsWaitForAPongThatIsLate(t *testing.T) {
	for _, late := range []bool{true, false} {
		a := newAnonymousPeer(t, false)
		if i := a.connected(here); i != 1 {
			t.Fatal(i)
		}
		a.paths[0].Acked(a.now, a.links[0], 1) // TCP, the probe
		end := a.m.cfg.Handshake + a.m.cfg.Silence
		for ; a.now < end; a.now += a.m.cfg.Handshake / 2 {
			a.m.Advance(a.now)
			if v := a.says(1, data(1, 5000, 0), "second"); v != Wait {
				t.Fatalf("data on path 1 after %v: verdict %v", a.now, v)
			}
		}
		if late {
			a.says(0, data(2, 5000, 0), "first")
			a.answers(3)
		} else {
			a.now = end + a.m.cfg.Handshake
			a.m.Advance(a.now)
			a.do()
		}
		if a.count(Resume) != 1 {
			t.Errorf("late %v: %d resumed", late, a.count(Resume))
		}
		a.says(1, data(1, 5000, 0), "second")
		if late {
			a.wantReceived("first", "second")
		} else {
			a.wantReceived("second")
		}
	}
}

// Two connections are lost, and come back on each other's paths: what comes again is told
// from what is new by the port that it is from.
func TestDuplicatesOfAnAnonymousPeerAreFoundByPort(t *testing.T) {
	a := newAnonymousPeer(t, false)
	a.all()
	for n := uint64(1); n <= 9; n++ {
		a.says(1, data(n, 5000, 0), "of the one")
		a.says(2, data(n+100, 6000, 0), "of the other")
	}
	a.wantReceived("of the one", "of the other", "of the one", "of the other", "of the one", "of the other", "of the one", "of the other",
		"of the one", "of the other", "of the one", "of the other", "of the one", "of the other", "of the one", "of the other", "of the one", "of the other")
	a.cut(1)
	a.cut(2)
	for _, want := range []int{1, 2} {
		if i, err := a.connects(here); i != want || err != nil {
			t.Fatal(i, err)
		}
	}
	again := wire.Retransmitted | wire.AckRequired
	a.says(2, data(9, 5000, again), "of the one")
	a.says(2, data(10, 5000, again), "new")
	a.says(1, data(109, 6000, again), "of the other")
	a.says(1, data(110, 6000, 0), "new too")
	a.wantReceived("new", "new too")
}

// After two connections have come back on each other's paths, a duplicate may be the first on one. What
// follows it has a lower number than the path has seen: no rule is broken, and nothing is lost.
func TestPongBehindADuplicateOfAnAnonymousPeer(t *testing.T) {
	a := newAnonymousPeer(t, false)
	a.all()
	a.says(1, data(40, 5000, 0), "of the one")
	a.says(2, data(140, 6000, 0), "of the other")
	a.wantReceived("of the one", "of the other")
	a.cut(1)
	a.cut(2)
	for _, want := range []int{1, 2} {
		if i, err := a.connects(here); i != want || err != nil {
			t.Fatal(i, err)
		}
	}
	a.says(2, data(40, 5000, wire.Retransmitted), "of the one")
	for n, h := range []wire.Header{
		{SourcePort: 0, DestPort: 4000},           // a pong
		{SourcePort: 5001, DestPort: 0},           // a ping
		{SourcePort: 0, DestPort: wire.ProbePort}, // the answer to a probe
		data(0, 5000, 0),
	} {
		h.Sequence = 41 + uint64(n)
		if v := a.says(2, h, ""); v != Take || a.m.Counters().Violations != 0 {
			t.Errorf("%v: verdict %v, %d violations", &h, v, a.m.Counters().Violations)
		}
	}
	a.wantReceived("")
}

// The node with the higher address can't know which path of the peer's a new connection is
// for. What may have arrived is not sent again, and reported.
func TestSentToAnAnonymousPeerOnALostConnection(t *testing.T) {
	a := newAnonymousPeer(t, false)
	a.all()
	a.send(here, "sent")
	path := a.m.conns[Key{Peer: here}].pathOf(4000).Index()
	a.cut(path)
	a.send(here, "not sent")
	var lost []error
	for _, e := range a.seen {
		if e.Kind == Report && e.Event.Kind == MessageLost {
			lost = append(lost, e.Event.Err)
		}
	}
	if len(lost) != 1 || !errors.Is(lost[0], ErrPathUnknown) {
		t.Errorf("lost: %v", lost)
	}
	before := len(a.sent[path])
	if i, err := a.connects(here); i != path || err != nil {
		t.Fatal(i, err)
	}
	a.later()
	kinds := map[wire.Kind]int{}
	for _, h := range a.sent[path][before:] {
		kinds[h.Kind()]++
		if h.Flags&wire.Retransmitted != 0 && h.Kind() == wire.Data {
			t.Errorf("sent again: %v", &h)
		}
	}
	if kinds[wire.Data] != 1 {
		t.Errorf("on the new connection were sent: %v", kinds)
	}
}

// The node with the lower address ends all connections when one is lost, lets what has come be read, and
// makes them one after the other, so that the peer's first path that is down is always the same.
func TestConnectionsToAnAnonymousPeerAreMadeInOrder(t *testing.T) {
	a := newAnonymousPeer(t, true)
	order := func(want ...int) {
		t.Helper()
		if len(a.dialed) != len(want) {
			t.Fatalf("dialled %v; want %v", a.dialed, want)
		}
		for i := range want {
			if a.dialed[i] != want[i] {
				t.Fatalf("dialled %v; want %v", a.dialed, want)
			}
		}
		a.dialed = nil
	}
	order(0)
	a.answers(2)
	for i := 1; i < MaxPaths; i++ {
		order(i) // when the one before it is taken
		a.up(i)
		order()
		a.passes(i)
	}
	order()
	a.says(3, data(2, 5000, 0), "before")
	a.cut(3)
	if a.count(Finish) != MaxPaths-1 || a.count(Hangup) != 0 {
		t.Fatalf("%d connections are to be ended, and %d hung up", a.count(Finish), a.count(Hangup))
	}
	a.says(5, data(2, 6000, 0), "what had come")
	a.wantReceived("before", "what had come")
	for i := range MaxPaths {
		if i != 3 {
			a.later()
			order()
			a.cut(i)
		}
	}
	a.later()
	order(0)
	a.up(0)
	a.says(0, wire.Header{Flags: wire.CongestionBitmap}, string(make([]byte, wire.MapLen)))
	for i := range MaxPaths - 1 {
		order(i + 1)
		a.up(i + 1)
		order()
		a.later() // nothing is heard: it is not refused
	}
	order()
	for i := range MaxPaths {
		a.passes(i)
	}
	order()
}

// A connection is not given up for a new one before what came on it is read: the peer
// counts it as delivered.
func TestANewConnectionWaitsForTheOldOne(t *testing.T) {
	a := newAnonymousPeer(t, false)
	if _, err := a.connects(here); err != nil {
		t.Fatal(err)
	}
	a.all2()
	a.seen = nil
	maps := len(a.sent[3])
	if _, err := a.connects(here); !errors.Is(err, ErrPresent) || a.count(Hangup)+a.count(Drain)+a.count(Reconsider) != 0 {
		t.Errorf("all paths are up: %v, %v", err, a.seen)
	}
	if len(a.sent[3]) != maps+1 || a.sent[3][maps].Kind() != wire.Map {
		t.Errorf("sent, so that a lost connection shows: %v", a.sent[3][maps:])
	}
	if a.cut(3); a.count(Reconsider) != 1 {
		t.Errorf("%d times it was worth asking again", a.count(Reconsider))
	}
	if i, err := a.connects(here); i != 3 || err != nil {
		t.Errorf("path %d, %v", i, err)
	}
	one := newAnonymousPeer(t, false)
	one.m.conns[Key{Peer: here}].agreed = 1
	if _, err := one.connects(here); !errors.Is(err, ErrPresent) || one.count(Drain) != 1 {
		t.Errorf("%v, %d drained", err, one.count(Drain))
	}
	early := newAnonymousPeer(t, false)
	early.m.conns[Key{Peer: here}].agreed = 0
	if _, err := early.connects(here); !errors.Is(err, ErrPresent) || early.count(Drain) != 0 {
		t.Errorf("%v, %d drained", err, early.count(Drain))
	}
}

// all2 brings up the paths that are left.
func (a *anonymousPeer) all2() {
	for i := 2; i < MaxPaths; i++ {
		if _, err := a.connects(here); err != nil {
			a.t.Fatal(err)
		}
	}
}

// Linux begins its numbers anew in the midst of a connection, when it learns that this node has
// another generation than before. It does so once.
func TestAnAnonymousPeerThatLearnsOfARestart(t *testing.T) {
	a := newAnonymousPeer(t, false)
	a.all()
	a.says(4, data(107, 5000, wire.Retransmitted), "of the former node")
	a.says(4, data(1, 5000, 0), "to this one")
	a.says(4, data(2, 5000, 0), "more")
	a.wantReceived("of the former node", "to this one", "more")
	if v := a.says(4, data(1, 5000, 0), "again"); v != Take || a.m.Counters().Violations != 1 {
		t.Errorf("once more: verdict %v, %d violations", v, a.m.Counters().Violations)
	}
	a.wantReceived()
}

// A connection that is not complete yet is not given up for a new one either.
func TestANewConnectionWaitsForAnIncompleteOne(t *testing.T) {
	a := newAnonymousPeer(t, false)
	a.all()
	a.cut(2)
	p, link, err := a.m.Request(a.now, Request{Key: Key{Peer: here}, Path: -1})
	if err != nil || p.Index() != 2 {
		t.Fatal(p.Index(), err)
	}
	a.do()
	a.seen = nil
	if _, err := a.connects(here); !errors.Is(err, ErrPresent) || a.count(Hangup) != 0 {
		t.Errorf("%v, %d hung up", err, a.count(Hangup))
	}
	p.Up(a.now, link, Params{})
	if a.do(); a.count(Reconsider) != 1 {
		t.Errorf("%d times it was worth asking again", a.count(Reconsider))
	}
}

// A path of the peer's is lost and comes back on another path of this node, whose link is read
// before what had come on the lost one is: what the peer takes for delivered is, and in order.
func TestWhatHasComeOnALostConnectionIsFirst(t *testing.T) {
	a := newAnonymousPeer(t, false)
	a.all()
	a.cut(1)
	a.slow, a.seen = true, nil
	if i, err := a.connects(here); i != 1 || err != nil { // of the path that was path 2 here
		t.Fatal(i, err)
	}
	if a.count(CatchUp) != MaxPaths-1 {
		t.Fatalf("%d links are to catch up", a.count(CatchUp))
	}
	again := wire.Retransmitted | wire.AckRequired
	for _, h := range []wire.Header{data(11, 5000, again), {Flags: wire.CongestionBitmap}} {
		n := 0
		if h.Kind() == wire.Map {
			n = wire.MapLen
		}
		if v := a.says(1, h, string(make([]byte, n))); v != Wait {
			t.Errorf("%v: verdict %v", &h, v)
		}
	}
	for i := range MaxPaths {
		switch i {
		case 1:
		case 2: // its end is read as well
			a.says(2, data(10, 5000, again), "ten")
			a.cut(2)
		default:
			if a.count(Resume) != 0 {
				t.Fatalf("before path %d has caught up, path 1 may go on", i)
			}
			a.paths[i].CaughtUp(a.now, a.links[i]-1) // not this one
			a.paths[i].CaughtUp(a.now, a.links[i])
			a.do()
		}
	}
	if a.count(Resume) != 1 {
		t.Fatalf("path 1 was resumed %d times", a.count(Resume))
	}
	a.says(1, data(11, 5000, again), "eleven")
	a.wantReceived("ten", "eleven")
}

// A peer that has restarted connects once, while this node asks it to: that is path 0, and it is sent the
// probe, by which it learns that there are other paths.
func TestAnAnonymousPeerThatHasRestarted(t *testing.T) {
	probes := func(a *anonymousPeer, path int) (n int) {
		for _, h := range a.sent[path] {
			if h.Kind() == wire.Probe {
				n++
			}
		}
		return n
	}
	lost := func(t *testing.T) *anonymousPeer {
		a := newAnonymousPeer(t, false)
		a.all()
		a.send(here, "for path 0")
		for i := MaxPaths - 1; i > 0; i-- {
			a.cut(i)
		}
		a.sent, a.dialed = map[int][]wire.Header{}, nil
		return a
	}
	t.Run("path 0 is free", func(t *testing.T) {
		a := lost(t)
		a.cut(0)
		a.send(here, "again")
		a.later()
		if len(a.dialed) == 0 || a.paths[0].state != Connecting {
			t.Fatalf("dialled %v, %v", a.dialed, a.paths[0].state)
		}
		if i, err := a.connects(here); i != 0 || err != nil || probes(a, 0) != 1 {
			t.Errorf("path %d, %v, %d probes", i, err, probes(a, 0))
		}
	})
	t.Run("the peer's system has accepted the knock", func(t *testing.T) {
		a := lost(t)
		a.cut(0)
		a.send(here, "again")
		a.later()
		a.up(0) // RDS is still to reset it
		knock := a.links[0]
		if i, err := a.connects(here); i != 0 || err != nil || a.links[0] == knock || probes(a, 0) == 0 {
			t.Errorf("path %d, %v, link %d, %d probes", i, err, a.links[0], probes(a, 0))
		}
	})
	t.Run("path 0 ends later", func(t *testing.T) {
		a := lost(t)
		if i, err := a.connects(here); i != 1 || err != nil || probes(a, 1) != 0 {
			t.Fatalf("path %d, %v, %d probes", i, err, probes(a, 1))
		}
		a.cut(0)
		a.send(here, "again")
		a.later()
		if len(a.dialed) == 0 || probes(a, 1) == 0 {
			t.Errorf("dialled %v, %d probes", a.dialed, probes(a, 1))
		}
	})
}

// A connection that is being made when another one is lost is ended when it is up, and read before: the peer may
// have sent on it already what its TCP was told has arrived.
func TestAConnectionThatIsBeingMadeIsReadToItsEnd(t *testing.T) {
	a := newAnonymousPeer(t, true)
	a.answers(2)
	a.up(1)
	a.passes(1) // path 2 is dialed
	a.dialed = nil
	a.cut(1)
	if a.count(Hangup) != 0 || a.count(Finish) != 1 {
		t.Fatalf("%d connections hung up, %d ended", a.count(Hangup), a.count(Finish))
	}
	sent := len(a.sent[2])
	if a.up(2); a.count(Finish) != 2 || a.count(Hangup) != 0 {
		t.Errorf("the new one: %d hung up, %d ended", a.count(Hangup), a.count(Finish)-1)
	}
	a.says(2, data(1, 6000, 0), "what had come")
	a.wantReceived("what had come")
	if len(a.sent[2]) != sent {
		t.Errorf("sent on it: %v", a.sent[2][sent:])
	}
	a.cut(0)
	if a.later(); len(a.dialed) != 0 {
		t.Errorf("dialled %v before all have ended", a.dialed)
	}
	a.cut(2)
	if a.later(); len(a.dialed) != 1 || a.dialed[0] != 0 {
		t.Errorf("dialled %v", a.dialed)
	}
	a.up(0)
	a.send(there, "goes on")
	for _, h := range a.sent[0] {
		if h.Kind() == wire.Data && h.Sequence != 0 {
			t.Errorf("sent during the trial: %v", h)
		}
	}
}

// A connection that is being made when another one is lost, and fails, is over.
func TestAConnectionThatIsBeingMadeMayFail(t *testing.T) {
	a := newAnonymousPeer(t, true)
	a.answers(2)
	a.dialed = nil // path 1 is dialed
	a.cut(0)
	a.later()
	if len(a.dialed) != 0 {
		t.Errorf("dialled %v before all have ended", a.dialed)
	}
	a.cut(1)
	if a.later(); len(a.dialed) != 1 || a.dialed[0] != 0 {
		t.Errorf("dialled %v", a.dialed)
	}
}

// A peer that does not end its side of a connection is not waited for without end.
func TestAConnectionThatThePeerDoesNotEnd(t *testing.T) {
	a := newAnonymousPeer(t, true)
	a.answers(2)
	a.up(1)
	a.passes(1)
	a.up(2)
	a.cut(1)
	if a.count(Finish) != 2 || a.count(Drain) != 0 {
		t.Fatalf("%d connections are to be ended, %d drained", a.count(Finish), a.count(Drain))
	}
	a.says(0, wire.Header{Sequence: 3, DestPort: wire.ProbePort, Extensions: paths(t, MaxPaths)}, "") // an answer that was on its way
	a.now += a.m.cfg.Handshake
	a.m.Advance(a.now)
	if a.do(); a.count(Drain) != 2 || a.count(Hangup) != 0 {
		t.Errorf("%d are drained, %d hung up", a.count(Drain), a.count(Hangup))
	}
}
