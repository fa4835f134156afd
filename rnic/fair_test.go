package rnic_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/rdpllp"
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
		f := func(t *testing.T, p *rnictest.Pair) { starve(t, p, 600, 40) }
		onBoth(t, f, rnictest.Options{AB: late, BA: late})
		t.Run("rdp", func(t *testing.T) {
			n := rdp.NewNetwork(1, rdp.Faults{Reorder: 0.5, Delay: late.Latency})
			rnictest.Run(t, f, rnictest.Options{LowerLayer: rdpllp.New(rdpllp.Config{
				MaxSegment: 562, AckDelay: -1,
				Carrier: func(_ context.Context, addr netip.AddrPort) (rdp.Carrier, error) { return n.Carrier(addr) },
			})})
		})
	})
}

// The same where the machine has its part in what each gets: over layers without delay, and over
// TCP, where megabytes of Writes are on their way before a response. There it is 16 Reads for as
// many Writes as that.
func TestNeitherResponsesNorRequestsStarveOnTheMachine(t *testing.T) {
	floods(t, func(t *testing.T, starve func(t *testing.T, p *rnictest.Pair, most, least int)) {
		t.Run("reordered", func(t *testing.T) {
			layer := &rnictest.Reordering{Seed: 1, Window: 8, Polls: true, MULPDU: 256}
			rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) { starve(t, p, 600, 40) }, rnictest.Options{LowerLayer: layer})
		})
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
					if watched.done > 0 && endless.done-lead == most || endless.done == 1000*most {
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

const (
	manyStreams = 64
	meanShare   = 400           // messages of each stream
	leastShare  = meanShare / 8 // and what each must get
)

// In a run of so many messages, each of many streams that complete in one queue
// gets its share, however the program looks after them. The machine has its part in that.
func TestEachOfManyQueuePairsGetsItsShare(t *testing.T) {
	overMany(t, func(t *testing.T, next func() (got []int)) {
		var got []int
		for range manyStreams * meanShare {
			got = next()
		}
		for i, n := range got {
			if n < leastShare {
				t.Errorf("queue pair %d got %d messages; the mean is %d", i, n, meanShare)
			}
		}
	})
}

// Whatever the machine does, none of them waits for ever.
func TestNoneOfManyQueuePairsStarves(t *testing.T) {
	overMany(t, func(t *testing.T, next func() (got []int)) {
		const most = 100 * manyStreams * meanShare
		for range most {
			if slices.Min(next()) == leastShare {
				return
			}
		}
		t.Errorf("of %d messages, queue pairs got %d", most, next())
	})
}

// overMany runs a test on streams of messages that go on without end, over each network and with
// each kind of program. The function next takes a message, and returns how many of each have come.
func overMany(t *testing.T, test func(t *testing.T, next func() (got []int))) {
	t.Helper()
	for name, connect := range map[string]func(t *testing.T) (as, bs []*rnictest.Side){
		"memory": func(t *testing.T) (as, bs []*rnictest.Side) {
			return idlePairs(t, &simnet.Network{Polls: true}, ":0", manyStreams)
		},
		"TCP": func(t *testing.T) (as, bs []*rnictest.Side) { return idlePairs(t, nil, "127.0.0.1:0", manyStreams) },
	} {
		t.Run(name, func(t *testing.T) { streams(t, connect, test) })
	}
}

func streams(t *testing.T, connect func(t *testing.T) (as, bs []*rnictest.Side), test func(t *testing.T, next func() (got []int))) {
	t.Helper()
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
			as, bs := connect(t)
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
			got := make([]int, manyStreams)
			wcs := make([]rnic.WC, 16)
			var come []rnic.WC
			test(t, func() []int {
				for len(come) == 0 {
					come = wcs[:look(bs[0].RecvCQ, wcs)]
				}
				if err := come[0].Err(); err != nil {
					t.Fatal(err)
				}
				i := number[come[0].QPN]
				come = come[1:]
				got[i]++
				bs[i].Recv(t, rnic.RecvWR{})
				as[i].Send(t, empties(0, 1, rnic.FlagUnsignaled)...)
				return got
			})
			for _, s := range []*rnictest.Side{as[0], bs[0]} { // before goroutines are counted
				if err := s.Device.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
