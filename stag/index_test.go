package stag

import "testing"

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
