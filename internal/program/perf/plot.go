package perf

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"urnic/internal/plot"
)

// WriteSVG draws the results of a run: bandwidth, rate or latency against the
// size of messages, the latency of one size as a curve of percentiles, or
// bandwidth against the number of queue pairs. The baseline is in it, if there
// is one.
func (r *Report) WriteSVG(w io.Writer) error {
	if len(r.Results) == 0 {
		return errors.New("there are no results to plot")
	}
	return r.chart().WriteSVG(w)
}

// The colours of the series.
const (
	oursColour = "#1668b8"
	bareColour = "#c2571a"
)

// A chart is a picture of results.
type chart struct {
	plot.Chart

	place func(*Result) float64 // x of a result
}

// add adds a line through a value of each result.
func (c *chart) add(name, colour, dash string, results []Result, value func(*Result) float64) {
	s := plot.Series{Name: name, Colour: colour, Dash: dash}
	for i := range results {
		s.Points = append(s.Points, [2]float64{c.place(&results[i]), value(&results[i])})
	}
	c.Series = append(c.Series, s)
}

// chart decides what is drawn.
func (r *Report) chart() *chart {
	c := &chart{Chart: plot.Chart{
		Title:    fmt.Sprintf("RDMA %s over iWARP: %s", opTitle(r.Op), testTitle(r)),
		Subtitle: r.subtitle(),
	}}
	switch {
	case r.Test == TestLatency && len(r.Results) == 1:
		c.percentiles(r)
	case r.Test == TestLatency:
		c.Y = plot.Axis{Label: latencyLabel(r), Log: true}
		c.sizes(r)
		c.add("urnic, median", oursColour, "", r.Results, func(r *Result) float64 { return r.Latency.P50 / 1e3 })
		c.add("urnic, 99 %", oursColour, plot.Dashes, r.Results, func(r *Result) float64 { return r.Latency.P99 / 1e3 })
		if r.Results[0].Baseline != nil {
			c.add("TCP, median", bareColour, "", r.Results, func(r *Result) float64 { return r.Baseline.Latency.P50 / 1e3 })
			c.add("TCP, 99 %", bareColour, plot.Dashes, r.Results, func(r *Result) float64 { return r.Baseline.Latency.P99 / 1e3 })
		}
	case r.Test == TestRate:
		c.Y = plot.Axis{Label: "messages per second"}
		c.sizes(r)
		c.add("urnic", oursColour, "", r.Results, func(r *Result) float64 { return r.MessagesPerSecond })
		c.addStreams(r, func(b *BaselineResult) float64 { return b.MessagesPerSecond })
	default:
		c.Y = plot.Axis{Label: "MB/s"}
		if r.Test == TestScale {
			c.X = plot.Axis{Label: "queue pairs", Log: true}
			for _, n := range r.QPs {
				c.X.Ticks = append(c.X.Ticks, plot.Tick{At: float64(n), Label: fmt.Sprint(n)})
			}
			c.place = func(r *Result) float64 { return float64(r.QPs) }
		} else {
			c.sizes(r)
		}
		c.add("urnic", oursColour, "", r.Results, func(r *Result) float64 { return r.BytesPerSecond / 1e6 })
		c.addStreams(r, func(b *BaselineResult) float64 { return b.BytesPerSecond / 1e6 })
	}
	return c
}

// sizes makes the size of messages the x axis: the powers of two there are, and
// of many only every other or third one is named.
func (c *chart) sizes(r *Report) {
	c.X = plot.Axis{Label: "message size in bytes", Log: true}
	every := (len(r.Results) + 11) / 12
	for i := range r.Results {
		t := plot.Tick{At: float64(r.Results[i].Size)}
		if i%every == 0 {
			t.Label = sizeText(r.Results[i].Size)
		}
		c.X.Ticks = append(c.X.Ticks, t)
	}
	c.place = func(r *Result) float64 { return float64(r.Size) }
}

// percentiles makes a curve of the latency of one size. The x axis has as much
// room for the last thousandth as for the first nine tenths.
func (c *chart) percentiles(r *Report) {
	result := &r.Results[0]
	c.Title += ", messages of " + sizeText(result.Size)
	c.X = plot.Axis{Label: "percentile", Log: true}
	c.Y = plot.Axis{Label: latencyLabel(r), Log: true}
	c.curve("urnic", oursColour, result.curve)
	if result.Baseline != nil {
		c.curve("TCP", bareColour, result.Baseline.curve)
	}
	furthest := 0.0
	for _, s := range c.Series {
		for _, p := range s.Points {
			furthest = max(furthest, p[0])
		}
	}
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999} {
		at := 1 / (1 - p/100)
		if at > furthest*1.01 {
			break
		}
		c.X.Ticks = append(c.X.Ticks, plot.Tick{At: at, Label: fmt.Sprintf("%g", p)})
	}
}

// addStreams adds the baselines of a stream.
func (c *chart) addStreams(r *Report, figure func(*BaselineResult) float64) {
	for i, b := range r.Results[0].Baselines {
		dash := ""
		if b.Kind == kindBatched {
			dash = plot.Dashes
		}
		c.add("TCP, "+b.Kind, bareColour, dash, r.Results, func(r *Result) float64 { return figure(&r.Baselines[i]) })
	}
}

func (c *chart) curve(name, colour string, points []point) {
	s := plot.Series{Name: name, Colour: colour}
	for _, p := range points {
		s.Points = append(s.Points, [2]float64{1 / (1 - p.share), p.ns / 1e3})
	}
	c.Series = append(c.Series, s)
}

func opTitle(op Op) string {
	return map[Op]string{
		OpSend: "Send", OpWrite: "Write", OpWriteImm: "Write with Immediate", OpRead: "Read", OpAtomic: "FetchAdd",
	}[op]
}

func testTitle(r *Report) string {
	title := map[Test]string{
		TestBandwidth: "bandwidth", TestLatency: "latency", TestRate: "message rate", TestScale: "bandwidth of all queue pairs",
	}[r.Test]
	if r.Bidir {
		title += ", both directions"
	}
	return title
}

func latencyLabel(r *Report) string {
	for _, n := range r.Notes {
		if strings.Contains(n, "half round trip") {
			return "µs, half round trip"
		}
	}
	return "µs, round trip"
}

func (r *Report) subtitle() string {
	words := []string{
		fmt.Sprintf("poll %s, depth %d, CRC %s", r.Poll, r.Depth, onOff(r.CRC)),
		r.CPU, fmt.Sprintf("%d cores", r.Cores), r.Go, r.Kernel,
	}
	if r.MTU > 0 {
		words[0] += fmt.Sprintf(", MTU %d", r.MTU)
	}
	return strings.Join(nonEmpty(words...), " · ")
}
