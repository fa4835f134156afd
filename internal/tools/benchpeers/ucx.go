package main

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// parseUCX reads what ucx_perftest -f -v prints: a line of names and a line of
// figures, "overall" being those of the whole run. Its MB are 2^20 bytes.
//
// A latency of a ping-pong test is half a round trip, and its message rate
// counts the messages of both directions, so that an iteration is two.
func parseUCX(out []byte, pingPong bool) (reading, error) {
	text := string(out)
	begin := strings.Index(text, "iterations,")
	if begin < 0 {
		return reading{}, fmt.Errorf("ucx_perftest printed no figures: %s", tail(out))
	}
	r := csv.NewReader(strings.NewReader(text[begin:]))
	r.TrimLeadingSpace = true
	names, err := r.Read()
	if err != nil {
		return reading{}, fmt.Errorf("the names of ucx_perftest's figures: %w", err)
	}
	line, err := r.Read()
	if err != nil {
		return reading{}, fmt.Errorf("the figures of ucx_perftest: %w", err)
	}
	figures := map[string]float64{}
	for i, name := range names {
		if figures[name], err = strconv.ParseFloat(line[i], 64); err != nil {
			return reading{}, fmt.Errorf("ucx_perftest's %s: %w", name, err)
		}
	}
	for _, name := range []string{"iterations", "overall_lat", "overall_bw", "overall_mr"} {
		if figures[name] <= 0 {
			return reading{}, fmt.Errorf("ucx_perftest does not say its %s: %s", name, tail(out))
		}
	}
	perIteration := 1.0
	got := reading{BytesPerSecond: figures["overall_bw"] * (1 << 20), MessagesPerSecond: figures["overall_mr"]}
	if pingPong {
		perIteration = 2
		got.LatencyNS = figures["overall_lat"] * 1e3
	}
	got.Seconds = figures["iterations"] * perIteration * figures["overall_lat"] / 1e6
	return got, nil
}
