package machine

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A record is a set of numbers, whatever their order and wherever they wrap.
func TestRecord(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		window := uint32(1 + rng.IntN(300))
		base := -uint32(rng.IntN(500))
		var r record
		set := map[uint32]bool{}
		for range 400 {
			number := base + 1 + rng.Uint32N(window)
			if r.has(base, number) != set[number] {
				t.Fatalf("seed %d: has(%d) is %v", seed, number, !set[number])
			}
			switch rng.IntN(5) {
			case 0:
				r.remove(base, number)
				delete(set, number)
			case 1:
				next := base
				for ; set[next+1]; next++ {
					delete(set, next+1)
				}
				if base = r.advance(base); base != next {
					t.Fatalf("seed %d: advance returns %d; want %d", seed, base, next)
				}
			default:
				r.add(base, number)
				set[number] = true
			}
			if r.n != len(set) {
				t.Fatalf("seed %d: %d numbers; want %d", seed, r.n, len(set))
			}
			if words := len(r.bits); words*64 > 2*int(window)+128 {
				t.Fatalf("seed %d: %d words for a window of %d", seed, words, window)
			}
			var all []uint32
			for i := range window {
				if set[base+1+i] {
					all = append(all, base+1+i)
				}
			}
			if got := r.newest(nil, base, number, int(window)); !slices.Equal(got, all) {
				t.Fatalf("seed %d: %v; want %v", seed, got, all)
			}
			room := rng.IntN(8)
			want := slices.Clone(all[max(0, len(all)-room):])
			if len(want) > 0 && set[number] && !slices.Contains(want, number) {
				want[0] = number
			}
			if got := r.newest([]uint32{7}, base, number, room); got[0] != 7 || !slices.Equal(got[1:], want) {
				t.Fatalf("seed %d: %v; want %v, %d of %v with %d", seed, got[1:], want, room, all, number)
			}
		}
	}
}
