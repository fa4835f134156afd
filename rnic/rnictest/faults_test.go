package rnictest_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"urnic/pd"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func ExampleRandomFaults() {
	f := rnictest.RandomFaults(11)
	fmt.Println(f == rnictest.RandomFaults(11), f == rnictest.RandomFaults(12))
	// Output: true false
}

func TestRandomFaultsAreOfAllKinds(t *testing.T) {
	const seeds = 1000
	counts := map[string]int{}
	count := func(what string, is bool) {
		if is {
			counts[what]++
		}
	}
	for seed := range uint64(seeds) {
		f := rnictest.RandomFaults(seed)
		count("short reads", f.ShortReads)
		count("short writes", f.ShortWrites)
		count("slow", f.Latency > 0)
		count("jitter", f.Jitter > 0)
		count("cut", f.CutAt > 0)
		count("stall", f.StallAt > 0)
		count("corruption", f.CorruptAt > 0)
		at := f.CutAt + f.StallAt + f.CorruptAt
		count("nothing", at == 0)
		count("in start-up", at > 0 && at <= 20)
		count("later", at > 10_000)
		if at < 0 || at > 1<<16 || f.Latency+f.Jitter > 20*time.Millisecond {
			t.Errorf("seed %d: %+v", seed, f)
		}
	}
	for _, what := range []string{"short reads", "short writes", "slow", "jitter", "cut", "stall", "corruption", "nothing", "in start-up", "later"} {
		if n := counts[what]; n < seeds/20 {
			t.Errorf("%s: %d of %d", what, n, seeds)
		}
	}
}

// Whatever the network does, nothing hangs, all requests complete, what has
// arrived is what was sent, and everything is given back.
func TestNothingIsLostOverARandomlyFaultyNetwork(t *testing.T) {
	for _, polls := range []bool{false, true} {
		t.Run(fmt.Sprintf("polls=%v", polls), func(t *testing.T) { nothingIsLost(t, polls) })
	}
}

func nothingIsLost(t *testing.T, polls bool) {
	connected, undisturbed := 0, 0
	const seeds = 300
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			o := rnictest.Options{AB: rnictest.RandomFaults(2 * seed), BA: rnictest.RandomFaults(2*seed + 1), Polls: polls}
			fault := func(format string, args ...any) {
				t.Helper()
				t.Errorf("seed %d: %s; A to B: %+v; B to A: %+v", seed, fmt.Sprintf(format, args...), o.AB, o.BA)
			}
			p, err := rnictest.TryConnect(t, o)
			if err == nil {
				connected++
				if exchange(t, p, fault) {
					undisturbed++
				}
			}
			for _, s := range []*rnictest.Side{p.A, p.B} {
				if err := s.Device.Close(); err != nil {
					fault("closing device %s: %v", s.Name, err)
				}
				for r := range pd.Resource(pd.NumResources) {
					if n := s.Device.Held(r); n != 0 {
						fault("device %s holds %d %v", s.Name, n, r)
					}
				}
			}
			if d := time.Since(start); d > 2*time.Minute {
				fault("it took %v", d)
			}
		})
	}
	if undisturbed < seeds/20 || connected-undisturbed < seeds/20 || seeds-connected < seeds/20 {
		t.Errorf("of %d pairs, %d were connected, and %d undisturbed", seeds, connected, undisturbed)
	}
}

// exchange has each side send messages to the other one, and ends the connection.
// It reports whether all of it succeeded.
func exchange(t *testing.T, p *rnictest.Pair, fault func(format string, args ...any)) bool {
	const messages, size = 20, 2000
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text := func(from string, i int) []byte { return bytes.Repeat([]byte{from[0], byte(i)}, size/2) }
	sides := []*rnictest.Side{p.A, p.B}
	buffers := make([][]byte, len(sides))
	for k, s := range sides {
		buffers[k] = make([]byte, messages*size)
		mr := s.Register(t, buffers[k], rnic.LocalWrite)
		for i := range messages {
			s.Recv(t, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{mr.SGE(i*size, size)}})
		}
	}
	posted := make([]int, len(sides))
	for k, s := range sides { // A goes first, as B has to wait for it
		for i := range messages {
			mr := s.Register(t, text(s.Name, i), 0)
			if s.QP.PostSend(rnic.SendWR{ID: uint64(i), Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, size)}}) == nil {
				posted[k]++
			}
		}
	}
	all := true
	collect := func(s *rnictest.Side, cq *rnic.CQ, n int, each func(wc rnic.WC)) {
		var wcs [1]rnic.WC
		for range n {
			if _, err := cq.Wait(ctx, wcs[:]); err != nil { // the network has swallowed something
				s.QP.Abort()
				if cq.Poll(wcs[:]) == 0 {
					fault("side %s: a request has not completed: %v", s.Name, err)
					return
				}
			}
			if wcs[0].Status == rnic.StatusSuccess {
				each(wcs[0])
			} else {
				all = false
			}
		}
	}
	for k, s := range sides {
		peer := sides[1-k]
		collect(s, s.SendCQ, posted[k], func(rnic.WC) {})
		collect(s, s.RecvCQ, messages, func(wc rnic.WC) {
			got := buffers[k][wc.ID*size:][:size]
			if wc.ByteLen != size || !bytes.Equal(got, text(peer.Name, int(wc.ID))) {
				fault("side %s: message %d arrived as something else", s.Name, wc.ID)
			}
		})
	}
	return all && posted[0]+posted[1] == 2*messages
}
