package rnic

import "testing"

// A queue keeps its order when it grows and when its limit changes, wherever the
// oldest element lies.
func TestFifoKeepsItsOrderWhenItGrows(t *testing.T) {
	for head := range 12 {
		for n := range 12 {
			f := fifo[int]{limit: 40}
			for i := range 8 { // the first slots there are
				f.push(i)
			}
			for range 8 {
				f.pop()
			}
			for range head {
				f.push(0)
				f.pop()
			}
			in, out := 0, 0
			push := func() {
				t.Helper()
				if f.full() {
					t.Fatalf("head %d: full with %d of %d", head, f.n, f.limit)
				}
				f.push(in)
				in++
			}
			pop := func() {
				t.Helper()
				if got := f.pop(); got != out {
					t.Fatalf("head %d, %d elements: %d came out; want %d", head, n, got, out)
				}
				out++
			}
			for range n {
				push()
			}
			for i := range f.n {
				if got := *f.at(i); got != i {
					t.Fatalf("head %d: element %d is %d", head, i, got)
				}
			}
			f.resize(n + 3) // as small as may be, nearly
			for range 3 {
				push()
			}
			if !f.full() {
				t.Errorf("%d of %d elements are not full", f.n, f.limit)
			}
			for range f.n / 2 {
				pop()
			}
			f.resize(100)
			for f.n < 100 {
				push()
			}
			if !f.full() || len(f.slots) != 100 {
				t.Errorf("%d elements of %d, %d slots", f.n, f.limit, len(f.slots))
			}
			for range 50 { // wrapped, and full
				pop()
				push()
			}
			f.resize(100)
			for f.n > 0 {
				pop()
			}
			for i, v := range f.slots {
				if v != 0 {
					t.Errorf("slot %d still holds %d", i, v)
				}
			}
		}
	}
}

func TestFifoTakesNoRoomThatItDoesNotUse(t *testing.T) {
	f := fifo[int]{limit: 1 << 20}
	for i := range 10_000 {
		f.push(i)
		f.push(i)
		f.pop()
		f.pop()
	}
	if len(f.slots) > 8 {
		t.Errorf("%d slots for two elements", len(f.slots))
	}
	small := fifo[int]{limit: 3}
	for i := range 3 {
		small.push(i)
	}
	if len(small.slots) != 3 || !small.full() {
		t.Errorf("%d slots of a limit of 3", len(small.slots))
	}
	empty := fifo[int]{limit: 5}
	empty.resize(2)
	empty.push(7)
	if empty.pop() != 7 || len(empty.slots) != 2 {
		t.Errorf("%d slots of a limit of 2", len(empty.slots))
	}
	lowered := fifo[int]{limit: 1000}
	for i := range 1000 {
		lowered.push(i)
	}
	for range 1000 {
		lowered.pop()
	}
	lowered.resize(10)
	if len(lowered.slots) > 10 {
		t.Errorf("%d slots after the limit was lowered to 10", len(lowered.slots))
	}
}
