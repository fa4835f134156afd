package activenet

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"urnic/ulp/rdp/congestion"
)

// A scenario is one run of the experiment: flows from hosts near a node r1 to hosts beyond its
// narrow link, and bursts of traffic that heeds nothing.
//
//	a0 ─┐ 4 ms                        1 ms ┌─ b0
//	a1 ─┼─── r1 ── 10 Mb/s, queue 60 ── r2 ┼─ b1
//	x  ─┘                                  └─ y
type scenario struct {
	control string
	program string        // at r1: see programs
	rtt     time.Duration // of the empty path
	burst   time.Duration // mean length of a burst; the pauses are three times as long
	mixed   bool          // the flows' paths are longer by 0, 40, 120 and 280 ms
	seed    uint64
}

// programs are those that are compared, by what the pages call them.
var programs = map[string]func() Program{
	"end to end":  func() Program { return DropTail{} },
	"RED":         func() Program { return &RED{} },
	"report only": func() Program { return &ACC{ReportOnly: true} },
	"ACC":         func() Program { return &ACC{} },
}

const (
	flows       = 4
	narrowRate  = 10e6 // bits per second
	narrowQueue = 60   // packets of 1000 bytes: 50 ms
	crossRate   = 8e6
	runs        = 30 * time.Second
	access      = 4 * ms
	far         = 1 * ms
)

// An outcome is what has come of a run, or of several on average.
type outcome struct {
	goodput  float64 // Mb/s of all flows together
	loss     float64 // share of the flows' segments that were dropped
	cross    float64 // share of the cross traffic's packets that were dropped
	queue    float64 // packets, on average
	fairness float64 // Jain's index of the flows' goodputs
	timeouts float64
	reports  float64
}

// A bench is the network of a scenario.
type bench struct {
	*Network
	narrow *Link
	flows  []*Flow
}

func build(t testing.TB, s scenario, count int) *bench {
	t.Helper()
	n := &bench{Network: New(s.seed)}
	r1, r2 := n.Node("r1"), n.Node("r2")
	n.narrow, _ = n.Both(r1, r2, LinkConfig{Rate: narrowRate, Delay: s.rtt/2 - access - far, Queue: narrowQueue})
	n.narrow.Load(programs[s.program]())
	control, err := congestion.ByName(s.control)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		a, b := n.Node(fmt.Sprint("a", i)), n.Node(fmt.Sprint("b", i))
		n.Both(a, r1, LinkConfig{Rate: 100e6, Delay: access})
		longer := time.Duration(0)
		if s.mixed {
			longer = []time.Duration{0, 20 * ms, 60 * ms, 140 * ms}[i]
		}
		n.Both(r2, b, LinkConfig{Rate: 100e6, Delay: far + longer})
		f, err := n.Flow(a, b, FlowConfig{
			Name: fmt.Sprint("flow ", i), Control: control, Start: time.Duration(i) * 100 * ms,
		})
		if err != nil {
			t.Fatal(err)
		}
		n.flows = append(n.flows, f)
	}
	return n
}

// run plays a scenario with flows and cross traffic.
func run(t testing.TB, s scenario) outcome {
	n := build(t, s, flows)
	x, y := n.Node("x"), n.Node("y")
	n.Link(x, n.narrow.from, LinkConfig{Rate: 100e6, Delay: far})
	n.Link(n.narrow.to, y, LinkConfig{Rate: 100e6, Delay: far})
	if err := n.Cross(x, y, Cross{Rate: crossRate, On: s.burst, Off: 3 * s.burst, Start: time.Second}); err != nil {
		t.Error(err)
	}
	n.Run(runs)
	var o outcome
	var sent, dropped int
	var squares float64
	for _, f := range n.flows {
		if f.Err() != nil {
			t.Errorf("%+v: %v: %v", s, f.Name(), f.Err())
		}
		g := float64(f.Stats.Bytes) * 8 / 1e6 / runs.Seconds()
		o.goodput += g
		squares += g * g
		sent, dropped = sent+f.Stats.Sent, dropped+f.Stats.Dropped
		o.timeouts += float64(f.Status().Stats.Timeouts)
		o.reports += float64(f.Stats.Reports)
	}
	o.fairness = o.goodput * o.goodput / (flows * squares)
	o.loss = float64(dropped) / float64(sent)
	o.cross = float64(n.narrow.Stats.CrossDropped) / float64(n.narrow.Stats.Cross)
	o.queue = n.narrow.MeanQueue()
	return o
}

// seeds are those over which outcomes are averages.
var seeds = []uint64{1, 2}

// play returns the average outcome of each scenario over the seeds. Runs go on beside each other, and each
// is the same whatever the others do.
func play(t testing.TB, list []scenario) []outcome {
	t.Helper()
	all := make([]outcome, len(list)*len(seeds))
	var wg sync.WaitGroup
	next := make(chan int)
	for range 4 {
		wg.Go(func() {
			for i := range next {
				s := list[i/len(seeds)]
				s.seed = seeds[i%len(seeds)]
				all[i] = run(t, s)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	wg.Wait()
	out := make([]outcome, len(list))
	for i := range out {
		out[i] = mean(all[i*len(seeds) : (i+1)*len(seeds)])
	}
	return out
}

func mean(list []outcome) (m outcome) {
	for _, o := range list {
		k := 1 / float64(len(list))
		m.goodput += o.goodput * k
		m.loss += o.loss * k
		m.cross += o.cross * k
		m.queue += o.queue * k
		m.fairness += o.fairness * k
		m.timeouts += o.timeouts * k
		m.reports += o.reports * k
	}
	return m
}

func BenchmarkRun(b *testing.B) {
	for _, c := range []string{"none", "reno"} {
		b.Run(c, func(b *testing.B) {
			for range b.N {
				run(b, scenario{control: c, program: "end to end", rtt: 50 * ms, burst: 500 * ms, seed: 1})
			}
		})
	}
}
