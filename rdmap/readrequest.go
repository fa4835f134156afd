package rdmap

import (
	"encoding/binary"
	"fmt"

	"urnic/stag"
)

// ReadRequestLen is the length of an RDMA Read Request Header in bytes.
const ReadRequestLen = 28

// A ReadRequest is the RDMA Read Request Header (RFC 5040 §4.4).
type ReadRequest struct {
	SinkSTag stag.STag
	SinkTO   uint64
	Size     uint32 // RDMARDSZ, 0..2^32-1 bytes
	SrcSTag  stag.STag
	SrcTO    uint64
}

// AppendBinary appends the ReadRequestLen bytes of r to b. It never fails.
func (r ReadRequest) AppendBinary(b []byte) ([]byte, error) {
	b = binary.BigEndian.AppendUint32(b, uint32(r.SinkSTag)) // Data Sink STag (32)
	b = binary.BigEndian.AppendUint64(b, r.SinkTO)           // Data Sink Tagged Offset (64)
	b = binary.BigEndian.AppendUint32(b, r.Size)             // RDMA Read Message Size (32)
	b = binary.BigEndian.AppendUint32(b, uint32(r.SrcSTag))  // Data Source STag (32)
	return binary.BigEndian.AppendUint64(b, r.SrcTO), nil    // Data Source Tagged Offset (64)
}

// ParseReadRequest reads an RDMA Read Request Header; b is the whole ULP
// Payload of its DDP message. It fails unless b is ReadRequestLen bytes long.
func ParseReadRequest(b []byte) (ReadRequest, error) {
	if len(b) != ReadRequestLen {
		return ReadRequest{}, wrongLength(OpReadRequest, len(b))
	}
	return ReadRequest{
		SinkSTag: stag.STag(binary.BigEndian.Uint32(b)),
		SinkTO:   binary.BigEndian.Uint64(b[4:]),
		Size:     binary.BigEndian.Uint32(b[12:]),
		SrcSTag:  stag.STag(binary.BigEndian.Uint32(b[16:])),
		SrcTO:    binary.BigEndian.Uint64(b[20:]),
	}, nil
}

// String shows the request in one line.
func (r ReadRequest) String() string {
	return fmt.Sprintf("sink=%v+0x%x size=%d source=%v+0x%x", r.SinkSTag, r.SinkTO, r.Size, r.SrcSTag, r.SrcTO)
}

// wrongLength reports a message whose length does not fit its opcode. RFC 5040
// has no code for it: "unspecified" is for errors without one.
func wrongLength(o Opcode, n int) error {
	return &Error{
		Code: CodeOperationUnspecified, Clause: "RFC 5040 §4.2",
		Reason: fmt.Sprintf("%v of %d octets; it has %d", o, n, messageTypes[o].headerLen),
	}
}
