package cases

import (
	"encoding/binary"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// rdmapTermParts is what stands in a Terminate behind its first four bytes, taken
// apart as RFC 5040 §4.8 has it.
type rdmapTermParts struct {
	m, d, r bool
	length  int // of the DDP segment; -1 if it isn't there
	ddp     []byte
	rdma    []byte
}

// Lengths of headers.
const (
	rdmapTaggedLen   = 14
	rdmapUntaggedLen = 18
)

// rdmapTail takes a Terminate apart. It fails the case if something that the header
// control bits announce isn't there, and returns what is left over.
func rdmapTail(t *conformance.T, h wire.TerminateHeader) (p rdmapTermParts, rest []byte) {
	p = rdmapTermParts{m: h.Control&wire.TermM != 0, d: h.Control&wire.TermD != 0, r: h.Control&wire.TermR != 0, length: -1}
	rest = h.Tail
	take := func(n int, what string) []byte {
		t.Check(len(rest) >= n, "a Terminate that has "+what+", as its header control bits say", "one of %d octets: %x", 4+len(h.Tail), h.Octets())
		b := rest[:n]
		rest = rest[n:]
		return b
	}
	if p.m || p.d { // "MUST be present when the D bit is set"
		p.length = int(binary.BigEndian.Uint16(take(2, "a DDP Segment Length")))
	}
	if p.d {
		n := rdmapUntaggedLen
		if len(rest) > 0 && rest[0]&0x80 != 0 {
			n = rdmapTaggedLen
		}
		p.ddp = take(n, "a DDP header")
	}
	if p.r {
		p.rdma = take(wire.ReadRequestLen, "an RDMA header")
	}
	return p, rest
}
