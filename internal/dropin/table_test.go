package dropin

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTableNamesObjects(t *testing.T) {
	var names table[int]
	a, b := new(int), new(int)
	ha, hb := names.add(a), names.add(b)
	if ha == 0 || hb == 0 || ha == hb || names.get(ha) != a || names.get(hb) != b {
		t.Fatalf("handles %d, %d", ha, hb)
	}
	for _, h := range []Handle{0, hb + 1, chunkLen * maxChunks, 1<<32 - 1} {
		if names.get(h) != nil || names.remove(h) != nil {
			t.Errorf("%d names something", h)
		}
	}
	if names.remove(ha) != a || names.get(ha) != nil || names.remove(ha) != nil {
		t.Error("a handle outlives its object")
	}
	if h := names.add(a); h == ha {
		t.Errorf("handle %d is used again at once", h)
	}
	var seen []*int
	names.each(func(_ Handle, v *int) { seen = append(seen, v) })
	if !slices.Equal(seen, []*int{b, a}) {
		t.Errorf("there are %v; want %v", seen, []*int{b, a})
	}
}

// Once all handles were used, those that were given back come again, the oldest
// first; then there is none.
func TestTableThatIsFull(t *testing.T) {
	var names table[int]
	v := new(int)
	for h := Handle(1); h < chunkLen*maxChunks; h++ {
		if got := names.add(v); got != h {
			t.Fatalf("handle %d; want %d", got, h)
		}
	}
	if h := names.add(v); h != 0 {
		t.Errorf("handle %d of a full table", h)
	}
	names.remove(7)
	names.remove(5)
	for _, want := range []Handle{7, 5, 0} {
		if h := names.add(v); h != want {
			t.Errorf("handle %d; want %d", h, want)
		}
	}
}

// Of several that remove the same, one gets it.
func TestTableRemovesOnce(t *testing.T) {
	var names table[int]
	for range 200 {
		h := names.add(new(int))
		var got atomic.Int32
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if names.remove(h) != nil {
					got.Add(1)
				}
			})
		}
		wg.Wait()
		if got.Load() != 1 {
			t.Fatalf("%d got it", got.Load())
		}
	}
}

// Handles of another generation name nothing, in either direction.
func TestHandlesOfGenerationsDiffer(t *testing.T) {
	defer StartHandles(0)
	var parent, child table[int]
	v := new(int)
	before := parent.add(v)
	StartHandles(1)
	after := child.add(v)
	if child.get(before) != nil || child.remove(before) != nil || child.get(after) != v {
		t.Errorf("handle %d of the parent names what handle %d of the child does", before, after)
	}
	child.each(func(h Handle, _ *int) {
		if h != after {
			t.Errorf("each says %d; want %d", h, after)
		}
	})
	if child.remove(after) != v || child.get(after) != nil {
		t.Errorf("handle %d outlives its object", after)
	}
	StartHandles(0)
	if parent.get(after) != nil || parent.get(before) != v {
		t.Errorf("handle %d of the child names what handle %d of the parent does", after, before)
	}
}
