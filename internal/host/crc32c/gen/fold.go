package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	lane      = 16           // octets that are multiplied to one sum: two quadwords
	block     = 64           // octets of a register
	lanes     = block / lane // of a register
	registers = 4            // that have sums in the loops for long messages
	stride    = registers * block
)

// Of VPCLMULQDQ and VPTERNLOGQ.
const (
	firsts  = 0x00 // the first quadword of each lane times the first
	seconds = 0x11 // the second times the second
	sum     = 0x96 // a+b+c, without carry
)

// fold emits what sums many octets, at least a block. The head has n mod 64
// octets; then there are only blocks.
//
// The sum is a message of 16 octets that has the same remainder as the whole one.
// To get it, each quadword is multiplied by the power of x that moves it to the end,
// modulo P. Products and what is added to them have less than 128 bits.
func (g *generator) fold() {
	head, octets := g.head()
	rows, row, end, endDst, i := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	acc := g.ZMM()
	g.rows(rows, row)
	g.LEAQ(Mem{Base: g.p, Index: g.n, Scale: 1}, end)
	if g.dst != nil {
		g.LEAQ(Mem{Base: end, Index: g.dst, Scale: 1}, endDst)
	}
	g.CMPQ(g.n, U32(stride))
	g.JAE(LabelRef("long"))

	g.Comment("The head and each block go to the message's end by factors of their own.")
	g.MOVQ(octets, i)
	g.SUBQ(g.n, i)
	g.SUBQ(g.n, row)
	f, t := g.ZMM(), g.ZMM()
	g.VMOVDQU64(Mem{Base: row}, f)
	g.VPCLMULQDQ(Imm(firsts), f, head, acc)
	g.VPCLMULQDQ(Imm(seconds), f, head, t)
	g.VPXORQ(t, acc, acc)

	g.Label("blocks") // from end+i; i is negative
	z := g.ZMM()
	g.VMOVDQU64(Mem{Base: end, Index: i, Scale: 1}, z)
	g.VMOVDQU64(Mem{Base: rows, Index: i, Scale: 1}, f)
	if g.dst != nil {
		g.VMOVDQU64(z, Mem{Base: endDst, Index: i, Scale: 1})
	}
	g.VPCLMULQDQ(Imm(firsts), f, z, t)
	g.VPCLMULQDQ(Imm(seconds), f, z, f)
	g.VPTERNLOGQ(Imm(sum), t, f, acc)
	g.ADDQ(Imm(block), i)
	g.JNZ(LabelRef("blocks"))

	g.Label("reduce")
	g.reduce(acc)
	g.ret()

	g.Label("long")
	var sums [registers]reg.VecVirtual
	g.begin(sums[:], head, octets, row)
	if g.dst == nil {
		g.rounds(sums[:])
	}
	g.strides(sums[:])
	g.gather(acc, sums[:], rows, i)
	g.TESTQ(i, i)
	g.JNZ(LabelRef("blocks"))
	g.JMP(LabelRef("reduce"))
}

// head loads the first octets, and adds the CRC so far to the first four; where
// there are less, to zeros: then it is for the block behind, and goes there too.
func (g *generator) head() (head reg.VecVirtual, octets reg.GPVirtual) {
	octets, mask, k := g.GP64(), g.GP64(), g.K()
	g.MOVQ(g.n, octets)
	g.ANDQ(Imm(block-1), octets)
	g.MOVQ(I32(-1), mask)
	g.BZHIQ(octets, mask, mask)
	g.KMOVQ(mask, k)
	head = g.ZMM()
	g.VMOVDQU8_Z(Mem{Base: g.p}, k, head)
	if g.dst != nil {
		g.Comment("What this writes beyond the head is written again, with the first block.")
		g.VMOVDQU64(head, Mem{Base: g.p, Index: g.dst, Scale: 1})
	}
	crc := g.XMM()
	g.VMOVD(g.crc.As32(), crc)
	g.VPXORQ(crc.AsZ(), head, head)
	return head, octets
}

// rows sets end to the end of row 0, and row to where, minus a number that is
// congruent to n modulo 8, the factor for so many octets before the end is.
func (g *generator) rows(end, row reg.GPVirtual) {
	residue := g.GP64()
	g.LEAQ(g.data.rows.Offset(2*stride), end)
	g.MOVQ(g.n, residue)
	g.ANDQ(Imm(7), residue)
	g.IMUL3Q(U32(stride+1), residue, row)
	g.ADDQ(end, row)
}

