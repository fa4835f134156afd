package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// least is from how many octets on it pays to multiply, which BenchmarkUpdate
// tells. It must not be less than a block.
const least = 72

// A generator makes one function.
type generator struct {
	*build.Context
	data data
	crc  reg.GPVirtual // the CRC so far, without the inversions at both ends
	p    reg.GPVirtual // the octets to come
	n    reg.GPVirtual // how many they are
	dst  reg.GPVirtual // nil, or the distance from where they are to where they are copied
}

// update emits the function for all lengths.
func update(c *build.Context, data data) {
	g := &generator{Context: c, data: data}
	g.Function("update")
	g.Doc("update is Update.")
	g.Pragma("noescape")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(crc uint32, p []byte) uint32")
	g.CMPB(variable("folds"), Imm(0))
	g.JEQ(LabelRef("portable"))
	g.load("p")
	g.CMPQ(g.n, Imm(least))
	g.JB(LabelRef("short"))
	g.fold()
	g.short()
	g.Label("portable")
	g.tailCall("portable")
}

// copyFold emits the function that also copies.
func copyFold(c *build.Context, data data) {
	g := &generator{Context: c, data: data}
	g.Function("copyFold")
	g.Doc("copyFold is Copy for at least 64 octets, and a dst that takes them. It needs folds.")
	g.Pragma("noescape")
	g.Attributes(attr.NOSPLIT)
	g.SignatureExpr("func(dst, src []byte, crc uint32) uint32")
	g.load("src")
	g.dst = g.GP64()
	g.Load(g.Param("dst").Base(), g.dst)
	g.SUBQ(g.p, g.dst)
	g.fold()
}

// cpuid emits the function for the instruction.
func cpuid(c *build.Context) {
	c.Function("cpuid")
	c.Doc("cpuid returns what the processor says on a leaf without subleaves.")
	c.Attributes(attr.NOSPLIT)
	c.SignatureExpr("func(leaf uint32) (a, b, c, d uint32)")
	c.Load(c.Param("leaf"), reg.EAX)
	c.XORL(reg.ECX, reg.ECX)
	c.CPUID()
	for i, r := range []reg.Register{reg.EAX, reg.EBX, reg.ECX, reg.EDX} {
		c.Store(r, c.ReturnIndex(i))
	}
	c.RET()
}

// load loads the CRC, and the octets of a parameter.
func (g *generator) load(octets string) {
	g.crc, g.p, g.n = g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("crc"), g.crc.As32())
	g.Load(g.Param(octets).Base(), g.p)
	g.Load(g.Param(octets).Len(), g.n)
	g.NOTL(g.crc.As32())
}

// ret returns the CRC.
func (g *generator) ret() {
	g.NOTL(g.crc.As32())
	g.Store(g.crc.As32(), g.ReturnIndex(0))
	g.RET()
}

// variable is a variable of the package.
func variable(name string) Mem { return NewDataAddr(Symbol{Name: "·" + name}, 0) }

// tailCall goes on in a Go function that has the same parameters and results.
func (g *generator) tailCall(name string) {
	g.Instruction(&ir.Instruction{Opcode: "JMP", Operands: []Op{variable(name)}, IsTerminal: true})
}
