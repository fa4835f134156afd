package cases

import (
	"fmt"

	"urnic/conformance"
)

// A fetchAddValue is what a FetchAdd makes of a word. A one in mask is the top bit
// of a field, out of which nothing is carried (RFC 7306 §5.1.1).
type fetchAddValue struct {
	name, what           string
	orig, add, mask, sum uint64
}

var fetchAddValues = []fetchAddValue{
	{"plain", "one field", 5, 3, 0, 8},
	{"nothing", "it adds nothing", 0x0123456789ABCDEF, 0, 0, 0x0123456789ABCDEF},
	{"each-octet", "each octet grows", 0x0102030405060708, 0x1020304050607080, 0, 0x1122334455667788},
	{"carry-across-32-bits", "a carry from the lower half into the upper one", 0x00000000FFFFFFFF, 1, 0, 0x0000000100000000},
	{"carry-into-bit-63", "a carry into the top bit", 0x7FFFFFFFFFFFFFFF, 1, 0, 0x8000000000000000},
	{"carry-out-of-64-bits", "the last carry is lost", 0xFFFFFFFFFFFFFFFF, 2, 0, 1},
	{"minus-one", "two's complement", 0, 0xFFFFFFFFFFFFFFFF, 0, 0xFFFFFFFFFFFFFFFF},
	{"mask-bit-63", "one field, whose end is marked", 0xFFFFFFFFFFFFFFFF, 2, 0x8000000000000000, 1},
	{"mask-bit-0", "the lowest bit is a field", 0x0000000000000001, 1, 1, 0},
	{"mask-bit-31", "the lower half is a field, the upper one ends with the word", 0x00000001FFFFFFFF, 1, 0x0000000080000000, 0x0000000100000000},
	{"mask-two-fields", "both halves overflow", 0xFFFFFFFFFFFFFFFF, 0x0000000100000001, 0x8000000080000000, 0},
	{"mask-upper-field", "both halves grow, only the lower one overflows", 0x00000001FFFFFFFF, 0x0000000200000001, 0x8000000080000000, 0x0000000300000000},
	{"mask-eight-fields", "eight fields of an octet that overflow", 0xFFFEFDFCFBFAF9F8, 0x0102030405060708, 0x8080808080808080, 0},
	{"mask-carry-in-field", "a carry within a field is kept, the one out of it is not", 0x00000000000000FF, 0x81, 0x8000000000000080, 0x80},
	{"mask-uneven-fields", "fields of 1, 3, 14, 23 and 23 bits that overflow", 0xFFFFFFFFFFFFFFFF, 0x0000020000040013, 0x0000010000020009, 0},
	{"mask-64-fields", "each bit is a field", 0xFF00FF00FF00FF00, 0x0FF00FF00FF00FF0, 0xFFFFFFFFFFFFFFFF, 0xF0F0F0F0F0F0F0F0},
}

// fetchAddCases: what FetchAdd makes of its target (RFC 7306 §5.1.1).
func fetchAddCases() []conformance.Case {
	var out []conformance.Case
	for _, v := range fetchAddValues {
		out = append(out, conformance.Case{
			Clause: "rfc7306-5-2", Name: "fetchadd-" + v.name, Also: []string{"rfc7306-5.2.1-1", "rfc7306-5.2.1-11"},
			Title: fmt.Sprintf("FetchAdd of 0x%x under mask 0x%x turns 0x%x into 0x%x (%s), and returns what was there", v.add, v.mask, v.orig, v.sum, v.what),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicWord(t, s, v.orig)
				tryAtomic(t, s, fetchAdd(b, 0, v.add, v.mask), v.orig)
				s.AwaitContents(b, 0, inMemory(t, v.sum))
			},
		})
	}
	return out
}

// A cmpSwapValue is what a CmpSwap makes of a word.
type cmpSwapValue struct {
	name, what                                       string
	orig, compare, compareMask, swap, swapMask, want uint64
}

var cmpSwapValues = func() []cmpSwapValue {
	const (
		all  = ^uint64(0)
		top  = uint64(1) << 63
		low  = uint64(0x00000000FFFFFFFF)
		orig = uint64(0x8123456789ABCDEF)
		swap = uint64(0x0FEDCBA987654321)
	)
	return []cmpSwapValue{
		{"equal", "equal: all is swapped", orig, orig, all, swap, all, swap},
		{"different", "different: nothing is swapped", orig, swap, all, ^orig, all, orig},
		{"bit-0-differs", "the lowest bit differs", orig, orig ^ 1, all, swap, all, orig},
		{"bit-63-differs", "the top bit differs", orig, orig ^ top, all, swap, all, orig},
		{"compare-mask-zero", "nothing is compared: it always swaps", orig, ^orig, 0, swap, all, swap},
		{"compare-lower-half", "the upper half differs and isn't compared", orig, orig ^ top, low, swap, all, swap},
		{"compare-lower-half-differs", "the lower half, which alone is compared, differs in its top bit", orig, orig ^ 1<<31, low, swap, all, orig},
		{"compare-bit-63", "only the top bit is compared", orig, top, top, swap, all, swap},
		{"compare-bit-63-differs", "only the top bit is compared, and differs", orig, orig ^ top, top, swap, all, orig},
		{"compare-bit-0", "only the lowest bit is compared", orig, 1, 1, swap, all, swap},
		{"swap-mask-zero", "equal, but no bit is swapped", orig, orig, all, swap, 0, orig},
		{"swap-lower-half", "only the lower half is swapped", orig, orig, all, swap, low, 0x8123456787654321},
		{"swap-every-other-octet", "every other octet is swapped", orig, orig, all, swap, 0x00FF00FF00FF00FF, 0x81ED45A98965CD21},
		{"swap-bit-63", "only the top bit is swapped", orig, orig, all, swap, top, orig &^ top},
		{"swap-bit-0", "only the lowest bit is swapped", orig, orig, all, 0, 1, orig &^ 1},
		{"both-masks", "the upper quarter is compared, the lower one is swapped", orig, 0x8123FFFFFFFFFFFF, 0xFFFF000000000000, swap, 0x000000000000FFFF, 0x8123456789AB4321},
	}
}()

// cmpSwapCases: what CmpSwap makes of its target (RFC 7306 §5.1.2).
func cmpSwapCases() []conformance.Case {
	var out []conformance.Case
	for _, v := range cmpSwapValues {
		out = append(out, conformance.Case{
			Clause: "rfc7306-5.1.2-1", Name: v.name, Also: []string{"rfc7306-5-2", "rfc7306-5.2.1-1", "rfc7306-5.2.1-11"},
			Title: fmt.Sprintf("CmpSwap of 0x%x under mask 0x%x for 0x%x under mask 0x%x leaves 0x%x where 0x%x was (%s), and returns what was there",
				v.compare, v.compareMask, v.swap, v.swapMask, v.want, v.orig, v.what),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicWord(t, s, v.orig)
				h := cmpSwap(b, 0, v.compare, v.swap)
				h.CompareMask, h.Mask = v.compareMask, v.swapMask
				tryAtomic(t, s, h, v.orig)
				s.AwaitContents(b, 0, inMemory(t, v.want))
			},
		})
	}
	return out
}
