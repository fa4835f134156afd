package rdpllp

import (
	"math/rand/v2"
	"testing"
)

// Segments are told from those that were placed, in any order, also where their 32 bits wrap.
func TestSegmentsAreTakenOnce(t *testing.T) {
	for _, first := range []uint64{0, 1<<32 - 50, 5<<32 + 7} {
		random := rand.New(rand.NewPCG(first, 1))
		k := taken{next: first}
		for lot := first; lot < first+1000; lot += 100 {
			for _, i := range random.Perm(100) {
				n := lot + uint64(i)
				if got, ok := k.order(uint32(n)); !ok || got != n {
					t.Fatalf("segment %d: %d, %v", n, got, ok)
				}
				k.add(n)
				if _, ok := k.order(uint32(n)); ok {
					t.Fatalf("segment %d is taken twice", n)
				}
			}
			if !k.all(lot+100) || k.all(lot+101) || len(k.beyond) != 0 {
				t.Fatalf("after %d: next %d, beyond %v", lot, k.next, k.beyond)
			}
		}
	}
	k := taken{next: 10}
	for _, n := range []uint32{9, 0, 1 << 31, 10 + ahead} {
		if _, ok := k.order(n); ok {
			t.Errorf("segment %d is taken where 10 is next", n)
		}
	}
	if _, ok := k.order(10 + ahead - 1); !ok {
		t.Error("a segment within the window is not taken")
	}
}
