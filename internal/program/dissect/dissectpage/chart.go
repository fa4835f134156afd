package dissectpage

import (
	"urnic/internal/program/dissect"
	"urnic/rdmap"
)

// buckets is how many points a chart has at most.
const buckets = 256

// A chart sums up a connection over time, in buckets of equal length. When time goes beyond the last one, each two
// become one.
type chart struct {
	begin, width float64 // seconds
	started      bool
	list         [buckets]bucket
	used         int
	open         [2]int // Reads and Atomics outstanding, by requester
	credits      int
}

type bucket struct {
	bytes   [2]uint64 // that the ULP has moved, by sender
	open    [2]int    // the most that were outstanding
	credits int       // granted last
	touched bool
}

// firstWidth is the length of a bucket at first, in seconds.
const firstWidth = 1e-5

func newChart() *chart { return &chart{width: firstWidth} }

func (c *chart) add(seconds float64, e *dissect.Event) {
	b := c.at(seconds)
	switch e.Kind {
	case dissect.KindMessage:
		m := e.Message
		switch m.Op {
		case rdmap.OpReadRequest, rdmap.OpAtomicRequest:
			c.open[e.From]++
		case rdmap.OpReadResponse, rdmap.OpAtomicResponse:
			c.open[1-e.From] = max(0, c.open[1-e.From]-1)
			fallthrough
		default:
			b.bytes[e.From] += m.Length
		}
	case dissect.KindUpper:
		if u, ok := e.Upper.(granter); ok && e.From == dissect.Server {
			if n, ok := u.Granted(); ok {
				c.credits = int(n)
			}
		}
	default:
	}
	for s := range b.open {
		b.open[s] = max(b.open[s], c.open[s])
	}
	b.credits = c.credits
}

// at returns the bucket of a time. What comes with a time before the last one's belongs to the last.
func (c *chart) at(seconds float64) *bucket {
	if !c.started {
		c.started, c.begin = true, seconds
	}
	for seconds-c.begin >= c.width*buckets {
		for i := range buckets / 2 {
			c.list[i] = merge(c.list[2*i], c.list[2*i+1])
		}
		clear(c.list[buckets/2:])
		c.width *= 2
		c.used = (c.used + 1) / 2
	}
	i := max(int((seconds-c.begin)/c.width), c.used-1, 0)
	c.used = i + 1
	b := &c.list[i]
	if !b.touched {
		b.touched, b.open, b.credits = true, c.open, c.credits
	}
	return b
}

func merge(a, b bucket) bucket {
	if !b.touched {
		return a
	}
	b.touched = true
	for s := range b.bytes {
		b.bytes[s] += a.bytes[s]
		b.open[s] = max(b.open[s], a.open[s])
	}
	return b
}

// A series is a chart for the page's script.
type series struct {
	Begin   float64     `json:"begin"`
	Width   float64     `json:"width"`
	Bytes   [2][]uint64 `json:"bytes"`
	Open    [2][]int    `json:"open"`
	Credits []int       `json:"credits"`
}

func (c *chart) series() *series {
	s := &series{Begin: c.begin, Width: c.width}
	open, credits := [2]int{}, 0
	for _, b := range c.list[:c.used] {
		if b.touched {
			open, credits = b.open, b.credits
		}
		for side := range open {
			s.Bytes[side] = append(s.Bytes[side], b.bytes[side])
			s.Open[side] = append(s.Open[side], open[side])
		}
		s.Credits = append(s.Credits, credits)
	}
	return s
}

// A granter is an event of a layer with credits.
type granter interface {
	// Granted returns how many credits the sender grants, if it says so.
	Granted() (uint32, bool)
}
