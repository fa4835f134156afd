package activenet

import (
	"testing"
	"time"

	"urnic/ulp/rdp/congestion"
)

// A bottleneck is a link whose queue a test fills, and a flow over it that never begins.
type bottleneck struct {
	*Network
	l *Link
	f *Flow
}

func newBottleneck(t *testing.T, p Program) *bottleneck {
	t.Helper()
	n := New(1)
	a, b, c := n.Node("a"), n.Node("b"), n.Node("c")
	n.Both(a, b, LinkConfig{Delay: 3 * ms})
	l, _ := n.Both(b, c, LinkConfig{Rate: 8e6, Queue: 10})
	l.Load(p)
	f, err := n.Flow(a, c, FlowConfig{Start: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return &bottleneck{n, l, f}
}

// fill makes the queue so long.
func (b *bottleneck) fill(packets int) {
	b.l.queue, b.l.busy = make([]*Packet, packets), true
}

// arrive has the program see a packet of the flow, whose sender has a window.
func (b *bottleneck) arrive(control string, window int) Action {
	return b.l.program.Arrive(b.l, &Packet{Flow: b.f, Forward: true, Data: true, Bytes: 1000, State: State{Control: control, Window: window, InFlight: min(window, 20)}})
}

// reports runs the network until reports are at the sender, and returns how many that are.
func (b *bottleneck) reports() int {
	b.Run(b.Now() + 3*ms)
	return b.f.Stats.Reports
}

// A node that is congested cuts the flow: it drops what a sender that had slowed down would not have
// sent, until it sees that the sender has, or has dropped as much.
func TestACCEdits(t *testing.T) {
	a := &ACC{}
	b := newBottleneck(t, a)
	b.fill(9)
	if got := b.arrive("reno", 20); got != Pass {
		t.Errorf("the queue is not full: %+v", got)
	}
	b.fill(10)
	// 20 in flight, of which 10 may be: of the next 20, every second one is dropped.
	for i := range 30 {
		want := Action{Drop: i == 0 || i%2 == 1 && i < 18}
		if got := b.arrive("reno", 20); got != want {
			t.Errorf("packet %d: %+v", i, got)
		}
	}
	if a.Stats != (ACCStats{Cuts: 1, Edited: 10}) || b.reports() != 1 {
		t.Errorf("%+v, %d reports", a.Stats, b.f.Stats.Reports)
	}
	// The sender knows. A window of its packets passes before the next cut.
	for i := range 10 {
		if got := b.arrive("reno", 10); got != Pass {
			t.Errorf("packet %d of the sender that knows: %+v", i, got)
		}
	}
	if got := b.arrive("reno", 10); !got.Drop || a.Stats.Cuts != 2 {
		t.Errorf("after a window: %+v, %d cuts", got, a.Stats.Cuts)
	}
}

// The edit ends when the sender is seen to know, whatever is left of it.
func TestACCEditEndsWhenTheSenderKnows(t *testing.T) {
	a := &ACC{}
	b := newBottleneck(t, a)
	b.fill(10)
	b.arrive("reno", 20)
	b.arrive("reno", 20)
	b.fill(0)
	if got := b.arrive("reno", 10); got != Pass {
		t.Errorf("%+v", got)
	}
	if got := b.arrive("reno", 11); got != Pass || a.Stats.Edited != 2 {
		t.Errorf("the window has grown since: %+v", got)
	}
}

// What is reported is what the sender's own control would make of a loss; a sender without
// control is cut to half of what it has in flight.
func TestACCReportsTheWindow(t *testing.T) {
	for _, c := range []struct {
		control string
		window  int
		want    congestion.Report
	}{
		{"reno", 20, congestion.Report{Window: 10, Drops: 10}},
		{"reno", 8, congestion.Report{Window: 4, Drops: 4}},
		{"reno", 2, congestion.Report{Window: 1, Drops: 1}},
		{"cubic", 20, congestion.Report{Window: 14, Drops: 6}},
		{"none", 1 << 30, congestion.Report{Window: 10, Drops: 10}},
	} {
		b := newBottleneck(t, &ACC{})
		got := &reader{}
		b.f.back[1].Load(got)
		b.fill(10)
		b.arrive(c.control, c.window)
		c.want.From = "b"
		if b.reports(); len(got.reports) != 1 || got.reports[0] != c.want {
			t.Errorf("%s, %d: %+v", c.control, c.window, got.reports)
		}
	}
}

// A reader is a program that reads reports which pass.
type reader struct{ reports []congestion.Report }

func (r *reader) Arrive(_ *Link, p *Packet) Action {
	if p.Report != nil {
		r.reports = append(r.reports, *p.Report)
	}
	return Pass
}

// A report takes the way back from the node, with its delay.
func TestReportTakesItsTime(t *testing.T) {
	b := newBottleneck(t, &ACC{})
	b.fill(10)
	b.arrive("reno", 20)
	b.Run(3*ms - 1)
	if b.f.Stats.Reports != 0 {
		t.Error("the report is there before its time")
	}
	if b.reports() != 1 || b.l.Stats.Reports != 1 {
		t.Errorf("%d reports have come of %d", b.f.Stats.Reports, b.l.Stats.Reports)
	}
}

// Without the edit, the node drops nothing itself.
func TestACCReportOnly(t *testing.T) {
	a := &ACC{ReportOnly: true}
	b := newBottleneck(t, a)
	got := &reader{}
	b.f.back[1].Load(got)
	b.fill(10)
	for range 30 {
		if got := b.arrive("reno", 20); got != Pass {
			t.Fatalf("%+v", got)
		}
	}
	b.reports()
	if want := (congestion.Report{Window: 10, Marks: 1, From: "b"}); len(got.reports) != 1 || got.reports[0] != want || a.Stats.Edited != 0 {
		t.Errorf("%+v, %+v", got.reports, a.Stats)
	}
}

func TestACCThreshold(t *testing.T) {
	b := newBottleneck(t, &ACC{Threshold: 5})
	b.fill(4)
	if got := b.arrive("reno", 20); got != Pass {
		t.Errorf("below the threshold: %+v", got)
	}
	b.fill(5)
	if got := b.arrive("reno", 20); !got.Drop {
		t.Errorf("at the threshold: %+v", got)
	}
	b = newBottleneck(t, &ACC{Threshold: 500})
	b.fill(10)
	if got := b.arrive("reno", 20); !got.Drop {
		t.Errorf("the queue is full, and the threshold above it: %+v", got)
	}
}

// A sender that seems not to have got the report is told again after a while.
func TestACCPatience(t *testing.T) {
	for _, patience := range []time.Duration{0, 200 * ms} {
		a := &ACC{Patience: patience}
		b := newBottleneck(t, a)
		b.fill(10)
		for range 20 {
			b.arrive("reno", 20)
		}
		if patience == 0 {
			patience = time.Second
		}
		b.Run(patience)
		b.fill(10)
		if b.arrive("reno", 20); a.Stats.Cuts != 1 {
			t.Errorf("%d cuts after %v", a.Stats.Cuts, patience)
		}
		b.Run(patience + 1)
		b.fill(10)
		if got := b.arrive("reno", 20); a.Stats.Cuts != 2 || !got.Drop {
			t.Errorf("%d cuts after more than %v", a.Stats.Cuts, patience)
		}
	}
}

// What has no sender to be told, or nothing to give up, passes.
func TestACCPasses(t *testing.T) {
	a := &ACC{}
	b := newBottleneck(t, a)
	b.fill(10)
	state := State{Control: "reno", Window: 20, InFlight: 20}
	for _, p := range []*Packet{
		{Bytes: 1000, State: state},
		{Flow: b.f, Forward: true, State: state}, // an acknowledgement
		{Flow: b.f, Data: true, State: state},    // to the sender
		{Flow: b.f, Forward: true, Data: true, State: State{Control: "reno", Window: 20, InFlight: 1}},
	} {
		if got := a.Arrive(b.l, p); got != Pass {
			t.Errorf("%+v: %+v", p, got)
		}
	}
	b.f.back = b.f.back[:1] // acknowledgements take another way
	if got := b.arrive("reno", 20); got != Pass || b.l.Stats.Reports != 0 {
		t.Errorf("a sender that can't be told: %+v", got)
	}
	if b.l.Report(nil, congestion.Report{Window: 1}) {
		t.Error("a report to nobody")
	}
}
