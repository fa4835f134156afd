package machine

import (
	"math/bits"
	"slices"
)

// A record is a set of numbers above a base, which its owner keeps: RCVDSEQNO of RFC 908
// §3.2.4. It is a bitmap whose size is that of the part of the window in use.
type record struct {
	bits []uint64 // a power of two of words; the bit of a number is the number modulo their size
	n    int      // numbers in the set
	high uint32   // the highest number, if there is one
}

func (r *record) place(number uint32) (word int, bit uint64) {
	at := number & uint32(64*len(r.bits)-1)
	return int(at / 64), 1 << (at % 64)
}

// has reports whether a number above the base is in the set.
func (r *record) has(base, number uint32) bool {
	if r.n == 0 || !within(number, base, r.high-base) {
		return false
	}
	word, bit := r.place(number)
	return r.bits[word]&bit != 0
}

// add adds a number above the base.
func (r *record) add(base, number uint32) {
	if r.n == 0 {
		r.high = number
	} else if less(r.high, number) {
		r.high = number
	}
	if r.n == 0 || int(r.high-base) > 64*len(r.bits) {
		r.grow(base, int(r.high-base))
	}
	if word, bit := r.place(number); r.bits[word]&bit == 0 {
		r.bits[word] |= bit
		r.n++
	}
}

// grow makes room for numbers up to base+size.
func (r *record) grow(base uint32, size int) {
	words := 1 << bits.Len(uint((size-1)/64))
	if words <= len(r.bits) {
		return
	}
	old := record{bits: r.bits, n: r.n, high: base + uint32(64*len(r.bits))}
	r.bits = make([]uint64, words)
	for number := base + 1; old.n > 0; number++ {
		if old.has(base, number) {
			word, bit := r.place(number)
			r.bits[word] |= bit
			old.n--
		}
	}
}

// advance takes the numbers that follow the base without a gap out of the set, and returns the
// last of them, the new base.
func (r *record) advance(base uint32) uint32 {
	for r.n > 0 {
		word, bit := r.place(base + 1)
		if r.bits[word]&bit == 0 || !within(base+1, base, r.high-base) {
			break
		}
		r.bits[word] &^= bit
		r.n--
		base++
	}
	return base
}

// remove takes a number out of the set, if it is in it.
func (r *record) remove(base, number uint32) {
	if r.has(base, number) {
		word, bit := r.place(number)
		r.bits[word] &^= bit
		r.n--
	}
}

// newest appends to list at most room numbers of the set, in rising order: the highest ones,
// and latest if it is in the set.
func (r *record) newest(list []uint32, base, latest uint32, room int) []uint32 {
	from := len(list)
	number := r.high
	for left := min(r.n, room); left > 0; {
		word, _ := r.place(number)
		// The numbers of the word up to this one. If there are none, those before it are in
		// other words: there are some, as not all of the set are found.
		w := r.bits[word] << (63 - number%64)
		if w == 0 {
			number -= number%64 + 1
			continue
		}
		number -= uint32(bits.LeadingZeros64(w))
		list = append(list, number)
		number--
		left--
	}
	found := list[from:]
	if n := len(found); n > 0 && less(latest, found[n-1]) && r.has(base, latest) {
		found[n-1] = latest
	}
	slices.Reverse(found)
	return list
}
