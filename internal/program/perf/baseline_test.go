package perf

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"urnic/rnic"
)

// pairsWith returns short tries of all pairs, of which those that are named are slow.
func pairsWith(slow ...callSizes) []Try {
	var all []Try
	for i, w := range triedSizes {
		for j, r := range triedSizes {
			t := Try{WriteSize: w, ReadSize: r, Median: float64(1000 + 10*i + j)}
			if slices.Contains(slow, t.sizes()) {
				t.Median = 1
			}
			all = append(all, t)
		}
	}
	return all
}

// A size that had a bad moment when it was tried for a short time gets another chance.
func TestLongCallsAreAlwaysTriedAtLength(t *testing.T) {
	chosen := finalists(pairsWith(always...))
	var sizes []callSizes
	for _, c := range chosen {
		sizes = append(sizes, c.sizes())
	}
	for _, want := range always {
		if !slices.Contains(sizes, want) {
			t.Errorf("%v are tried at length, not %v", sizes, want)
		}
	}
	for _, want := range []int{512 << 10, 1 << 20} {
		if !slices.Contains(always, callSizes{want, want}) {
			t.Errorf("calls of %d are not always tried", want)
		}
	}
	if len(chosen) != bestOnes+len(always) || sizes[0] != (callSizes{1 << 20, 512 << 10}) {
		t.Errorf("%v", sizes)
	}
	if n := len(finalists(pairsWith())); n < bestOnes || n > bestOnes+len(always) {
		t.Errorf("%d", n)
	}
}

// What decides is the median of the tries, not the best or the last one of them.
func TestMedianOfTheTriesDecides(t *testing.T) {
	steady := Try{WriteSize: 1, Samples: []float64{90, 91, 92, 93, 94}}
	lucky := Try{WriteSize: 2, Samples: []float64{10, 20, 30, 200, 300}}
	unlucky := Try{WriteSize: 3, Samples: []float64{1, 95, 96, 97, 2}}
	got := ranked([]Try{lucky, unlucky, steady})
	if got[0].WriteSize != 3 || got[1].WriteSize != 1 || got[2].WriteSize != 2 || got[0].Median != 95 {
		t.Errorf("%+v", got)
	}
	note := (&calibration{got}).note(4, defaultTry)
	for _, want := range []string{"5 tries of 250ms", "4 connections", "3/0 0.0 (0.0 to 0.0), taken; 1/0"} {
		if !strings.Contains(note, want) {
			t.Errorf("no %q in %s", want, note)
		}
	}
}

// A stream has two baselines, in each test of it, for all sizes.
func TestStreamsHaveBothBaselines(t *testing.T) {
	address := serve(t, &Server{})
	dev := open(t, rnic.Config{})
	for _, o := range []Options{
		{Op: OpWrite, Sizes: []int{64, 128 << 10}},
		{Op: OpRead, BaselineBest: true, Sizes: []int{64}},
		{Op: OpSend, Test: TestRate, Bidir: true},
		{Op: OpWrite, Test: TestScale, QPs: []int{1, 2}, Sizes: []int{4096}},
	} {
		o.Baseline, o.BaselineTry, o.Iterations, o.Rounds = true, 1, 10, 2
		report, err := Run(t.Context(), dev, nil, address, o)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		table := Table{W: &out}
		table.Begin(report)
		for i := range report.Results {
			r := &report.Results[i]
			if len(r.Baselines) != 2 || r.Baselines[0].Kind != kindPerMessage || r.Baselines[1].Kind != kindBatched {
				t.Fatalf("%+v: %+v", o, r.Baselines)
			}
			each, stream := &r.Baselines[0], &r.Baselines[1]
			if each.WriteSize != r.Size {
				t.Errorf("%d bytes: a message goes in calls of %d", r.Size, each.WriteSize)
			}
			if len(stream.Tries) < bestOnes || stream.Tries[0].WriteSize != stream.WriteSize || stream.Tries[0].ReadSize != stream.ReadSize {
				t.Errorf("%d bytes: calls of %d and %d; the tries are %+v", r.Size, stream.WriteSize, stream.ReadSize, stream.Tries)
			}
			for i, try := range stream.Tries {
				if len(try.Samples) != tries || try.Median != median(try.Samples) || i > 0 && try.Median > stream.Tries[i-1].Median {
					t.Errorf("%+v", try)
				}
			}
			for _, b := range r.Baselines {
				for i := range r.Samples {
					if want := r.Samples[i] / b.Samples[i]; b.RatioSamples[i] != want {
						t.Errorf("%s: round %d: %v, want %v", b.Kind, i, b.RatioSamples[i], want)
					}
				}
				if b.Ratio != median(b.RatioSamples) || len(b.RatioSamples) != 2 {
					t.Errorf("%+v", b)
				}
			}
			want := kindPerMessage
			if o.BaselineBest || r.Size > fullCall {
				want = kindBatched
			}
			if r.Baseline.Kind != want || r.Ratio != r.Baseline.Ratio {
				t.Errorf("%d bytes are compared with %s, ratio %v", r.Size, r.Baseline.Kind, r.Ratio)
			}
			table.Row(*r)
		}
		for _, want := range []string{"per-message TCP", "batched TCP", "ratio", "ratio range", "tries of 1ns", "one blocking write of Go for each message", "without regard to messages"} {
			if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) { // lines are folded
				t.Errorf("no %q in\n%s", want, out.String())
			}
		}
	}
}

// A dialing network counts connections.
type dialing struct {
	Segments
	n int
}

func (d *dialing) Dial(ctx context.Context, address string) (net.Conn, error) {
	d.n++
	return d.Segments.Dial(ctx, address)
}

// The connections of both sides of a comparison are made once for a row, and kept for
// all of its rounds: so they are equally old in each of these.
func TestConnectionsOfARowAreEquallyOld(t *testing.T) {
	for _, test := range []Test{TestBandwidth, TestRate, TestLatency} {
		address := serve(t, &Server{})
		network := &dialing{}
		var opened []string
		const rounds = 3
		_, err := Run(t.Context(), open(t, rnic.Config{Network: network}), nil, address,
			Options{
				Op: OpSend, Test: test, Baseline: true, BaselineTry: 1, Iterations: 5, Rounds: rounds,
				opened: func(s *bareSet) {
					opened = append(opened, fmt.Sprintf("%s with %d connections of RDMA", s.setup.Kind, network.n))
				},
			})
		if err != nil {
			t.Fatal(err)
		}
		const perRow = 2 // the control connection's and that of the queue pair
		want := []string{"stream with 2 connections of RDMA", "stream with 2 connections of RDMA"}
		if test == TestLatency {
			want = []string{"pingpong with 2 connections of RDMA"}
		}
		if n := len(want); network.n != perRow || len(opened) < n || !slices.Equal(opened[len(opened)-n:], want) {
			t.Errorf("%s: %d connections of RDMA; of TCP %q", test, network.n, opened)
		}
		for _, o := range opened[:len(opened)-len(want)] { // those of the tries come before
			if o != "stream with 1 connections of RDMA" {
				t.Errorf("%s: %s", test, o)
			}
		}
	}
}
