package dropin

import (
	"encoding/binary"

	"urnic/internal/door/policy"
	"urnic/rdmap"
)

// The immediate data of the ABI has four bytes, Immediate Data on the wire eight
// (RFC 7306 §6). What the program gives are the first four, in the order in which
// it has them in memory, so that programs of any byte order and any library
// understand each other.
//
// Behind an RDMA Write, the other four are the length of the Write in network byte
// order, so that the peer's completion can tell it, as it does on InfiniBand; 0 if it
// does not fit, and of other implementations, which have zeros there. Immediate Data
// before a Send has policy.PairMark there: see policy.PairImmediate.

// immediate returns Immediate Data with what a program has given, behind a Write of
// length bytes.
func immediate(imm, length uint32) (d [rdmap.ImmediateLen]byte) {
	binary.NativeEndian.PutUint32(d[:], imm)
	if length < binary.BigEndian.Uint32([]byte(policy.PairMark)) {
		binary.BigEndian.PutUint32(d[4:], length)
	}
	return d
}

// ofImmediate returns what immediate was given.
func ofImmediate(d *[rdmap.ImmediateLen]byte) (imm, length uint32) {
	return binary.NativeEndian.Uint32(d[:]), binary.BigEndian.Uint32(d[4:])
}
