package mpa

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"urnic/internal/host/memfault"
)

// own adds bytes that the arena holds.
func (b *batch) own(n int) { b.commit(append(b.room(), make([]byte, n)...)) }

func TestBatchTakesAsMuchAsItsLimits(t *testing.T) {
	b := &batch{}
	b.own(100)
	for _, tt := range []struct {
		name                   string
		copied, pieces, octets int
		more                   bool
	}{
		{"copied octets", arenaSize - 100, 1, 1, true},
		{"one copied octet more", arenaSize - 99, 1, 1, false},
		{"pieces", 1, pieceLimit - 1, 1, true},
		{"one piece more", 1, pieceLimit, 1, false},
		{"octets", 1, 1, batchLimit - 100, true},
		{"one octet more", 1, 1, batchLimit - 99, false},
	} {
		if got := b.fits(tt.copied, tt.pieces, tt.octets); got != tt.more {
			t.Errorf("%s: fits %v", tt.name, got)
		}
	}
	b.wrote(100)
	if !b.fits(2*arenaSize, 2*pieceLimit, 2*batchLimit) {
		t.Error("an empty batch must take any FPDU")
	}
}

// What the ULP's memory held is copied into as few arenas as it takes.
func TestCopiesFillTheirArena(t *testing.T) {
	b := &batch{}
	b.refer(make([]byte, arenaSize/2))
	b.refer(make([]byte, arenaSize/2))
	if b.keep(); len(b.kept) != 1 || b.kept[0].used != arenaSize {
		t.Errorf("%d arenas are kept", len(b.kept))
	}
	b.refer([]byte{1})
	if b.keep(); len(b.kept) != 2 {
		t.Errorf("%d arenas are kept for one octet more", len(b.kept))
	}
	b.wrote(arenaSize + 1)
	if len(b.kept) != 0 || slices.ContainsFunc(b.pieces[:cap(b.pieces)], func(p []byte) bool { return p != nil }) {
		t.Errorf("an empty batch keeps %d arenas and pieces", len(b.kept))
	}
}

// The stream could not read a piece, and now all can be read: nobody knows how much of the
// first one is what was posted, so that the batch ends in front of it.
func TestBatchIsCutAtTheFirstPieceThatMayBeLost(t *testing.T) {
	fault := &memfault.Error{Addr: 1}
	for _, tt := range []struct {
		name   string
		make   func(b *batch)
		wrote  int
		at     uint64 // where the batch is cut
		pieces int    // left of it
		cut    bool
	}{
		{"memory first", func(b *batch) { b.refer(make([]byte, 10)); b.own(5); b.refer(make([]byte, 10)) }, 0, 0, 0, true},
		{"memory behind a header", func(b *batch) { b.own(5); b.refer(make([]byte, 10)); b.own(5); b.refer(make([]byte, 10)) }, 2, 5, 1, true},
		{"memory that is partly out", func(b *batch) { b.own(5); b.refer(make([]byte, 10)); b.own(5); b.refer(make([]byte, 10)) }, 7, 7, 1, true},
		{"memory that is out", func(b *batch) { b.refer(make([]byte, 10)); b.own(5); b.refer(make([]byte, 10)); b.own(5) }, 12, 15, 2, true},
		{"none left", func(b *batch) { b.refer(make([]byte, 10)); b.own(5) }, 12, 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &batch{}
			tt.make(b)
			all := slices.Clone(b.pieces)
			b.wrote(tt.wrote)
			before := b.octets
			if got := b.cutFault(fault); got != tt.cut {
				t.Fatalf("cut: %v", got)
			}
			if !tt.cut {
				if b.lost != nil || b.octets != before {
					t.Errorf("%d octets are left of %d, %v", b.octets, before, b.lost)
				}
				return
			}
			var lost *MemoryError
			if !errors.As(b.lost, &lost) || lost.Position != tt.at || !errors.Is(lost, fault) {
				t.Errorf("lost: %v", b.lost)
			}
			if b.octets > 0 && len(b.pieces) != tt.pieces || uint64(b.octets)+b.accepted != tt.at || b.open {
				t.Errorf("%d octets in %d pieces are left behind %d; the last is open: %v", b.octets, len(b.pieces), b.accepted, b.open)
			}
			for i, p := range b.pieces[:len(all)] {
				if i >= tt.pieces && p != nil {
					t.Errorf("piece %d of %d is still there", i, tt.pieces)
				}
			}
			for _, i := range b.foreign {
				if i >= len(b.pieces) {
					t.Errorf("piece %d of %d is said to be the ULP's memory", i, len(b.pieces))
				}
			}
		})
	}
}

// Pieces of memory in front of the cut stay the ULP's.
func TestCutLeavesWhatIsInFrontOfIt(t *testing.T) {
	b := &batch{}
	b.own(5)
	b.refer([]byte("one"))
	b.own(5)
	b.refer([]byte("two"))
	b.cut(3, &memfault.Error{})
	if !slices.Equal(b.foreign, []int{1}) || len(b.pieces) != 3 || b.octets != 13 {
		t.Errorf("the ULP's are pieces %v of %d with %d octets; want piece 1 of 3 with 13", b.foreign, len(b.pieces), b.octets)
	}
	if b.keep(); len(b.foreign) != 0 || !bytes.Equal(b.pieces[1], []byte("one")) {
		t.Errorf("the piece in front of the cut is %q", b.pieces[1])
	}
}
