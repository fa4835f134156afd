package activenet

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"urnic/internal/plot"
	"urnic/ulp/rdp/congestion"
)

var update = flag.Bool("update", false, "write the plots and tables of RDP's congestion control in docs")

// docs returns the name of a file in docs.
func docs(name string) string { return filepath.Join("..", "..", "..", "docs", name) }

// golden holds what was drawn against the file in docs, or writes it.
func golden(t *testing.T, name string, c *plot.Chart) {
	t.Helper()
	var b bytes.Buffer
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(docs(name), b.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everybody
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(docs(name))
	if err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("docs/%s is not what happens (%v): go test ./ulp/rdp/activenet -update", name, err)
	}
}

// The colours of congestion controls.
var colours = map[string]string{"none": "#777777", "reno": "#1668b8", "cubic": "#c2571a"}

// A trace is what one flow has done in the time.
type trace struct {
	window, drops [][2]float64  // of the flow, and of all that is sent
	congested     time.Duration // when the queue had no room for a segment of it first, after the burst had begun
	noticed       time.Duration // when the sender was told of that, or noticed itself
}

// A watch is a program that notes when there is no room for a segment of a flow.
type watch struct {
	Program
	tr *trace
}

func (w *watch) Arrive(l *Link, p *Packet) Action {
	if w.tr.congested == 0 && p.Data && l.busy && l.Queue() == narrowQueue && l.Now() > burstAt {
		w.tr.congested = l.Now()
	}
	return w.Program.Arrive(l, p)
}

// A spy is a controller that notes when it learns of congestion.
type spy struct {
	congestion.Controller
	tr *trace
}

func (s *spy) String() string { return fmt.Sprint(s.Controller) }

func (s *spy) learn(now time.Duration) {
	if s.tr.congested != 0 && s.tr.noticed == 0 {
		s.tr.noticed = now
	}
}

func (s *spy) Lost(now time.Duration, inFlight int) {
	s.learn(now)
	s.Controller.Lost(now, inFlight)
}

func (s *spy) TimedOut(now time.Duration, inFlight int) {
	s.learn(now)
	s.Controller.TimedOut(now, inFlight)
}

func (s *spy) Reported(now time.Duration, r congestion.Report) {
	s.learn(now)
	s.Controller.Reported(now, r)
}

const (
	burstAt  = 10 * time.Second
	burstFor = 2 * time.Second
)

// follow plays one flow without others, and one burst.
func follow(t *testing.T, control, program string, rtt time.Duration) *trace {
	t.Helper()
	n := build(t, scenario{control: control, program: program, rtt: rtt, seed: 1}, 1)
	f := n.flows[0]
	x, y := n.Node("x"), n.Node("y")
	n.Link(x, n.narrow.from, LinkConfig{Rate: 100e6, Delay: far})
	n.Link(n.narrow.to, y, LinkConfig{Rate: 100e6, Delay: far})
	if err := n.Cross(x, y, Cross{Rate: crossRate, On: burstFor, Off: time.Hour, Start: burstAt, Fixed: true}); err != nil {
		t.Fatal(err)
	}
	tr := &trace{}
	n.narrow.Load(&watch{n.narrow.program, tr})
	create := f.cfg.Control
	f.cfg.Control = func() congestion.Controller { return &spy{create(), tr} }
	n.Every(10*ms, func() {
		at := n.Now().Seconds()
		tr.window = append(tr.window, [2]float64{at, float64(min(f.Window(), f.InFlight()))})
		tr.drops = append(tr.drops, [2]float64{at, float64(f.Stats.Dropped + n.narrow.Stats.CrossDropped)})
	})
	n.Run(20 * time.Second)
	if f.Err() != nil {
		t.Error(f.Err())
	}
	return tr
}

// A sender learns of congestion from the node as soon as the report has come, and from gaps or marks
// a round trip later. The plots show a window and the queue in a burst.
func TestNodeIsFasterThanTheEnd(t *testing.T) {
	const rtt = 200 * ms
	for _, control := range []string{congestion.NameReno, congestion.NameCUBIC} {
		var reaction []string
		for _, rtt := range []time.Duration{20 * ms, 50 * ms, 100 * ms, 200 * ms} {
			end, node := follow(t, control, "end to end", rtt), follow(t, control, "ACC", rtt)
			late, soon := end.noticed-end.congested, node.noticed-node.congested
			reaction = append(reaction, fmt.Sprintf("%v: %v, %v", rtt, late.Round(ms), soon.Round(ms)))
			if late < rtt-access || soon > 2*access || end.noticed == 0 || node.noticed == 0 {
				t.Errorf("%s, round trip %v: the sender has noticed %v after the queue was full, and %v with a report", control, rtt, late, soon)
			}
		}
		t.Logf("%s: %s", control, strings.Join(reaction, "; "))
	}
	end, node := follow(t, "reno", "end to end", rtt), follow(t, "reno", "ACC", rtt)
	chart := func(title, label string, from, to float64, a, b [][2]float64) *plot.Chart {
		return &plot.Chart{
			Title:    title,
			Subtitle: fmt.Sprintf("One Reno flow over %d Mb/s, round trip %v, queue %d packets; from 10 s to 12 s a burst of %d Mb/s", int(narrowRate/1e6), rtt, narrowQueue, int(crossRate/1e6)),
			X:        plot.Axis{Label: "seconds"}, Y: plot.Axis{Label: label},
			Series: []plot.Series{
				{Name: "end to end", Colour: colours["cubic"], Points: between(a, from, to)},
				{Name: "reported by the node (ACC)", Colour: colours["reno"], Points: between(b, from, to)},
			},
		}
	}
	golden(t, "rdp-congestion-slow-start.svg", chart("Slow start", "segments in flight", 0, 3, end.window, node.window))
	golden(t, "rdp-congestion-burst.svg", chart("The window in a burst", "segments in flight", 9.9, 11, end.window, node.window))
	golden(t, "rdp-congestion-drops.svg", chart("Packets dropped so far, of the flow and of the burst", "packets", 0, 14, end.drops, node.drops))
}

// between returns the points with an x between two.
func between(points [][2]float64, from, to float64) (some [][2]float64) {
	for _, p := range points {
		if p[0] >= from && p[0] <= to {
			some = append(some, p)
		}
	}
	return some
}
