package activenet

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

// Events happen in the order of their times, and of the calls where those are equal.
func TestEvents(t *testing.T) {
	n := New(1)
	var got []string
	note := func(what string) func() {
		return func() { got = append(got, fmt.Sprintf("%s@%v", what, n.Now())) }
	}
	n.At(3*ms, note("c"))
	n.At(1*ms, note("a"))
	n.At(3*ms, note("d"))
	n.After(2*ms, func() {
		note("b")()
		n.At(0, note("late"))
		n.After(-ms, note("later"))
	})
	n.At(4*ms, note("e"))
	n.At(5*ms, note("never"))
	n.Run(4 * ms)
	if want := "a@1ms b@2ms late@2ms later@2ms c@3ms d@3ms e@4ms"; strings.Join(got, " ") != want {
		t.Errorf("%v, not %s", got, want)
	}
	if n.Now() != 4*ms {
		t.Errorf("the time is %v", n.Now())
	}
}

// That holds for many events, too.
func TestManyEventsOfOneTime(t *testing.T) {
	n := New(1)
	var got, want []int
	for i := range 1000 {
		n.At(time.Duration(1+i%3)*ms, func() { got = append(got, i%3*1000+i) })
		want = append(want, i%3*1000+i)
	}
	slices.Sort(want)
	n.Run(time.Second)
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestEvery(t *testing.T) {
	n := New(1)
	count := 0
	n.Every(10*ms, func() { count++ })
	n.Every(0, func() { t.Error("an interval of 0") })
	n.Run(105 * ms)
	if count != 10 || n.Now() != 105*ms {
		t.Errorf("%d times in %v", count, n.Now())
	}
}

// A catcher notes when packets come to a link, and does with them what it is told.
type catcher struct {
	at     []time.Duration
	action Action
}

func (c *catcher) Arrive(l *Link, _ *Packet) Action {
	c.at = append(c.at, l.Now())
	return c.action
}

// line makes nodes a, b, c with links of a configuration from a to b and of none from b to c, and
// a catcher at b.
func line(seed uint64, cfg LinkConfig) (*Network, *Link, *catcher) {
	n := New(seed)
	a, b, c := n.Node("a"), n.Node("b"), n.Node("c")
	first, second := n.Link(a, b, cfg), n.Link(b, c, LinkConfig{})
	got := &catcher{}
	second.Load(got)
	return n, first, got
}

// send has packets of 1000 bytes go from a to c at once.
func send(n *Network, count int) {
	path, err := n.path(n.nodes[0], n.nodes[2])
	if err != nil {
		panic(err)
	}
	for range count {
		n.inject(Packet{Bytes: 1000}, path)
	}
}

// A packet takes its bits over the rate, and the delay; those behind it wait, as many as the
// queue has room for.
func TestLinkTiming(t *testing.T) {
	n, l, got := line(1, LinkConfig{Rate: 8e6, Delay: 5 * ms, Queue: 3}) // 1 ms a packet
	n.At(10*ms, func() { send(n, 6) })
	n.At(14500*time.Microsecond, func() { send(n, 1) })
	n.Run(time.Second)
	want := []time.Duration{16 * ms, 17 * ms, 18 * ms, 19 * ms, 20500 * time.Microsecond}
	if !slices.Equal(got.at, want) {
		t.Errorf("packets come at %v, not %v", got.at, want)
	}
	s := l.Stats
	if s.Packets != 7 || s.Overflow != 2 || s.Bytes != 5000 || s.MaxQueue != 3 || s.Cross != 7 || s.CrossDropped != 2 {
		t.Errorf("%+v", s)
	}
	// All packets are there for the next time.
	if len(n.free) != 5 {
		t.Errorf("%d packets are free of 5 that were needed", len(n.free))
	}
	// 3, 2 and 1 packets have waited for a millisecond each.
	if mean := l.MeanQueue(); mean < 0.00599 || mean > 0.00601 {
		t.Errorf("on average %v packets have waited", mean)
	}
}

// The mean counts the time until now, also of packets that wait still.
func TestMeanQueueOfNow(t *testing.T) {
	n, l, _ := line(1, LinkConfig{Rate: 8e3}) // 1 s a packet
	send(n, 5)
	if got := l.MeanQueue(); got != 0 {
		t.Errorf("at the beginning %v", got)
	}
	n.Run(500 * ms)
	if got := l.MeanQueue(); got != 4 {
		t.Errorf("4 packets have waited for half a second, on average %v", got)
	}
}

func TestLinkWithoutRate(t *testing.T) {
	n, l, got := line(1, LinkConfig{Delay: 5 * ms, Queue: 1})
	send(n, 4)
	n.Run(time.Second)
	if !slices.Equal(got.at, []time.Duration{5 * ms, 5 * ms, 5 * ms, 5 * ms}) || l.Stats.Overflow != 0 {
		t.Errorf("packets come at %v; %+v", got.at, l.Stats)
	}
}

// A lossy link loses the share that it is told, and the same packets with the same seed.
func TestLoss(t *testing.T) {
	play := func(seed uint64) (*Link, *catcher) {
		n, l, got := line(seed, LinkConfig{Rate: 8e6, Loss: 0.2})
		for i := range 10_000 {
			n.At(time.Duration(i)*ms, func() { send(n, 1) })
		}
		n.Run(time.Minute)
		return l, got
	}
	l, got := play(7)
	if l.Stats.Lost < 1900 || l.Stats.Lost > 2100 || l.Stats.Lost+len(got.at) != 10_000 {
		t.Errorf("%d of 10000 lost, %d arrived", l.Stats.Lost, len(got.at))
	}
	if _, again := play(7); !slices.Equal(again.at, got.at) {
		t.Error("the same seed loses other packets")
	}
	if _, other := play(8); slices.Equal(other.at, got.at) {
		t.Error("another seed loses the same packets")
	}
}

// A program drops and delays.
func TestActions(t *testing.T) {
	n, l, got := line(1, LinkConfig{Rate: 8e6, Delay: 5 * ms})
	act := &catcher{action: Action{Delay: 7 * ms}}
	l.Load(act)
	send(n, 1)
	n.Run(50 * ms)
	act.action = Action{Drop: true}
	send(n, 1)
	n.Run(100 * ms)
	act.action = Action{Mark: true}
	send(n, 1)
	n.Run(150 * ms)
	l.Load(nil)
	send(n, 1)
	n.Run(200 * ms)
	if !slices.Equal(got.at, []time.Duration{13 * ms, 106 * ms, 156 * ms}) || len(act.at) != 3 {
		t.Errorf("packets come at %v, %d seen by the program", got.at, len(act.at))
	}
	if s := l.Stats; s.Dropped != 1 || s.Marked != 1 || s.Packets != 4 || s.CrossDropped != 1 {
		t.Errorf("%+v", s)
	}
	if l.Config().Rate != 8e6 || l.Config().Queue != 100 || l.Node().String() != "a" || l.TransmitTime(1000) != ms {
		t.Errorf("%+v at %v", l.Config(), l.Node())
	}
}

// The way is the one with the fewest links.
func TestPaths(t *testing.T) {
	n := New(1)
	a, b, c, d := n.Node("a"), n.Node("b"), n.Node("c"), n.Node("d")
	n.Both(a, b, LinkConfig{})
	n.Both(b, c, LinkConfig{})
	n.Link(c, d, LinkConfig{})
	n.Both(a, c, LinkConfig{})
	names := func(from, to *Node) string {
		path, err := n.path(from, to)
		if err != nil {
			return err.Error()
		}
		var s strings.Builder
		s.WriteString(from.String())
		for _, l := range path {
			s.WriteString(l.to.String())
		}
		return s.String()
	}
	for _, tc := range []struct {
		from, to *Node
		want     string
	}{{a, b, "ab"}, {a, d, "acd"}, {b, d, "bcd"}, {c, a, "ca"}, {d, a, "activenet: no link leads from d to a: add one with Network.Link"}} {
		if got := names(tc.from, tc.to); got != tc.want {
			t.Errorf("%v to %v: %s", tc.from, tc.to, got)
		}
	}
	if _, err := n.Flow(d, a, FlowConfig{}); err == nil {
		t.Error("a flow without a way")
	}
	if _, err := n.Flow(a, d, FlowConfig{}); err == nil {
		t.Error("a flow without a way back")
	}
	if _, err := n.Flow(a, a, FlowConfig{Name: "x"}); err == nil {
		t.Error("a flow to where it comes from")
	}
	if err := n.Cross(d, a, Cross{Rate: 1}); err == nil {
		t.Error("cross traffic without a way")
	}
}

// Bursts of cross traffic are as long as they are told, at the rate that they are told.
func TestCross(t *testing.T) {
	n, _, got := line(1, LinkConfig{})
	// 10 packets of 1000 bytes in 10 ms, then 20 ms nothing.
	if err := n.Cross(n.nodes[0], n.nodes[2], Cross{Rate: 8e6, On: 10 * ms, Off: 20 * ms, Start: 5 * ms, Fixed: true}); err != nil {
		t.Fatal(err)
	}
	n.Run(90*ms - 1)
	var want []time.Duration
	for burst := range 3 {
		for i := range 10 {
			want = append(want, 5*ms+time.Duration(burst)*30*ms+time.Duration(i)*ms)
		}
	}
	if !slices.Equal(got.at, want) {
		t.Errorf("packets come at %v", got.at)
	}
}

// Bursts of random length have the mean that they are told, and are the same with the same seed.
func TestRandomCross(t *testing.T) {
	play := func(seed uint64) []time.Duration {
		n, _, got := line(seed, LinkConfig{})
		if err := n.Cross(n.nodes[0], n.nodes[2], Cross{Rate: 8e6, On: 100 * ms, Off: 300 * ms}); err != nil {
			t.Fatal(err)
		}
		n.Run(200 * time.Second)
		return got.at
	}
	got := play(3)
	// A quarter of 1000 packets a second.
	if len(got) < 45_000 || len(got) > 55_000 {
		t.Errorf("%d packets, not some 50000", len(got))
	}
	if !slices.Equal(play(3), got) || slices.Equal(play(4), got) {
		t.Error("the bursts don't follow the seed")
	}
}

// Cross traffic without a rate, or to where it comes from, is none.
func TestNoCross(t *testing.T) {
	n, _, got := line(1, LinkConfig{})
	if err := n.Cross(n.nodes[0], n.nodes[2], Cross{}); err != nil {
		t.Error(err)
	}
	if err := n.Cross(n.nodes[0], n.nodes[0], Cross{Rate: 1e6}); err != nil {
		t.Error(err)
	}
	n.Run(time.Second)
	if len(got.at) != 0 {
		t.Errorf("%d packets", len(got.at))
	}
}
