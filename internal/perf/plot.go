package perf

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// WriteSVG draws the results of a run: bandwidth, rate or latency against the
// size of messages, the latency of one size as a curve of percentiles, or
// bandwidth against the number of queue pairs. The baseline is in it, if there
// is one.
func (r *Report) WriteSVG(w io.Writer) error {
	if len(r.Results) == 0 {
		return errors.New("there are no results to plot")
	}
	c := r.chart()
	return c.write(w)
}

// The colours of the series.
const (
	oursColour = "#1668b8"
	bareColour = "#c2571a"
)

// chart decides what is drawn.
func (r *Report) chart() *chart {
	c := &chart{
		title:    fmt.Sprintf("RDMA %s over iWARP: %s", opTitle(r.Op), testTitle(r)),
		subtitle: r.subtitle(), lowest: math.Inf(1),
	}
	switch {
	case r.Test == TestLatency && len(r.Results) == 1:
		c.percentiles(r)
	case r.Test == TestLatency:
		c.y = axis{label: latencyLabel(r), log: true}
		c.sizes(r)
		c.add("urnic, median", oursColour, "", r.Results, func(r *Result) float64 { return r.Latency.P50 / 1e3 })
		c.add("urnic, 99 %", oursColour, dashes, r.Results, func(r *Result) float64 { return r.Latency.P99 / 1e3 })
		if r.Results[0].Baseline != nil {
			c.add("TCP, median", bareColour, "", r.Results, func(r *Result) float64 { return r.Baseline.Latency.P50 / 1e3 })
			c.add("TCP, 99 %", bareColour, dashes, r.Results, func(r *Result) float64 { return r.Baseline.Latency.P99 / 1e3 })
		}
	case r.Test == TestRate:
		c.y = axis{label: "messages per second"}
		c.sizes(r)
		c.add("urnic", oursColour, "", r.Results, func(r *Result) float64 { return r.MessagesPerSecond })
		c.addStreams(r, func(b *BaselineResult) float64 { return b.MessagesPerSecond })
	default:
		c.y = axis{label: "MB/s"}
		if r.Test == TestScale {
			c.x = axis{label: "queue pairs", log: true}
			for _, n := range r.QPs {
				c.x.ticks = append(c.x.ticks, tick{float64(n), fmt.Sprint(n)})
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
	c.x = axis{label: "octets of a message", log: true}
	every := (len(r.Results) + 11) / 12
	for i := range r.Results {
		t := tick{at: float64(r.Results[i].Size)}
		if i%every == 0 {
			t.label = sizeText(r.Results[i].Size)
		}
		c.x.ticks = append(c.x.ticks, t)
	}
	c.place = func(r *Result) float64 { return float64(r.Size) }
}

// percentiles makes a curve of the latency of one size. The x axis has as much
// room for the last thousandth as for the first nine tenths.
func (c *chart) percentiles(r *Report) {
	result := &r.Results[0]
	c.title += ", messages of " + sizeText(result.Size)
	c.x = axis{label: "percentile", log: true}
	c.y = axis{label: latencyLabel(r), log: true}
	c.curve("urnic", oursColour, result.curve)
	if result.Baseline != nil {
		c.curve("TCP", bareColour, result.Baseline.curve)
	}
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999} {
		at := 1 / (1 - p/100)
		if at > c.furthest*1.01 {
			break
		}
		c.x.ticks = append(c.x.ticks, tick{at, fmt.Sprintf("%g", p)})
	}
}

// addStreams adds the baselines of a stream.
func (c *chart) addStreams(r *Report, figure func(*BaselineResult) float64) {
	for i, b := range r.Results[0].Baselines {
		dash := ""
		if b.Kind == kindBatched {
			dash = dashes
		}
		c.add("TCP, "+b.Kind, bareColour, dash, r.Results, func(r *Result) float64 { return figure(&r.Baselines[i]) })
	}
}

func (c *chart) curve(name, colour string, points []point) {
	s := series{name: name, colour: colour}
	for _, p := range points {
		s.points = append(s.points, [2]float64{1 / (1 - p.share), p.ns / 1e3})
	}
	c.addSeries(s)
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
