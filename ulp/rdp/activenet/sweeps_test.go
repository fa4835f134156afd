//go:build !race

package activenet

import (
	"fmt"
	"testing"
	"time"

	"urnic/internal/plot"
	"urnic/ulp/rdp/congestion"
)

var (
	trips  = []time.Duration{20 * ms, 50 * ms, 100 * ms, 200 * ms, 400 * ms}
	bursts = []time.Duration{100 * ms, 250 * ms, 500 * ms, time.Second, 2 * time.Second}
)

// A sweep has an outcome for each control and program at each point of an axis.
type sweep struct {
	controls []string
	points   []float64
	end, acc map[string][]outcome
}

func sweepOver(t *testing.T, controls []string, along []time.Duration, at func(time.Duration) scenario) *sweep {
	t.Helper()
	w := &sweep{controls: controls, end: map[string][]outcome{}, acc: map[string][]outcome{}}
	var list []scenario
	for _, c := range controls {
		for _, p := range []string{"end to end", "ACC"} {
			for _, d := range along {
				s := at(d)
				s.control, s.program = c, p
				list = append(list, s)
			}
		}
	}
	all := play(t, list)
	for _, d := range along {
		w.points = append(w.points, float64(d/ms))
	}
	for _, c := range controls {
		k := len(along)
		w.end[c], w.acc[c], all = all[:k], all[k:2*k], all[2*k:]
	}
	return w
}

// chart draws one figure of the outcomes.
func (w *sweep) chart(title, x, y string, log bool, figure func(outcome) float64) *plot.Chart {
	c := &plot.Chart{
		Title: title, Subtitle: fmt.Sprintf("%d flows and bursts of %d Mb/s over %d Mb/s, queue %d packets; dashed: reported by the node (ACC)", flows, int(crossRate/1e6), int(narrowRate/1e6), narrowQueue),
		X: plot.Axis{Label: x, Log: true}, Y: plot.Axis{Label: y, Log: log},
	}
	for _, p := range w.points {
		c.X.Ticks = append(c.X.Ticks, plot.Tick{At: p, Label: fmt.Sprint(p)})
	}
	for _, of := range []struct {
		suffix, dash string
		outcomes     map[string][]outcome
	}{{"", "", w.end}, {", ACC", plot.Dashes, w.acc}} {
		for _, control := range w.controls {
			s := plot.Series{Name: control + of.suffix, Colour: colours[control], Dash: of.dash}
			for i, o := range of.outcomes[control] {
				s.Points = append(s.Points, [2]float64{w.points[i], figure(o)})
			}
			c.Series = append(c.Series, s)
		}
	}
	return c
}

// The experiment over round-trip times: what docs/rdp-congestion.md says of it, and its plots.
func TestExperimentOverRoundTrips(t *testing.T) {
	w := sweepOver(t, congestion.Names(), trips, func(d time.Duration) scenario { return scenario{rtt: d, burst: 500 * ms} })
	const x = "round-trip time of the empty path, ms"
	golden(t, "rdp-congestion-goodput.svg", w.chart("Goodput of the flows", x, "Mb/s", false, func(o outcome) float64 { return o.goodput }))
	golden(t, "rdp-congestion-loss.svg", w.chart("Segments of the flows that were dropped", x, "%", true, func(o outcome) float64 { return 100 * o.loss }))
	golden(t, "rdp-congestion-cross.svg", w.chart("Packets of the cross traffic that were dropped", x, "%", true, func(o outcome) float64 { return 100 * o.cross }))
	golden(t, "rdp-congestion-mean-queue.svg", w.chart("The queue on average", x, "packets", false, func(o outcome) float64 { return o.queue }))
	golden(t, "rdp-congestion-fairness.svg", w.chart("Fairness among the flows", x, "Jain's index", false, func(o outcome) float64 { return o.fairness }))
	for i, rtt := range trips {
		for _, c := range []string{"reno", "cubic"} {
			end, acc := w.end[c][i], w.acc[c][i]
			if acc.loss > 0.6*end.loss || acc.cross > 0.6*end.cross || acc.goodput < 0.8*end.goodput || acc.fairness < 0.9 {
				t.Errorf("%s, round trip %v: end to end %+v, ACC %+v", c, rtt, end, acc)
			}
		}
		if end, acc := w.end["none"][i], w.acc["none"][i]; end.loss < 0.6 || acc.loss > 0.2 || acc.cross > 0.3*end.cross {
			t.Errorf("none, round trip %v: end to end %+v, ACC %+v", rtt, end, acc)
		}
	}
}

// The experiment over the length of bursts.
func TestExperimentOverBursts(t *testing.T) {
	w := sweepOver(t, []string{"reno", "cubic"}, bursts, func(d time.Duration) scenario { return scenario{rtt: 100 * ms, burst: d} })
	const x = "mean length of a burst, ms; pauses are three times as long"
	golden(t, "rdp-congestion-burst-goodput.svg", w.chart("Goodput of the flows, round trip 100 ms", x, "Mb/s", false, func(o outcome) float64 { return o.goodput }))
	golden(t, "rdp-congestion-burst-cross.svg", w.chart("Packets of the cross traffic that were dropped, round trip 100 ms", x, "%", true, func(o outcome) float64 { return 100 * o.cross }))
	for i, d := range bursts {
		for _, c := range []string{"reno", "cubic"} {
			if end, acc := w.end[c][i], w.acc[c][i]; acc.loss > 0.6*end.loss || acc.cross > 0.6*end.cross || acc.goodput < 0.8*end.goodput {
				t.Errorf("%s, bursts of %v: end to end %+v, ACC %+v", c, d, end, acc)
			}
		}
	}
}
