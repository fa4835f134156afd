package rxperf

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A Result says what has come of a run.
type Result struct {
	Calls         uint64
	BytesSent     uint64 // of data
	BytesReceived uint64
	Seconds       float64

	latency *hdrhistogram.Histogram
}

// longest is the longest time that the histogram holds.
const longest = time.Minute

// CallsPerSecond is the rate of calls.
func (r *Result) CallsPerSecond() float64 { return r.rate(r.Calls) }

// BytesPerSecond is the rate of data, both ways together.
func (r *Result) BytesPerSecond() float64 { return r.rate(r.BytesSent + r.BytesReceived) }

func (r *Result) rate(n uint64) float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return float64(n) / r.Seconds
}

// A Latency says how long calls took, in nanoseconds.
type Latency struct {
	Min   float64 `json:"min"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99_9"`
	P9999 float64 `json:"p99_99"`
	Max   float64 `json:"max"`
	Mean  float64 `json:"mean"`
}

// Latency returns how long calls took; nil if none was made.
func (r *Result) Latency() *Latency { return NewLatency(r.latency) }

// NewLatency returns what a histogram of nanoseconds says; nil if it is empty.
func NewLatency(h *hdrhistogram.Histogram) *Latency {
	if h == nil || h.TotalCount() == 0 {
		return nil
	}
	at := func(p float64) float64 { return float64(h.ValueAtPercentile(p)) }
	return &Latency{
		Min: float64(h.Min()), P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99),
		Max: float64(h.Max()), Mean: h.Mean(),
	}
}
