package rdmap

import (
	"encoding/binary"
	"fmt"

	"urnic/stag"
)

const (
	// AtomicRequestLen is the length of an Atomic Request Header in bytes.
	AtomicRequestLen = 52
	// AtomicResponseLen is the length of an Atomic Response Header. RFC 7306 §4
	// calls it 32 bytes; its Figure 6 has these 12.
	AtomicResponseLen = 12
	// AtomicLen is the size and alignment of an atomic's target.
	AtomicLen = 8
)

// An AtomicOp is the Atomic Operation Code (RFC 7306 Figure 5). Code 1 is
// reserved.
type AtomicOp uint8

// The atomic operations.
const (
	AtomicFetchAdd AtomicOp = 0
	AtomicCmpSwap  AtomicOp = 2

	atomicOpMask = 0x0F
)

// Valid reports whether o is assigned.
func (o AtomicOp) Valid() bool { return o == AtomicFetchAdd || o == AtomicCmpSwap }

// String returns the RFC's name of the operation.
func (o AtomicOp) String() string {
	switch o {
	case AtomicFetchAdd:
		return "FetchAdd"
	case AtomicCmpSwap:
		return "CmpSwap"
	}
	return fmt.Sprintf("reserved atomic operation %d", uint8(o))
}

// An AtomicRequest is the Atomic Operation Request Header (RFC 7306 §5.2.1).
type AtomicRequest struct {
	Op          AtomicOp
	Reserved    uint32 // the 28 reserved bits as received; ignored, sent as zero
	RequestID   uint32
	STag        stag.STag
	TO          uint64 // its buffer address must be 64-bit aligned
	AddSwap     uint64 // Add or Swap Data
	AddSwapMask uint64
	Compare     uint64 // 0 for FetchAdd
	CompareMask uint64 // all ones for FetchAdd
}

// AppendBinary appends the AtomicRequestLen bytes of r to b. It never fails.
func (r AtomicRequest) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, r.Reserved<<4|uint32(r.Op&atomicOpMask)) // Reserved(28) AOpCode(4)
	b = binary.BigEndian.AppendUint32(b, r.RequestID)                             // Request Identifier (32)
	b = binary.BigEndian.AppendUint32(b, uint32(r.STag))                          // Remote STag (32)
	b = binary.BigEndian.AppendUint64(b, r.TO)                                    // Remote Tagged Offset (64)
	b = binary.BigEndian.AppendUint64(b, r.AddSwap)                               // Add or Swap Data (64)
	b = binary.BigEndian.AppendUint64(b, r.AddSwapMask)                           // Add or Swap Mask (64)
	b = binary.BigEndian.AppendUint64(b, r.Compare)                               // Compare Data (64)
	return binary.BigEndian.AppendUint64(b, r.CompareMask), nil                   // Compare Mask (64)
}

// ParseAtomicRequest reads an Atomic Operation Request Header; b is the whole
// ULP Payload of its DDP message. It fails unless b is AtomicRequestLen bytes
// long. It does not validate the operation code.
func ParseAtomicRequest(b []byte) (AtomicRequest, error) {
	if len(b) != AtomicRequestLen {
		return AtomicRequest{}, wrongLength(OpAtomicRequest, len(b))
	}
	op := binary.BigEndian.Uint32(b)
	return AtomicRequest{
		Op:          AtomicOp(op & atomicOpMask),
		Reserved:    op >> 4,
		RequestID:   binary.BigEndian.Uint32(b[4:]),
		STag:        stag.STag(binary.BigEndian.Uint32(b[8:])),
		TO:          binary.BigEndian.Uint64(b[12:]),
		AddSwap:     binary.BigEndian.Uint64(b[20:]),
		AddSwapMask: binary.BigEndian.Uint64(b[28:]),
		Compare:     binary.BigEndian.Uint64(b[36:]),
		CompareMask: binary.BigEndian.Uint64(b[44:]),
	}, nil
}

// String shows the request in one line.
func (r AtomicRequest) String() string {
	s := fmt.Sprintf("%v id=%d target=%v+0x%x data=0x%x mask=0x%x", r.Op, r.RequestID, r.STag, r.TO, r.AddSwap, r.AddSwapMask)
	if r.Op == AtomicCmpSwap {
		s += fmt.Sprintf(" compare=0x%x mask=0x%x", r.Compare, r.CompareMask)
	}
	return s
}

// Apply returns the value of the target after the operation, if it was orig
// before (RFC 7306 §5.1). It returns orig for an operation that is not Valid.
func (r *AtomicRequest) Apply(orig uint64) uint64 {
	switch r.Op {
	case AtomicFetchAdd:
		return fetchAdd(orig, r.AddSwap, r.AddSwapMask)
	case AtomicCmpSwap:
		if (r.Compare^orig)&r.CompareMask == 0 {
			return orig&^r.AddSwapMask | r.AddSwap&r.AddSwapMask
		}
	}
	return orig
}

// fetchAdd adds field by field: a one in tops marks the top bit of a field,
// and the carry out of it is dropped (RFC 7306 §5.1.1). With the top bits left
// out no carry crosses a field's end; they are then added without carry.
func fetchAdd(orig, add, tops uint64) uint64 {
	return ((orig &^ tops) + (add &^ tops)) ^ (orig^add)&tops
}

// An AtomicResponse is the Atomic Operation Response Header (RFC 7306 §5.2.2).
type AtomicResponse struct {
	RequestID uint32 // of the request
	Original  uint64 // the original value at the target
}

// AppendBinary appends the AtomicResponseLen bytes of r to b. It never fails.
func (r AtomicResponse) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, r.RequestID)        // Original Request Identifier (32)
	return binary.BigEndian.AppendUint64(b, r.Original), nil // Original Remote Data Value (64)
}

// ParseAtomicResponse reads an Atomic Operation Response Header; b is the whole
// ULP Payload of its DDP message. It fails unless b is AtomicResponseLen bytes
// long.
func ParseAtomicResponse(b []byte) (AtomicResponse, error) {
	if len(b) != AtomicResponseLen {
		return AtomicResponse{}, wrongLength(OpAtomicResponse, len(b))
	}
	return AtomicResponse{RequestID: binary.BigEndian.Uint32(b), Original: binary.BigEndian.Uint64(b[4:])}, nil
}

// String shows the response in one line.
func (r AtomicResponse) String() string {
	return fmt.Sprintf("id=%d original=0x%x", r.RequestID, r.Original)
}
