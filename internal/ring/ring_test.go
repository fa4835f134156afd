package ring

import "testing"

// A ring keeps its order when it grows and when its limit changes, wherever the
// oldest element lies.
func TestRingKeepsItsOrderWhenItGrows(t *testing.T) {
	for head := range 12 {
		for n := range 12 {
			var f Ring[int]
			f.Init(40)
			for i := range 8 { // the first slots there are
				f.Push(i)
			}
			for range 8 {
				f.Pop()
			}
			for range head {
				f.Push(0)
				f.Pop()
			}
			in, out := 0, 0
			push := func() {
				t.Helper()
				if f.Full() {
					t.Fatalf("head %d: full with %d of %d", head, f.n, f.limit)
				}
				f.Push(in)
				in++
			}
			pop := func() {
				t.Helper()
				if got := f.Pop(); got != out {
					t.Fatalf("head %d, %d elements: %d came out; want %d", head, n, got, out)
				}
				out++
			}
			for range n {
				push()
			}
			for i := range f.n {
				if got := *f.At(i); got != i {
					t.Fatalf("head %d: element %d is %d", head, i, got)
				}
			}
			f.SetLimit(n + 3) // as small as may be, nearly
			for range 3 {
				push()
			}
			if !f.Full() {
				t.Errorf("%d of %d elements are not full", f.n, f.limit)
			}
			for range f.n / 2 {
				pop()
			}
			f.SetLimit(100)
			for f.n < 100 {
				push()
			}
			if !f.Full() || len(f.slots) != 100 {
				t.Errorf("%d elements of %d, %d slots", f.n, f.limit, len(f.slots))
			}
			for range 50 { // wrapped, and full
				pop()
				push()
			}
			f.SetLimit(100)
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

// So does one without a limit.
func TestRingWithoutALimitKeepsItsOrder(t *testing.T) {
	for head := range 9 {
		for n := range 9 {
			var r Ring[int]
			for i := range head {
				r.Push(-i)
				r.Pop()
			}
			for i := range n + 20 {
				r.Push(i)
				if i >= n { // one in, one out
					if got := *r.At(0); got != i-n {
						t.Fatalf("head %d: the oldest of %d is %d; want %d", head, r.n, got, i-n)
					}
					r.Pop()
				}
			}
			for i := range r.n {
				if got := *r.At(i); got != 20+i {
					t.Errorf("head %d: element %d is %d; want %d", head, i, got, 20+i)
				}
			}
			if len(r.slots) > 2*max(n+1, 4) {
				t.Errorf("%d slots for at most %d elements", len(r.slots), n+1)
			}
			for r.n > 0 {
				r.Pop()
			}
			for i, v := range r.slots {
				if v != 0 {
					t.Errorf("slot %d still holds %d", i, v)
				}
			}
		}
	}
}

func TestRingTakesNoRoomThatItDoesNotUse(t *testing.T) {
	var f Ring[int]
	f.Init(1 << 20)
	for i := range 10_000 {
		f.Push(i)
		f.Push(i)
		f.Pop()
		f.Pop()
	}
	if len(f.slots) > 8 {
		t.Errorf("%d slots for two elements", len(f.slots))
	}
	var small Ring[int]
	small.Init(3)
	for i := range 3 {
		small.Push(i)
	}
	if len(small.slots) != 3 || !small.Full() {
		t.Errorf("%d slots of a limit of 3", len(small.slots))
	}
	var empty Ring[int]
	empty.Init(5)
	empty.SetLimit(2)
	empty.Push(7)
	if empty.Pop() != 7 || len(empty.slots) != 2 {
		t.Errorf("%d slots of a limit of 2", len(empty.slots))
	}
	var lowered Ring[int]
	lowered.Init(1000)
	for i := range 1000 {
		lowered.Push(i)
	}
	for range 1000 {
		lowered.Pop()
	}
	lowered.SetLimit(10)
	if len(lowered.slots) > 10 {
		t.Errorf("%d slots after the limit was lowered to 10", len(lowered.slots))
	}
}

// Who does not ask whether it is full has a ring without a limit.
func TestRingWithoutALimitGrows(t *testing.T) {
	var r Ring[*int]
	first, last := new(int), new(int)
	r.Push(first)
	for range 1000 {
		r.Push(last)
	}
	if r.Len() != 1001 || r.Pop() != first || *r.At(999) != last {
		t.Errorf("%d elements", r.Len())
	}
	r.Free()
	if r.Len() != 0 || r.slots != nil {
		t.Errorf("%d elements, %d slots are left", r.Len(), len(r.slots))
	}
	r.Push(first)
	if got := r.Pop(); got != first {
		t.Errorf("%p came out; want %p", got, first)
	}
}

// All goes through the elements in their order, across the end of the slots, as far as it is
// asked to.
func TestRingTellsAllElements(t *testing.T) {
	for head := range 8 {
		var r Ring[int]
		r.Push(-1)
		for i := range head { // the oldest element moves on
			r.Push(i)
			r.Pop()
		}
		for i := range 7 {
			r.Push(head + i)
		}
		r.Pop()
		want := head
		for v := range r.All() {
			if v != want {
				t.Fatalf("head %d: %d; want %d", head, v, want)
			}
			if want++; want == head+5 {
				break
			}
		}
		if want != head+5 {
			t.Errorf("head %d: only up to %d", head, want)
		}
	}
	for v := range new(Ring[int]).All() {
		t.Errorf("an empty ring has %d", v)
	}
}

// A large element does not have a small one's first slots: two are enough to begin with.
func TestRingBeginsWithACacheLine(t *testing.T) {
	var large Ring[[200]byte]
	var small Ring[uint64]
	var none Ring[struct{}]
	large.Push([200]byte{})
	small.Push(0)
	none.Push(struct{}{})
	if len(large.slots) != 2 || len(small.slots) != 8 || none.Len() != 1 {
		t.Errorf("%d large slots, %d small ones", len(large.slots), len(small.slots))
	}
}

func BenchmarkPushPop(b *testing.B) {
	var r Ring[*int]
	for range 5 {
		r.Push(nil)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Push(nil)
		r.Pop()
	}
}