// begin takes the head and a stride.
func (g *generator) begin(sums []reg.VecVirtual, head reg.VecVirtual, octets, row reg.GPVirtual) {
	g.Comment("Each lane of the head goes to that of the first block, across the head's octets.")
	f, t := g.ZMM(), g.ZMM()
	g.ADDQ(octets, g.p)
	g.SUBQ(octets, g.n)
	g.SUBQ(octets, row)
	g.VBROADCASTI64X2(Mem{Base: row, Disp: -lane}, f)
	g.VPCLMULQDQ(Imm(firsts), f, head, t)
	g.VPCLMULQDQ(Imm(seconds), f, head, f)
	for j := range sums {
		sums[j] = g.ZMM()
		g.next(j*block, sums[j])
	}
	g.VPTERNLOGQ(Imm(sum), t, f, sums[0])
	g.ADDQ(I32(stride), g.p)
	g.SUBQ(I32(stride), g.n)
}

// strides takes whole strides: each register goes on by one, and adds its block.
func (g *generator) strides(sums []reg.VecVirtual) {
	f := g.ZMM()
	g.VBROADCASTI64X2(g.data.stride, f)
	g.SUBQ(I32(stride), g.n)
	g.JB(LabelRef("gather"))
	g.Label("strides")
	for j, z := range sums {
		g.step(z, f, j*block)
	}
	g.ADDQ(I32(stride), g.p)
	g.SUBQ(I32(stride), g.n)
	g.JAE(LabelRef("strides"))
	g.Label("gather")
}

// gather moves all registers to the message's end. It sets i to minus the octets
// that are left; they are n and a stride.
func (g *generator) gather(acc reg.VecVirtual, sums []reg.VecVirtual, rows, i reg.GPVirtual) {
	g.MOVQ(I32(-stride), i)
	g.SUBQ(g.n, i)
	for j, z := range sums {
		f, t := g.ZMM(), g.ZMM()
		g.VMOVDQU64(Mem{Base: rows, Index: i, Scale: 1, Disp: j*block - stride}, f)
		g.VPCLMULQDQ(Imm(firsts), f, z, t)
		g.VPCLMULQDQ(Imm(seconds), f, z, z)
		if j == 0 {
			g.VPXORQ(t, z, acc)
		} else {
			g.VPTERNLOGQ(Imm(sum), t, z, acc)
		}
	}
}

// step moves the sums of z by the factors of f, and adds the block at p+at.
func (g *generator) step(z, f reg.VecVirtual, at int) {
	t := g.ZMM()
	g.VPCLMULQDQ(Imm(firsts), f, z, t)
	g.VPCLMULQDQ(Imm(seconds), f, z, z)
	if g.dst == nil {
		g.VPTERNLOGQ(Imm(sum), Mem{Base: g.p, Disp: at}, t, z)
		return
	}
	b := g.ZMM()
	g.next(at, b)
	g.VPTERNLOGQ(Imm(sum), b, t, z)
}

// next loads the block at p+at, and copies it if that is to be done.
func (g *generator) next(at int, z reg.VecVirtual) {
	g.VMOVDQU64(Mem{Base: g.p, Disp: at}, z)
	if g.dst != nil {
		g.VMOVDQU64(z, Mem{Base: g.p, Index: g.dst, Scale: 1, Disp: at})
	}
}

// reduce sets the CRC to that of the four lanes' sum, which has the remainder of
// the message. The CRC32 instruction divides.
func (g *generator) reduce(acc reg.VecVirtual) {
	half, quarter := g.YMM(), g.XMM()
	g.VEXTRACTI64X4(Imm(1), acc, half)
	g.VPXOR(acc.AsY(), half, half)
	g.VEXTRACTI128(Imm(1), half, quarter)
	g.VPXOR(half.AsX(), quarter, quarter)
	first, second := g.GP64(), g.GP64()
	g.VMOVQ(quarter, first)
	g.VPEXTRQ(Imm(1), quarter, second)
	g.XORL(g.crc.As32(), g.crc.As32())
	g.CRC32Q(first, g.crc)
	g.CRC32Q(second, g.crc)
	g.VZEROUPPER()
}
