package perf

import (
	"testing"

	"urnic/rnic"
)

// At a rate that nobody can keep, all messages wait for those before, and that counts: the
// latency of the last one is that of all together. Who took the times from when messages
// are really sent would find each as fast as if it were alone.
func TestLatencyAtARateCountsTheWaiting(t *testing.T) {
	address := serve(t, &Server{})
	dev := open(t, rnic.Config{})
	for _, op := range []Op{OpSend, OpWrite, OpRead, OpAtomic} {
		for _, poll := range polls {
			const n = 200
			report, err := Run(t.Context(), dev, nil, address, Options{Op: op, Test: TestLatency, Poll: poll, Rate: MaxRate, Depth: 1, Iterations: n})
			if err != nil {
				t.Fatalf("%s, %s: %v", op, poll, err)
			}
			r := report.Results[0]
			together := r.Service.Mean * n
			if r.Iterations != n || r.Latency.Max < 0.99*together {
				t.Errorf("%s, %s: %d messages took %v ns together, one after the other; the latency of the last is %v", op, poll, r.Iterations, together, r.Latency.Max)
			}
			if r.Latency.Max > 1.01*r.Seconds*1e9 {
				t.Errorf("%s, %s: %v ns in %v s", op, poll, r.Latency.Max, r.Seconds)
			}
		}
	}
}

// Several messages are under way at once, in whatever way they travel.
func TestMessagesAtARateNeedNotWaitForEachOther(t *testing.T) {
	address := serve(t, &Server{})
	dev := open(t, rnic.Config{})
	for _, o := range []Options{
		{Op: OpSend},
		{Op: OpSend, Sizes: []int{64 << 10}},
		{Op: OpWrite},
		{Op: OpWriteImm, Depth: 5},
		{Op: OpRead, Depth: 7},
		{Op: OpAtomic, Depth: 16},
		{Op: OpSend, Inline: true, Poll: PollBusy},
		{Op: OpWrite, Sizes: []int{1}, Depth: MaxDepth},
	} {
		o.Test, o.Rate, o.Iterations, o.Rounds = TestLatency, MaxRate, 500, 2
		report, err := Run(t.Context(), dev, nil, address, o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if n := report.Results[0].Iterations; n != 1000 {
			t.Errorf("%+v: %d", o, n)
		}
	}
}

func TestScheduleHasEachMessageAtItsTime(t *testing.T) {
	s := schedule{interval: 2.5}
	for n, want := range []int64{0, 2, 5, 7, 10} {
		if got := s.at(uint64(n)).Sub(s.start).Nanoseconds(); got != want {
			t.Errorf("message %d at %d ns", n, got)
		}
	}
	r := round{Duration: 1e8}
	if n := r.messagesIn(1000); n != 100 {
		t.Errorf("%d in 100 ms", n)
	}
	if n := r.messagesIn(1); n != 1 {
		t.Errorf("%d", n)
	}
}
