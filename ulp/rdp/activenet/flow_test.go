package activenet

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/wire"
)

// two makes a network of two nodes with a link of 8 Mb/s between them, and a flow.
func two(t *testing.T, seed uint64, loss float64, cfg FlowConfig) (*Network, *Link, *Flow) {
	t.Helper()
	n := New(seed)
	a, b := n.Node("a"), n.Node("b")
	there, _ := n.Both(a, b, LinkConfig{Rate: 8e6, Delay: 10 * ms, Loss: loss})
	f, err := n.Flow(a, b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n, there, f
}

func control(t *testing.T, name string) func() congestion.Controller {
	t.Helper()
	c, err := congestion.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A flow delivers all of its messages, whatever is lost, with each congestion control, both
// versions of RDP, in order or not.
func TestFlowsDeliverAll(t *testing.T) {
	for _, name := range congestion.Names() {
		for _, version := range []uint8{1, 2} {
			for _, loss := range []float64{0, 0.05} {
				n, _, f := two(t, 5, loss, FlowConfig{Name: name, Control: control(t, name), Messages: 2000, Bytes: 700, Version: version, Order: version == 1, Window: 64})
				n.Run(2 * time.Minute)
				s := f.Stats
				if f.Err() != nil || s.Delivered != 2000 || s.Bytes != 2000*700 || s.Done == 0 {
					t.Errorf("%s, version %d, loss %v: %v, %+v", name, version, loss, f.Err(), s)
				}
				if got := f.Status(); got.State != machine.Open || got.Unacknowledged != 0 || f.InFlight() != 0 || f.Window() < 1 {
					t.Errorf("%s: %+v, %d in flight, window %d", name, got, f.InFlight(), f.Window())
				}
				if loss == 0 && (s.Dropped != 0 || s.Sent != 2000) || loss > 0 && s.Dropped < 50 {
					t.Errorf("%s, version %d, loss %v: %+v", name, version, loss, s)
				}
			}
		}
	}
}

// A flow that is alone fills its link.
func TestFlowFillsTheLink(t *testing.T) {
	for _, name := range []string{"reno", "cubic"} {
		n, l, f := two(t, 1, 0, FlowConfig{Control: control(t, name)})
		n.Run(20 * time.Second)
		// 1000 of 1048 bytes are the message's.
		if got := float64(f.Stats.Bytes) * 8 / 20; got < 0.93*8e6 {
			t.Errorf("%s: %.0f of 8000000 bit/s; %+v", name, got, l.Stats)
		}
	}
}

// The same seed gives the same run, segment for segment, and another seed another one.
func TestRunsRepeat(t *testing.T) {
	play := func(seed uint64) string {
		n, l, f := two(t, seed, 0.02, FlowConfig{Control: control(t, "cubic"), Messages: 3000})
		trace := ""
		n.Every(100*ms, func() { trace += fmt.Sprint(f.Window(), f.InFlight(), f.Stats, l.Stats.Packets, ";") })
		n.Run(10 * time.Second)
		return trace
	}
	first := play(1)
	if play(1) != first {
		t.Error("two runs with one seed differ")
	}
	if play(2) == first {
		t.Error("another seed gives the same run")
	}
}

// A mark comes back to the sender from the receiver, a round trip later.
func TestMarksComeBack(t *testing.T) {
	n, l, f := two(t, 1, 0, FlowConfig{Control: control(t, "reno")})
	n.Run(time.Second)
	l.Load(&catcher{action: Action{Mark: true}})
	n.At(1100*ms, func() { l.Load(nil) })
	before := f.Window()
	n.Run(2 * time.Second)
	if f.Stats.Marked == 0 || f.Stats.Reports != f.Stats.Marked || f.Window() >= before {
		t.Errorf("%+v, the window was %d and is %d", f.Stats, before, f.Window())
	}
}

// A node may answer in the name of the other end: here it ends the connection.
type gate struct{ t *testing.T }

func (g gate) Arrive(l *Link, p *Packet) Action {
	if !p.Data {
		return Pass
	}
	var h wire.Header
	if _, err := h.Parse(p.Segment, nil); err != nil {
		g.t.Error(err)
	}
	rst := wire.Header{Version: h.Version, Flags: wire.RST, Source: h.Dest, Dest: h.Source, Seq: h.Ack + 1}
	if !l.Answer(p, rst.AppendTo(nil, nil, nil)) {
		g.t.Error("the way back does not pass the node")
	}
	return Action{Drop: true}
}

func TestAnswer(t *testing.T) {
	n := New(1)
	a, r, b := n.Node("a"), n.Node("r"), n.Node("b")
	n.Both(a, r, LinkConfig{})
	l, _ := n.Both(r, b, LinkConfig{})
	l.Load(gate{t})
	f, err := n.Flow(a, b, FlowConfig{})
	if err != nil {
		t.Fatal(err)
	}
	n.Run(time.Second)
	if !errors.Is(f.Err(), machine.ErrReset) || f.Stats.Delivered != 0 {
		t.Errorf("%v, %+v", f.Err(), f.Stats)
	}
	if l.Answer(&Packet{}, nil) {
		t.Error("an answer to cross traffic")
	}
	// From the middle of the way, and in the other direction.
	before := f.path[1].Stats
	if !f.back[1].Answer(&Packet{Flow: f}, []byte{1, 2}) || f.path[1].Stats.Packets != before.Packets+1 || f.path[1].Stats.Bytes != before.Bytes+30 {
		t.Error("no answer to what goes to the sender")
	}
	f.path = f.path[:1]
	if f.back[1].Answer(&Packet{Flow: f}, []byte{1, 2}) {
		t.Error("an answer that has no way")
	}
}

func TestFlowsThatCantBe(t *testing.T) {
	n := New(1)
	a, b := n.Node("a"), n.Node("b")
	n.Both(a, b, LinkConfig{})
	if _, err := n.Flow(a, b, FlowConfig{Machine: machine.Config{Tries: -1}}); err == nil {
		t.Error("a configuration that can't be used")
	}
	if _, err := n.Flow(a, b, FlowConfig{Window: 1 << 20}); err == nil {
		t.Error("a window that can't be announced")
	}
	f, err := n.Flow(a, b, FlowConfig{Bytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n.Run(time.Second)
	if !errors.Is(f.Err(), machine.ErrTooLong) {
		t.Errorf("a message that no segment has room for: %v", f.Err())
	}
	idle, err := n.Flow(a, b, FlowConfig{Name: "idle", Start: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if idle.Window() != 0 || idle.InFlight() != 0 || idle.Status().State != machine.Closed || idle.Name() != "idle" {
		t.Errorf("before its time: %+v", idle.Status())
	}
}
