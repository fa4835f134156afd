package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// perftestTest is a test of perftest's, on urnic by liburnic: `urnic run` preloads it.
// Queue pairs are connected with rdma_cm. Without first, it runs for a time, of which
// perftest counts the half in the middle: enough for TCP to find its pace before.
func perftestTest(name, program string, size, first int) *contest {
	argv := func(at setting) []string {
		argv := []string{"-R", "-F", "-p", strconv.Itoa(at.port), "-s", strconv.Itoa(size)}
		if first > 0 {
			return append(argv, "-n", strconv.Itoa(at.iterations))
		}
		return append(argv, "-D", strconv.Itoa(int(math.Ceil(max(2, 2*at.duration.Seconds())))))
	}
	return &contest{
		name: name, by: perftest, dropIn: program, first: first,
		server: argv,
		argv:   func(at setting) []string { return append(argv(at), "127.0.0.1") },
		parse:  one(func(out []byte, _ setting) (reading, error) { return parsePerftest(out) }),
	}
}

// parsePerftest reads what perftest's programs print: a line of names and a line of
// figures for the one size that was asked for. Their MB are 2^20 bytes, and the
// latency of a ping-pong is half a round trip.
func parsePerftest(out []byte) (reading, error) {
	lines := strings.Split(string(out), "\n")
	for i, line := range lines[:len(lines)-1] {
		if !strings.HasPrefix(strings.TrimSpace(line), "#bytes") {
			continue
		}
		var figures []float64
		for s := range strings.FieldsSeq(lines[i+1]) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return reading{}, fmt.Errorf("perftest's figures: %w: %s", err, lines[i+1])
			}
			figures = append(figures, v)
		}
		return perftestLine(line, figures)
	}
	return reading{}, fmt.Errorf("perftest printed no figures: %s", tail(out))
}

// perftestLine makes a reading of size, iterations, and what else the names say.
func perftestLine(names string, figures []float64) (r reading, err error) {
	switch {
	case strings.Contains(names, "BW average[MB/sec]") && len(figures) == 5:
		r.BytesPerSecond = figures[3] * (1 << 20)
		r.MessagesPerSecond = r.BytesPerSecond / figures[0]
		r.Seconds = figures[1] / r.MessagesPerSecond
	case strings.Contains(names, "t_typical[usec]") && len(figures) == 9:
		r.MedianNS, r.LatencyNS = figures[4]*1e3, figures[5]*1e3
		r.Seconds = 2 * figures[1] * r.LatencyNS / 1e9
	}
	if r.Seconds <= 0 {
		return reading{}, fmt.Errorf("perftest does not say its bandwidth or latency: %v for %s", figures, strings.Join(strings.Fields(names), " "))
	}
	r.Size = int(figures[0])
	return r, nil
}
