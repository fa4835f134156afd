package rnic_test

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// RFC 7306 §5.1: what the target holds afterwards, and what comes back.
func TestFetchAddAndCmpSwapChangePeerMemory(t *testing.T) {
	const all = math.MaxUint64
	for _, tt := range []struct {
		name         string
		op           rnic.Opcode
		a            rnic.Atomic
		before, then uint64
	}{
		{"add", rnic.OpFetchAdd, rnic.Atomic{Add: 5}, 37, 42},
		{"add nothing", rnic.OpFetchAdd, rnic.Atomic{}, 37, 37},
		{"add over the end", rnic.OpFetchAdd, rnic.Atomic{Add: 2}, all, 1},
		{"subtract", rnic.OpFetchAdd, rnic.Atomic{Add: all}, 10, 9},
		{"two fields of 32 bits", rnic.OpFetchAdd, rnic.Atomic{Add: 1<<32 | 1, AddMask: 1<<63 | 1<<31}, 7<<32 | math.MaxUint32, 8 << 32},
		{"the mask of one field", rnic.OpFetchAdd, rnic.Atomic{Add: 1, AddMask: 1 << 63}, math.MaxUint32, 1 << 32},
		{"every bit a field", rnic.OpFetchAdd, rnic.Atomic{Add: 0xFF, AddMask: all}, 0x0F, 0xF0},
		{"swap what is equal", rnic.OpCmpSwap, rnic.Atomic{Compare: 37, Swap: 99}, 37, 99},
		{"swap what is not", rnic.OpCmpSwap, rnic.Atomic{Compare: 38, Swap: 99}, 37, 37},
		{"compare the low octet", rnic.OpCmpSwap, rnic.Atomic{Compare: 0xAB, Swap: all, CompareMask: 0xFF, SwapMask: 0xFF00}, 0x12AB, 0xFFAB},
		{"compare the low octet, which differs", rnic.OpCmpSwap, rnic.Atomic{Compare: 0xAC, Swap: all, CompareMask: 0xFF, SwapMask: 0xFF00}, 0x12AB, 0x12AB},
		{"compare nothing", rnic.OpCmpSwap, rnic.Atomic{Compare: 1, Swap: 2, SwapMask: all, Masked: true}, 37, 2},
		{"swap nothing", rnic.OpCmpSwap, rnic.Atomic{Compare: 37, Swap: 2, CompareMask: all, Masked: true}, 37, 37},
		{"what the other operation uses is ignored", rnic.OpFetchAdd, rnic.Atomic{Add: 1, Compare: 9, Swap: 9, CompareMask: 9, SwapMask: 9, Masked: true}, 37, 38},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				w, mem := words(3)
				w[0], w[1], w[2] = 1, tt.before, 2
				target := p.B.Register(t, mem, everyRight)
				got := make([]byte, 10)
				sink := p.A.Register(t, got, rnic.LocalWrite)
				for _, sgl := range [][]rnic.SGE{{sink.SGE(1, 8)}, nil} {
					synctest.Wait()
					w[1] = tt.before
					p.A.Send(t, rnic.SendWR{ID: 1, Op: tt.op, SGL: sgl, Remote: target.Remote(8), Atomic: tt.a})
					wc := rnictest.Want(t, p.A.SendCQ, 1)
					if wc.Op != tt.op || wc.Original != tt.before || wc.ByteLen != 8 {
						t.Errorf("%+v; want the original, %d", wc, tt.before)
					}
				}
				synctest.Wait()
				if w[0] != 1 || w[1] != tt.then || w[2] != 2 {
					t.Errorf("the target holds %#x; want %#x, 2 words beside it untouched", w, tt.then)
				}
				if o := binary.NativeEndian.Uint64(got[1:]); o != tt.before || got[0] != 0 || got[9] != 0 {
					t.Errorf("the sink holds %x; want %#x in it", got, tt.before)
				}
			})
		})
	}
}

// No atomic of any stream comes between the read and the write of another one
// (RFC 7306 §5.3), nor does one of this machine that uses package sync/atomic.
func TestAtomicsOfManyStreamsAreAtomic(t *testing.T) {
	t.Run("TCP", func(t *testing.T) {
		leakcheck.Check(t)
		atomicsOfManyStreams(t, overTCP(t, "127.0.0.1:0"), 300)
	})
	t.Run("TCP in pieces", func(t *testing.T) {
		leakcheck.Check(t)
		atomicsOfManyStreams(t, inPieces(t, 1), 100)
	})
}

func atomicsOfManyStreams(t *testing.T, p *rnictest.Pair, each int) {
	const streams = 6
	w, mem := words(4)
	target := p.B.Register(t, mem, everyRight)
	var mu sync.Mutex
	seen := map[uint64]bool{} // what FetchAdd found
	swaps := 0
	var wg sync.WaitGroup
	for i := range streams {
		cq := labOf(t, p.A).cq(rnic.CQAttr{})
		a, b := labOf(t, p.A).qpOn(p.A.PD, cq), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{})
		p.Link(t, a, b)
		do := func(wr rnic.SendWR) (uint64, bool) {
			if err := a.PostSend(wr); err != nil {
				t.Error(err)
				return 0, false
			}
			wcs := make([]rnic.WC, 1)
			if _, err := cq.Wait(t.Context(), wcs); err != nil || wcs[0].Err() != nil {
				t.Error(err, wcs[0].Err())
				return 0, false
			}
			return wcs[0].Original, true
		}
		wg.Go(func() {
			for range each {
				found, ok := do(rnic.SendWR{Op: rnic.OpFetchAdd, Remote: target.Remote(0), Atomic: rnic.Atomic{Add: 1}})
				if !ok {
					return
				}
				mu.Lock()
				if seen[found] {
					t.Errorf("two operations found %d", found)
				}
				seen[found] = true
				mu.Unlock()
			}
		})
		if i%2 == 0 {
			continue
		}
		cq2 := labOf(t, p.A).cq(rnic.CQAttr{})
		a2, b2 := labOf(t, p.A).qpOn(p.A.PD, cq2), labOf(t, p.B).qp(p.B.PD, rnic.QPAttr{})
		p.Link(t, a2, b2)
		wg.Go(func() { // increments a word by comparing and swapping
			wcs := make([]rnic.WC, 1)
			for guess, done := uint64(0), 0; done < each; {
				if err := a2.PostSend(rnic.SendWR{Op: rnic.OpCmpSwap, Remote: target.Remote(8), Atomic: rnic.Atomic{Compare: guess, Swap: guess + 1}}); err != nil {
					t.Error(err)
					return
				}
				if _, err := cq2.Wait(t.Context(), wcs); err != nil || wcs[0].Err() != nil {
					t.Error(err, wcs[0].Err())
					return
				}
				if wcs[0].Original == guess {
					done++
					mu.Lock()
					swaps++
					mu.Unlock()
				}
				guess = wcs[0].Original
			}
		})
	}
	wg.Go(func() {
		for range each {
			found := atomic.AddUint64(&w[0], 1) - 1
			mu.Lock()
			if seen[found] {
				t.Errorf("two operations found %d", found)
			}
			seen[found] = true
			mu.Unlock()
		}
	})
	wg.Wait()
	if got := atomic.LoadUint64(&w[0]); got != uint64((streams+1)*each) || len(seen) != (streams+1)*each {
		t.Errorf("the sum is %d, of %d operations", got, len(seen))
	}
	if got := atomic.LoadUint64(&w[1]); got != uint64(swaps) || swaps != streams/2*each {
		t.Errorf("%d swaps made %d", swaps, got)
	}
}
