package rdsstress

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// HeaderLen is the length of a message's header in bytes, and of the shortest message.
const HeaderLen = 63

// An Op says what a message is.
type Op uint8

// The operations.
const (
	Request Op = 1
	Ack     Op = 2
)

func (o Op) String() string {
	switch o {
	case Request:
		return "request"
	case Ack:
		return "ack"
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// An RDMAOp is what the receiver of a request does to the sender's memory.
type RDMAOp uint8

// The RDMA operations.
const (
	NoRDMA RDMAOp = iota
	Read
	Write
)

// A Header begins each message.
type Header struct {
	Sequence         uint32
	From, To         netip.Addr // of IPv4; invalid ones are 0
	FromPort, ToPort uint16
	Index            uint16 // of the slot
	Op               Op

	// Of a request with an RDMA operation, and of its acknowledgement.
	RDMAOp  RDMAOp
	Addr    uint64 // of the memory, for its owner
	Phys    uint64 // offset in the memory
	Pattern uint64 // what the memory is filled with, in 8 bytes, little-endian
	Key     uint64 // the cookie, in acknowledgements; in requests, RDMA_DEST has it
	Size    uint32
	Vectors uint32

	Retry uint8
}

// AppendTo appends the wire form.
func (h *Header) AppendTo(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.Sequence) // sequence(32)
	b = appendAddr(b, h.From)                        // from address(32)
	b = appendAddr(b, h.To)                          // to address(32)
	b = binary.BigEndian.AppendUint16(b, h.FromPort) // from port(16)
	b = binary.BigEndian.AppendUint16(b, h.ToPort)   // to port(16)
	b = binary.BigEndian.AppendUint16(b, h.Index)    // index(16)
	b = append(b, byte(h.Op), byte(h.RDMAOp))        // op(8) RDMA op(8)
	b = binary.BigEndian.AppendUint64(b, h.Addr)     // RDMA address(64)
	b = binary.BigEndian.AppendUint64(b, h.Phys)     // RDMA physical address(64)
	b = binary.BigEndian.AppendUint64(b, h.Pattern)  // RDMA pattern(64)
	b = binary.BigEndian.AppendUint64(b, h.Key)      // RDMA key(64)
	b = binary.BigEndian.AppendUint32(b, h.Size)     // RDMA size(32)
	b = binary.BigEndian.AppendUint32(b, h.Vectors)  // RDMA vectors(32)
	return append(b, h.Retry, 0, 0)                  // retry(8) remote error(8) pending(8)
}

// ParseHeader takes a header from the beginning of a message.
func ParseHeader(b []byte) (h Header, err error) {
	if len(b) < HeaderLen {
		return h, fmt.Errorf("rdsstress: a message of %d bytes: its header alone has %d", len(b), HeaderLen)
	}
	h = Header{
		Sequence: binary.BigEndian.Uint32(b[0:]),
		From:     parseAddr(b[4:]), To: parseAddr(b[8:]),
		FromPort: binary.BigEndian.Uint16(b[12:]), ToPort: binary.BigEndian.Uint16(b[14:]),
		Index: binary.BigEndian.Uint16(b[16:]), Op: Op(b[18]), RDMAOp: RDMAOp(b[19]),
		Addr: binary.BigEndian.Uint64(b[20:]), Phys: binary.BigEndian.Uint64(b[28:]),
		Pattern: binary.BigEndian.Uint64(b[36:]), Key: binary.BigEndian.Uint64(b[44:]),
		Size: binary.BigEndian.Uint32(b[52:]), Vectors: binary.BigEndian.Uint32(b[56:]),
		Retry: b[60],
	}
	if h.Op != Request && h.Op != Ack {
		return h, fmt.Errorf("rdsstress: a message with the %v", h.Op)
	}
	return h, nil
}

// pattern returns the first n bytes of what follows the headers of messages, if contents are
// to be verified: a sequence that runs through all 256 values, changed after each 256 bytes so
// that blocks that are exchanged are noticed.
func pattern(n int) []byte {
	b := make([]byte, n)
	k := byte(11)
	for i := range b {
		b[i] = k
		k = 41*(k+3) + byte((i+1)>>8)
	}
	return b
}
