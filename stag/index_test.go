package stag

import (
	"testing"
	"testing/cryptotest"
)

func TestRemovalOfAnUnknownSTagEnds(t *testing.T) {
	var x index
	a, b := &Entry{index: 5}, &Entry{index: 5 + minSlots} // they want the same slot
	x.remove(a)
	x.insert(a)
	x.remove(b)
	x.insert(b)
	x.remove(a)
	x.remove(a)
	if x.find(a.index) != nil || x.find(b.index) != b || x.live != 1 {
		t.Errorf("found %p and %p of %d", x.find(a.index), x.find(b.index), x.live)
	}
}

// The table is rebuilt when, and only when, it would be more than half full, and then
// has room for as many entries again.
func TestIndexIsNeverMoreThanHalfFull(t *testing.T) {
	var x index
	size := 0
	for i := range 2000 {
		before := x.slots.Load()
		e := &Entry{index: uint32(i + 1)}
		live := x.live
		full := before == nil || 2*(x.used+1) > len(*before)
		x.insert(e)
		if after := x.slots.Load(); (after != before) != full {
			t.Fatalf("entry %d: %d of %d slots are used; rebuilt: %v", i, x.used, len(*after), after != before)
		}
		if full {
			for size = minSlots; size < 4*(live+1); {
				size *= 2
			}
			if n := len(*x.slots.Load()); n != size || x.used != live+1 {
				t.Fatalf("%d live entries: a table of %d slots, %d of them used; want %d slots", live, n, x.used, size)
			}
		}
		if i%3 == 0 { // what is removed is used still, until the next rebuild
			x.remove(e)
		}
	}
}

func TestTableIsAsLargeAsItsEntriesNeed(t *testing.T) {
	for live, want := range map[int]int{0: 64, 15: 64, 16: 128, 17: 128, 31: 128, 32: 256} {
		var x index
		for i := range live {
			x.insert(&Entry{index: uint32(i + 1)})
		}
		if x.rebuild(); len(*x.slots.Load()) != want {
			t.Errorf("%d entries: %d slots; want %d", live, len(*x.slots.Load()), want)
		}
	}
}

// An index that is in use is not given out again.
func TestDrawnIndexIsFree(t *testing.T) {
	var x index
	cryptotest.SetGlobalRandom(t, 1)
	first := x.draw()
	x.insert(&Entry{index: first})
	cryptotest.SetGlobalRandom(t, 1) // the same numbers again
	if second := x.draw(); second == first {
		t.Errorf("%#x was drawn while it was in use", second)
	}
}
