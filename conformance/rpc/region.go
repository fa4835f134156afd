package rpc

import (
	"fmt"

	"urnic/conformance/wire"
)

// A Region is memory that the tester opens to its peer. It is in no STag table: the
// tester checks itself what the peer accesses.
type Region struct {
	STag uint32
	TO   uint64 // of the first byte
	Data []byte
	// Reads and Writes are what the peer may do, and Read and Written how many bytes it
	// has read and written so far, the same ones twice if it does so twice.
	Reads, Writes bool
	Read, Written int
	// Over says that its call is, so that the peer has no business there any more.
	Over bool

	touched []bool
}

// Fill is what memory that is lent for results holds at first.
const Fill = 0xC7

// Segment returns n bytes of the region from an offset on, for a chunk.
func (g *Region) Segment(off, n int) Segment {
	return Segment{Handle: g.STag, Length: uint32(n), Offset: g.TO + uint64(off)}
}

// Whole returns a chunk of one segment: all of the region.
func (g *Region) Whole() Chunk { return Chunk{g.Segment(0, len(g.Data))} }

// Cut returns a chunk of segments of these lengths, one behind the other.
func (g *Region) Cut(lengths ...int) Chunk {
	c := make(Chunk, len(lengths))
	off := 0
	for i, n := range lengths {
		c[i] = g.Segment(off, n)
		off += n
	}
	return c
}

// At returns the chunk as entries of a Read list at a position.
func (c Chunk) At(position uint32) []ReadSegment {
	out := make([]ReadSegment, len(c))
	for i, s := range c {
		out[i] = ReadSegment{Position: position, Segment: s}
	}
	return out
}

// Touched returns how many bytes from an offset on have been written at least once.
func (g *Region) Touched(off int) int {
	n := 0
	for _, t := range g.touched[off:] {
		if t {
			n++
		}
	}
	return n
}

// memory is what is lent on one connection.
type memory struct{ regions []*Region }

// STags and TOs are easily told from those of a stack; a region's neighbors are far.
const (
	firstSTag = 0x52440101
	stepSTag  = 0x00010307
	firstTO   = 0x00007F5200001000
	stepTO    = 1 << 32
)

func (m *memory) lend(data []byte, reads, writes bool) *Region {
	n := len(m.regions)
	g := &Region{
		STag: firstSTag + uint32(n)*stepSTag, TO: firstTO + uint64(n)*stepTO, Data: data,
		Reads: reads, Writes: writes, touched: make([]bool, len(data)),
	}
	m.regions = append(m.regions, g)
	return g
}

// find returns n bytes at an STag and TO, or says why there are none.
func (m *memory) find(stag uint32, to uint64, n int) (*Region, int, error) {
	for _, g := range m.regions {
		if g.STag != stag {
			continue
		}
		off := to - g.TO
		if to < g.TO || off > uint64(len(g.Data)) || uint64(n) > uint64(len(g.Data))-off {
			return nil, 0, fmt.Errorf("%d octets at TO 0x%x of STag 0x%08x, which has 0x%x to 0x%x", n, to, stag, g.TO, g.TO+uint64(len(g.Data)))
		}
		if g.Over {
			return nil, 0, fmt.Errorf("%d octets of STag 0x%08x, whose call is over", n, stag)
		}
		return g, int(off), nil
	}
	return nil, 0, fmt.Errorf("STag 0x%08x, which nobody has given", stag)
}

// write places an RDMA Write, or says why it must not be placed.
func (m *memory) write(s wire.Segment) error {
	if len(s.Payload) == 0 {
		return nil // it reaches nothing (RFC 5041 §5.2)
	}
	g, off, err := m.find(s.STag, s.TO, len(s.Payload))
	switch {
	case err != nil:
		return err
	case !g.Writes:
		return fmt.Errorf("STag 0x%08x, which is lent for reading", s.STag)
	}
	copy(g.Data[off:], s.Payload)
	for i := range s.Payload {
		g.touched[off+i] = true
	}
	g.Written += len(s.Payload)
	return nil
}

// read returns what an RDMA Read asks for, or says why it must not have it.
func (m *memory) read(h wire.ReadHeader) ([]byte, error) {
	if h.Length == 0 {
		return nil, nil
	}
	g, off, err := m.find(h.SourceSTag, h.SourceTO, int(h.Length))
	switch {
	case err != nil:
		return nil, err
	case !g.Reads:
		return nil, fmt.Errorf("STag 0x%08x, which is lent for writing", h.SourceSTag)
	}
	g.Read += int(h.Length)
	return g.Data[off : off+int(h.Length)], nil
}
