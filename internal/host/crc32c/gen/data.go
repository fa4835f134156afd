package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// data is where the factors lie. Where there are two for the two quadwords of
// each lane, that of the first quadword comes first. It moves 8 octets farther.
type data struct {
	rows   operand.Mem // to the message's end; see rows
	stride operand.Mem // across a stride: two
	round  operand.Mem // across a round: two
	chains operand.Mem // from the chains' ends; see chainShifts
}

func emit(c *build.Context) data {
	return data{
		rows:   factors(c, "rows", rows()),
		stride: factors(c, "stride", []int{stride + 8, stride}),
		round:  factors(c, "round", []int{round + 8, round}),
		chains: factors(c, "ends", chainShifts()),
	}
}

func factors(c *build.Context, name string, distances []int) operand.Mem {
	m := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, e := range distances {
		c.AddDatum(8*i, operand.U64(shift(e)))
	}
	return m
}

// rows lists how far the quadwords of a message can be from its end. In one that
// is read from its start, all distances are congruent modulo 8. So each residue
// has a row, in which the factors follow one another as the quadwords do: the
// quadword n octets before the message's end has its factor n octets before the
// end of row n mod 8, rounded up. The rows are as long as what is summed in one
// go: less than a stride, or, when only whole blocks remain, less than two.
func rows() []int {
	var list []int
	for residue := range 8 {
		octets := stride
		if residue == 0 {
			octets = 2 * stride
		}
		for e := octets - 8 + residue; e >= 0; e -= 8 {
			list = append(list, e)
		}
	}
	return list
}

// chainShifts lists how far the CRC of each chain has to go at the end of a round:
// from the chain's end to that of the lane of the first register that it is added
// to. It is the remainder of the chain's octets times x^32, and it lies in the first
// half of a quadword, which is times x^32 again; so it is 8 octets too far already.
func chainShifts() []int {
	list := make([]int, chains)
	for j := range list {
		chain := round - (j+1)*segment  // octets behind the chain
		target := stride - (j/2+1)*lane // octets behind the lane
		list[j] = chain - target - 8
	}
	return list
}
