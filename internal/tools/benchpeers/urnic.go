package main

import (
	"encoding/json"
	"errors"
	"fmt"
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
	return got
}
