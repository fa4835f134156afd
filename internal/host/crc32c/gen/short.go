package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// short emits what sums few octets: CRC32 instructions, one after the other.
func (g *generator) short() {
	v, t, bits := g.GP64(), g.GP64(), g.GP64()
	g.Label("short")
	g.CMPQ(g.n, Imm(8))
	g.JB(LabelRef("tiny"))
	g.MOVQ(Mem{Base: g.p}, v)

	g.Comment(
		"The first n mod 8 octets of v are summed as a quadword with zeros before them,",
		"which change nothing. The shift by 64-8n bits is one by 8 and one by the rest, since",
		"one by 64 would do nothing. What of the CRC so far lies behind those octets is kept.")
	g.Label("ragged")
	g.MOVQ(g.n, bits)
	g.SHLQ(Imm(3), bits)
	g.XORQ(g.crc, v)
	g.SHRXQ(bits, g.crc, g.crc)
	g.XORQ(Imm(56), bits)
	g.SHLQ(Imm(8), v)
	g.SHLXQ(bits, v, v)
	g.XORL(t.As32(), t.As32())
	g.CRC32Q(v, t)
	g.XORQ(t, g.crc)
	g.ADDQ(g.n, g.p)
	g.ANDQ(I8(-8), g.n)
	g.JZ(LabelRef("done"))

	g.NEGQ(g.n)
	g.Label("quadwords")
	g.CRC32Q(Mem{Base: g.p, Index: g.n, Scale: 1}, g.crc)
	g.ADDQ(Imm(8), g.n)
	g.JNZ(LabelRef("quadwords"))
	g.Label("done")
	g.ret()

	g.Comment("4 to 7 octets: the first four and the last four, which may overlap.")
	g.Label("tiny")
	g.CMPQ(g.n, Imm(4))
	g.JB(LabelRef("tinier"))
	g.MOVL(Mem{Base: g.p}, v.As32())
	g.LEAQ(Mem{Base: g.n, Disp: -4}, bits)
	g.MOVL(Mem{Base: g.p, Index: bits, Scale: 1}, t.As32())
	g.SHLQ(Imm(3), bits)
	g.SHLXQ(bits, t, t)
	g.ORQ(t, v)
	g.JMP(LabelRef("ragged"))

	g.Comment("1 to 3: the first, the middle and the last one, which may be the same.")
	g.Label("tinier")
	g.TESTQ(g.n, g.n)
	g.JZ(LabelRef("done"))
	g.MOVBLZX(Mem{Base: g.p}, v.As32())
	g.MOVQ(g.n, bits)
	g.SHRQ(Imm(1), bits)
	g.octet(bits, t, v)
	g.LEAQ(Mem{Base: g.n, Disp: -1}, bits)
	g.octet(bits, t, v)
	g.JMP(LabelRef("ragged"))
}

// octet puts the octet at p+i into its place in v. It destroys i and t.
func (g *generator) octet(i, t, v reg.GPVirtual) {
	g.MOVBLZX(Mem{Base: g.p, Index: i, Scale: 1}, t.As32())
	g.SHLQ(Imm(3), i)
	g.SHLXQ(i, t, t)
	g.ORQ(t, v)
}
