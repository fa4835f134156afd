package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// A perfReport is what urnic perf --json prints, as far as it is used here.
type perfReport struct {
	Results []perfResult `json:"results"`
	Error   string       `json:"error"`
}

// A perfResult is what it says of one case. For reads and atomics, latency_ns is
// a whole round trip.
type perfResult struct {
	Size                 int          `json:"size"`
	QPs                  int          `json:"qps"`
	Seconds              float64      `json:"seconds"`
	BytesPerSecond       float64      `json:"bytes_per_second"`
	MessagesPerSecond    float64      `json:"messages_per_second"`
	ConnectionsPerSecond float64      `json:"connections_per_second"`
	Latency              *percentiles `json:"latency_ns"`
	BytesPerQPSide       float64      `json:"bytes_per_qp_side"`
	AllocsPerOp          *float64     `json:"allocs_per_op"`
	Baseline             *perfResult  `json:"baseline"`
	Ratio                float64      `json:"ratio"`

	Baselines []perfStream `json:"baselines"`
}

// A perfStream is one of two baselines of a stream.
type perfStream struct {
	perfResult
	Kind      string `json:"kind"`
	WriteSize int    `json:"write_size"`
	ReadSize  int    `json:"read_size"`
	Tries     []struct {
		Samples []float64 `json:"samples"`
	} `json:"tries"`
}

type percentiles struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"p50"`
}

// parsePerf reads a report, and returns a reading for each result in it.
func parsePerf(out []byte) ([]reading, error) {
	var report perfReport
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, fmt.Errorf("urnic perf printed no JSON: %w: %s", err, tail(out))
	}
	if report.Error != "" {
		return nil, errors.New("urnic perf: " + report.Error)
	}
	if len(report.Results) == 0 {
		return nil, errors.New("urnic perf printed no results")
	}
	var readings []reading
	for i := range report.Results {
		readings = append(readings, *report.Results[i].reading())
	}
	return readings, nil
}

func (r *perfResult) reading() *reading {
	got := &reading{
		Size: r.Size, QPs: r.QPs, Seconds: r.Seconds,
		BytesPerSecond: r.BytesPerSecond, MessagesPerSecond: r.MessagesPerSecond, ConnectionsPerSecond: r.ConnectionsPerSecond,
		BytesPerQPSide: r.BytesPerQPSide, AllocsPerOp: r.AllocsPerOp, Ratio: r.Ratio,
	}
	if r.Latency != nil {
		got.LatencyNS, got.MedianNS = r.Latency.Mean, r.Latency.Median
	}
	if r.Baseline != nil {
		got.Baseline = r.Baseline.reading()
	}
	for i := range r.Baselines {
		b := &r.Baselines[i]
		s := stream{reading: *b.reading(), WriteSize: b.WriteSize, ReadSize: b.ReadSize}
		if len(b.Tries) > 0 && len(b.Tries[0].Samples) > 0 { // the first one was taken
			s.Slowest, s.Fastest = slices.Min(b.Tries[0].Samples), slices.Max(b.Tries[0].Samples)
		}
		if got.Streams == nil {
			got.Streams = map[string]stream{}
		}
		got.Streams[b.Kind] = s
	}
	return got
}
