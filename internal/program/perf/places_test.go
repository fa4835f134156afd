package perf

import (
	"fmt"
	"testing"
)

// cases are setups with places of each kind.
func placesOf() map[string]setup {
	return map[string]setup{
		"short":         {Op: OpWrite, Test: TestRate, Size: 64, QPs: 1, Depth: 256},
		"one byte":      {Op: OpWrite, Test: TestRate, Size: 1, QPs: 1, Depth: 1},
		"long":          {Op: OpWriteImm, Test: TestBandwidth, Size: 1 << 20, QPs: 1, Depth: 16},
		"in between":    {Op: OpRead, Test: TestBandwidth, Size: 20_000, QPs: 5, Depth: 64},
		"longer by one": {Op: OpWrite, Test: TestBandwidth, Size: 8*fewPlaces + 1, QPs: 1, Depth: 64},
		"many":          {Op: OpWrite, Test: TestScale, Size: 4096, QPs: 5000, Depth: MaxDepth},
		"deep":          {Op: OpWrite, Test: TestRate, Size: 3, QPs: 1, Depth: MaxDepth},
	}
}

// What a message is written over has been looked at by then: the limit is neither too
// far nor nearer than it has to be, and no round comes to a standstill.
func TestNoMessageIsWrittenOverOneThatWasNotLookedAt(t *testing.T) {
	for name, s := range placesOf() {
		p := s.places()
		if p.step != wordLen || p.count&(p.count-1) != 0 || p.count < 4*s.Depth {
			t.Fatalf("%s: %+v", name, p)
		}
		n := uint64(p.count)
		// covered returns whether message m is written over what message of lay at.
		covered := func(m, of uint64) bool {
			at, low := p.of(of), p.of(m)
			return at >= low && at < low+s.Size
		}
		for _, looked := range []uint64{0, 1, n / 4, n - 1, n, n + 1, n + n/2, 3*n - 1, 3 * n} {
			limit := p.limit(looked, s.Size)
			if limit <= looked {
				t.Fatalf("%s: %d are looked at, and no more than %d may be sent", name, looked, limit)
			}
			hurts := func(m uint64) bool { // is one of those written over that were not looked at?
				for of := looked; of < m; of++ {
					if covered(m, of) {
						return true
					}
				}
				return false
			}
			for _, m := range []uint64{looked, (looked + limit) / 2, limit - 2, limit - 1} {
				if m >= looked && m < limit && hurts(m) {
					t.Errorf("%s: %d are looked at, and message %d is written over one that is not; the limit is %d", name, looked, m, limit)
				}
			}
			if !hurts(limit) {
				t.Errorf("%s: %d are looked at: message %d could be sent, which is the limit", name, looked, limit)
			}
			if mark := p.mark(looked); mark <= looked || mark > limit { // none would tell of what the sender waits for
				t.Errorf("%s: %d are looked at, the next mark is at %d, and the limit %d", name, looked, mark, limit)
			}
		}
	}
}

// A place that a message has not reached holds no word of it: not what was there before,
// and not what its neighbours leave.
func TestMessagesLeaveWhatNoOthersDo(t *testing.T) {
	for name, s := range placesOf() {
		p := s.places()
		n := uint64(p.count)
		for _, m := range []uint64{n, n + 1, 2*n - 1, 7 * n, 1 << 40} {
			if variant(m) == variant(m-n) {
				t.Errorf("%s: message %d is as the one in its place before", name, m)
			}
		}
		for d := uint64(1); d < variants; d++ { // so many messages before it have written over its place
			const m = 1000
			w, left := wordAt(5, variant(m)), wordAt(5, variant(m-d)+int(d))
			if w[0] == left[0] {
				t.Errorf("%s: message %d can't be told from one that came %d before", name, m, d)
			}
		}
	}
	seen := map[byte]bool{}
	for v := range variants {
		w := wordAt(9, v)
		seen[w[0]] = true
	}
	if len(seen) != variants {
		t.Errorf("%d contents have %d first bytes", variants, len(seen))
	}
	if wordAt(1, 0) == wordAt(2, 0) || fmt.Sprint(wordAt(1, 0)) == fmt.Sprint(wordAt(1, variants)) {
		t.Error("words are alike")
	}
}
