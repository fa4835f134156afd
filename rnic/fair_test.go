package rnic_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A flood keeps requests of one kind under way at one queue pair.
type flood struct {
	s    *rnictest.Side
	wr   rnic.SendWR
	done int // completions
}

// run keeps depth requests outstanding until the context ends, and tells of
// each completion.
func (f *flood) run(ctx context.Context, t *testing.T, depth int, each func()) {
	for range depth {
		if err := f.s.QP.PostSend(f.wr); err != nil {
			t.Error(err)
			return
		}
	}
	var wcs [1]rnic.WC
	for under := depth; under > 0; {
		if _, err := f.s.SendCQ.Wait(t.Context(), wcs[:]); err != nil || wcs[0].Err() != nil {
			t.Error(err, wcs[0].Err())
			return
		}
		under--
		if ctx.Err() == nil {
			each()
			if err := f.s.QP.PostSend(f.wr); err != nil {
				t.Error(err)
				return
			}
			under++
		}
	}
}

// A side that sends without end answers Reads and atomics of its peer all the
// same, and one that is read without end sends: while there are so many of one
// kind, there is a part of as many of the other.
func TestNeitherResponsesNorRequestsStarve(t *testing.T) {
	late := rnictest.Faults{Latency: 10 * time.Microsecond}
	floods(t, func(t *testing.T, starve func(t *testing.T, p *rnictest.Pair, most, least int)) {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) { starve(t, p, 600, 40) }, rnictest.Options{AB: late, BA: late})
	})
}

// The same over TCP. It depends on the machine: megabytes of Writes are on their way before a
// response, and it is 16 Reads for as many Writes as that.
func TestNeitherResponsesNorRequestsStarveOverTCP(t *testing.T) {
	floods(t, func(t *testing.T, starve func(t *testing.T, p *rnictest.Pair, most, least int)) {
		t.Run("whole", func(t *testing.T) { starve(t, overTCP(t, "127.0.0.1:0"), 4000, 16) })
		t.Run("in pieces", func(t *testing.T) { starve(t, inPieces(t, 5), 4000, 16) })
	})
}

// floods runs a test with each of two kinds of requests without end. In starve, so many of it
// complete, and at least so many of the other kind.
func floods(t *testing.T, test func(t *testing.T, starve func(t *testing.T, p *rnictest.Pair, most, least int))) {
	t.Helper()
	const size, depth = 8192, 16
	starve := func(t *testing.T, p *rnictest.Pair, op rnic.Opcode, readsWithoutEnd bool, most, least int) {
		_, word := words(1)
		at := p.A.Register(t, word, everyRight)
		to, from := p.B.Register(t, make([]byte, size), everyRight), p.A.Register(t, make([]byte, size), everyRight)
		src, sink := p.A.Register(t, make([]byte, size), 0), p.B.Register(t, make([]byte, size), rnic.LocalWrite)
		writes := &flood{s: p.A, wr: rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, size)}, Remote: to.Remote(0)}}
		reads := &flood{s: p.B, wr: rnic.SendWR{Op: op, SGL: []rnic.SGE{sink.SGE(0, size)}, Remote: from.Remote(0)}}
		if op == rnic.OpFetchAdd {
			reads.wr.SGL, reads.wr.Remote = nil, at.Remote(0)
		}
		open(t, p.A.QP)
		endless, watched := writes, reads
		if readsWithoutEnd {
			endless, watched = reads, writes
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		var wg sync.WaitGroup
		lead := 0 // how many the endless ones were ahead when the first of the others was done: both begin then
		for _, f := range []*flood{endless, watched} {
			wg.Go(func() {
				f.run(ctx, t, depth, func() {
					mu.Lock()
					defer mu.Unlock()
					f.done++
					if f == watched && f.done == 1 {
						lead = endless.done
					}
					if endless.done-lead == most {
						stop()
					}
				})
			})
		}
		wg.Wait()
		if watched.done < least {
			t.Errorf("%d requests of one kind for %d of the other", watched.done, endless.done)
		}
	}
	for _, op := range []rnic.Opcode{rnic.OpRead, rnic.OpFetchAdd} {
		for _, reads := range []bool{false, true} {
			name := fmt.Sprintf("%v against Writes without end", op)
			if reads {
				name = fmt.Sprintf("Writes against %v without end", op)
			}
			t.Run(name, func(t *testing.T) {
				test(t, func(t *testing.T, p *rnictest.Pair, most, least int) { starve(t, p, op, reads, most, least) })
			})
		}
	}
}

// In a run of so many messages, each of many streams that complete in one queue
// gets its share, however the program looks after them.
func TestEachOfManyQueuePairsGetsItsShare(t *testing.T) {
	getShares(t, &simnet.Network{Polls: true}, ":0")
}

// The same over TCP. It depends on the machine: the kernel and the scheduler have their part in
// what each gets.
func TestEachOfManyQueuePairsGetsItsShareOverTCP(t *testing.T) { getShares(t, nil, "127.0.0.1:0") }

func getShares(t *testing.T, network rnic.Network, address string) {
	t.Helper()
	const qps, each = 64, 400
	programs := map[string]func(cq *rnic.CQ, wcs []rnic.WC) int{
		"which polls": func(cq *rnic.CQ, wcs []rnic.WC) int { return cq.Poll(wcs) },
		"which waits": func(cq *rnic.CQ, wcs []rnic.WC) int {
			n, _ := cq.Wait(context.Background(), wcs)
			return n
		},
	}
	for name, look := range programs {
		t.Run("a program "+name, func(t *testing.T) {
			leakcheck.Check(t)
			as, bs := idlePairs(t, network, address, qps)
			number := map[uint32]int{}
			for i, b := range bs {
				number[b.QP.Num()] = i
				b.Recv(t, receives(0, 8)...)
			}
			// Each peer sends the next message when one has been taken: it has four
			// under way at any time.
			for _, a := range as {
				a.Send(t, empties(0, 4, rnic.FlagUnsignaled)...)
			}
			got := make([]int, qps)
			wcs := make([]rnic.WC, 16)
			for total := 0; total < qps*each; {
				n := look(bs[0].RecvCQ, wcs)
				for _, wc := range wcs[:n] {
					if err := wc.Err(); err != nil {
						t.Fatal(err)
					}
					i := number[wc.QPN]
					got[i]++
					total++
					bs[i].Recv(t, rnic.RecvWR{})
					as[i].Send(t, empties(0, 1, rnic.FlagUnsignaled)...)
				}
			}
			for i, n := range got {
				if n < each/8 {
					t.Errorf("queue pair %d got %d messages; the mean is %d", i, n, each)
				}
			}
			for _, s := range []*rnictest.Side{as[0], bs[0]} { // before goroutines are counted
				if err := s.Device.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
