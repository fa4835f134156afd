package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	chains  = 2 * lanes               // CRCs that the CRC32 instruction makes at the same time
	segment = 56                      // octets of each in a round
	round   = chains*segment + stride // octets of a round
)

// rounds emits a loop for processors whose units for multiplication and for the
// CRC32 instruction are about as fast, and can work at the same time. In each round,
// chains of CRC32 instructions sum the first octets, each from 0 and on its own,
// and the registers go over them to the last stride. How long the chains are was
// found with BenchmarkUpdate.
func (g *generator) rounds(sums []reg.VecVirtual) {
	g.CMPB(variable("chained"), Imm(0))
	g.JEQ(LabelRef("unchained"))
	g.CMPQ(g.n, U32(round))
	g.JB(LabelRef("unchained"))
	f, ends := g.ZMM(), g.ZMM()
	g.VBROADCASTI64X2(g.data.round, f)
	g.VMOVDQU64(g.data.chains, ends)

	g.Label("rounds")
	var crcs [chains]reg.GPVirtual
	for j := range crcs {
		crcs[j] = g.GP64()
		g.XORL(crcs[j].As32(), crcs[j].As32())
	}
	const steps = segment / 8
	moved := 0
	for i := range steps {
		for j, crc := range crcs {
			g.CRC32Q(Mem{Base: g.p, Disp: j*segment + i*8}, crc)
		}
		for ; moved*steps < (i+1)*len(sums) && moved < len(sums); moved++ {
			g.step(sums[moved], f, chains*segment+moved*block)
		}
	}
	g.add(crcs, ends, sums[0])
	g.ADDQ(I32(round), g.p)
	g.SUBQ(I32(round), g.n)
	g.CMPQ(g.n, U32(round))
	g.JAE(LabelRef("rounds"))
	g.Label("unchained")
}

// add adds the chains' CRCs to the lanes of z, two to each, by the
// factors of f.
func (g *generator) add(crcs [chains]reg.GPVirtual, f, z reg.VecVirtual) {
	var x [lanes]reg.VecVirtual
	for j := range x {
		t := g.XMM()
		x[j] = g.ZMM()
		g.VMOVQ(crcs[2*j], x[j].AsX())
		g.VMOVQ(crcs[2*j+1], t)
		g.VPUNPCKLQDQ(t, x[j].AsX(), x[j].AsX())
	}
	g.VINSERTI128(Imm(1), x[1].AsX(), x[0].AsY(), x[0].AsY())
	g.VINSERTI128(Imm(1), x[3].AsX(), x[2].AsY(), x[2].AsY())
	g.VINSERTI64X4(Imm(1), x[2].AsY(), x[0], x[0])
	g.VPCLMULQDQ(Imm(firsts), f, x[0], x[1])
	g.VPCLMULQDQ(Imm(seconds), f, x[0], x[0])
	g.VPTERNLOGQ(Imm(sum), x[1], x[0], z)
}
