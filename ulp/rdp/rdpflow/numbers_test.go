package rdpflow

import (
	"math/rand/v2"
	"testing"
)

// A set of numbers is what a map of them is, in whatever order they come.
func TestSetIsASet(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var s set
		want := map[uint64]bool{}
		for range 500 {
			n := firstNumber + rng.Uint64N(400)
			if s.add(n) == want[n] {
				t.Fatalf("seed %d: %d is new: %v", seed, n, want[n])
			}
			want[n] = true
			if rng.IntN(50) == 0 {
				upTo := firstNumber + rng.Uint64N(200)
				s.forget(upTo)
				for n := range want {
					if n <= upTo {
						delete(want, n)
					}
				}
			}
			first := firstNumber + rng.Uint64N(400)
			last := first + rng.Uint64N(100)
			count := uint64(0)
			for n := first; n <= last; n++ {
				if want[n] {
					count++
				}
				if s.has(n) != want[n] {
					t.Fatalf("seed %d: has %d: %v", seed, n, s.has(n))
				}
			}
			if got := s.count(first, last); got != count {
				t.Fatalf("seed %d: %d from %d to %d, want %d: %v", seed, got, first, last, count, s.spans)
			}
			for i := 1; i < len(s.spans); i++ {
				if s.spans[i].from <= s.spans[i-1].to+1 {
					t.Fatalf("seed %d: spans %v", seed, s.spans)
				}
			}
		}
	}
}

func TestSetIsBounded(t *testing.T) {
	var s set
	for n := uint64(firstNumber); n < firstNumber+10*maxSpans; n += 2 {
		s.add(n)
	}
	if len(s.spans) != maxSpans || !s.has(firstNumber) || !s.has(firstNumber+10*maxSpans-2) || s.has(firstNumber+10*maxSpans-1) {
		t.Errorf("%d spans", len(s.spans))
	}
}

func TestExtend(t *testing.T) {
	for _, tt := range []struct {
		ref  uint64
		n    uint32
		want uint64
	}{
		{firstNumber | 5, 7, firstNumber | 7},
		{firstNumber | 5, 0xfffffffe, firstNumber - 2},
		{firstNumber | 0xfffffffe, 3, firstNumber + 1<<32 + 3},
		{firstNumber + 1<<32 + 3, 0xffffffff, firstNumber | 0xffffffff},
	} {
		if got := extend(tt.ref, tt.n); got != tt.want {
			t.Errorf("%d near %d is %d, want %d", tt.n, tt.ref, got, tt.want)
		}
	}
	if !near(firstNumber, firstNumber+far) || near(firstNumber, firstNumber+far+1) || near(firstNumber+far+1, firstNumber) || !near(firstNumber+far, firstNumber) {
		t.Error("far is not far")
	}
}

// What was sent last is remembered, and no more than so much of it.
func TestRecent(t *testing.T) {
	var r recent
	for n := uint64(firstNumber); n < firstNumber+5*maxRecent; n++ {
		r.put(sent{number: n, hash: n})
		for back := range uint64(3) {
			if s := r.find(n - back); n-back >= firstNumber && (s == nil || s.hash != n-back) {
				t.Fatalf("%d is forgotten at %d", n-back, n)
			}
		}
	}
	if len(r.slots) > maxRecent || r.find(firstNumber) != nil {
		t.Errorf("%d slots", len(r.slots))
	}
}
