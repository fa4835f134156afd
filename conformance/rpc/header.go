package rpc

import (
	"errors"
	"fmt"
	"strings"
)

// A Proc is what a header is for (RFC 8166 §4.2.4).
type Proc uint32

// The procedures.
const (
	Msg   Proc = 0
	NoMsg Proc = 1
	MsgP  Proc = 2
	Done  Proc = 3
	Error Proc = 4
)

// String names the procedure.
func (p Proc) String() string {
	names := []string{"RDMA_MSG", "RDMA_NOMSG", "RDMA_MSGP", "RDMA_DONE", "RDMA_ERROR"}
	if int64(p) < int64(len(names)) {
		return names[p]
	}
	return fmt.Sprintf("procedure %d", uint32(p))
}

// What RDMA_ERROR says (RFC 8166 §4.5).
const (
	ErrVers  = 1
	ErrChunk = 2
)

// Version is the one that is tested, and MinHeader the length of the shortest header,
// in bytes.
const (
	Version   = 1
	MinHeader = 28
)

// A Segment is a plain segment: memory of the requester (RFC 8166 §3.4.3).
type Segment struct {
	Handle uint32 // its STag
	Length uint32
	Offset uint64 // its TO
}

// A ReadSegment is an entry of a Read list (RFC 8166 §3.4.5).
type ReadSegment struct {
	Position uint32
	Segment
}

// A Chunk is a Write chunk or a Reply chunk (RFC 8166 §3.4.6).
type Chunk []Segment

// Len returns how long the chunk is.
func (c Chunk) Len() int {
	n := 0
	for _, s := range c {
		n += int(s.Length)
	}
	return n
}

// A Header is a transport header (RFC 8166 §4.1.2).
type Header struct {
	XID, Version, Credits uint32
	Proc                  Proc

	Align, Threshold uint32 // RDMA_MSGP
	Reads            []ReadSegment
	Writes           []Chunk
	Reply            Chunk // nil: not present

	Err       uint32 // RDMA_ERROR
	Low, High uint32 // ERR_VERS
}

// Octets returns the header as it stands on the wire.
func (h Header) Octets() []byte {
	b := words(nil, h.XID, h.Version, h.Credits, uint32(h.Proc))
	switch h.Proc {
	case Error:
		b = words(b, h.Err)
		if h.Err == ErrVers {
			b = words(b, h.Low, h.High)
		}
		return b
	case MsgP:
		b = words(b, h.Align, h.Threshold)
	case Done:
		return b
	case Msg, NoMsg:
	default: // whatever it may be, it has the lists of others
	}
	for _, r := range h.Reads {
		b = words(b, 1, r.Position)
		b = segments(b, r.Segment)
	}
	b = words(b, 0)
	for _, w := range h.Writes {
		b = words(b, 1, uint32(len(w)))
		b = segments(b, w...)
	}
	b = words(b, 0)
	if h.Reply == nil {
		return words(b, 0)
	}
	b = words(b, 1, uint32(len(h.Reply)))
	return segments(b, h.Reply...)
}

func segments(b []byte, of ...Segment) []byte {
	for _, s := range of {
		b = words(b, s.Handle, s.Length, uint32(s.Offset>>32), uint32(s.Offset))
	}
	return b
}

// ErrXDR says that bytes are not the XDR that they have to be.
var ErrXDR = errors.New("no valid XDR")

// ParseHeader takes a message apart, and returns the Payload stream behind the header.
// The error, which wraps ErrXDR, says what is wrong with the header; what of it could
// be parsed is returned all the same.
func ParseHeader(b []byte) (h Header, payload []byte, err error) {
	d := decoder{rest: b}
	h = Header{XID: d.word(), Version: d.word(), Credits: d.word(), Proc: Proc(d.word())}
	switch h.Proc {
	case Error:
		h.Err = d.word()
		switch h.Err {
		case ErrVers:
			h.Low, h.High = d.word(), d.word()
		case ErrChunk:
		default:
			d.fail("error %d", h.Err)
		}
		if len(d.rest) > 0 {
			d.fail("%d octets behind an RDMA_ERROR", len(d.rest))
		}
		return h, nil, d.err
	case Done:
		return h, d.rest, d.err
	case MsgP:
		h.Align, h.Threshold = d.word(), d.word()
	case Msg, NoMsg:
	default:
		d.fail("%s", h.Proc)
		return h, nil, d.err
	}
	for d.more("Read list") {
		h.Reads = append(h.Reads, ReadSegment{Position: d.word(), Segment: d.segment()})
	}
	for d.more("Write list") {
		h.Writes = append(h.Writes, d.chunk())
	}
	if d.more("Reply chunk") {
		h.Reply = d.chunk()
	}
	if h.Proc == NoMsg && len(d.rest) > 0 {
		d.fail("%d octets behind an RDMA_NOMSG", len(d.rest))
	}
	return h, d.rest, d.err
}

func (d *decoder) segment() Segment {
	return Segment{Handle: d.word(), Length: d.word(), Offset: uint64(d.word())<<32 | uint64(d.word())}
}

const segmentLen = 16

func (d *decoder) chunk() Chunk {
	n := d.word()
	if uint64(n)*segmentLen > uint64(len(d.rest)) {
		d.fail("a chunk of %d segments in %d octets", n, len(d.rest))
		return Chunk{}
	}
	c := make(Chunk, n)
	for i := range c {
		c[i] = d.segment()
	}
	return c
}

// String describes the header in a line.
func (h Header) String() string {
	s := fmt.Sprintf("%s, XID 0x%08x, version %d, credits %d", h.Proc, h.XID, h.Version, h.Credits)
	switch {
	case h.Proc == Error && h.Err == ErrVers:
		return fmt.Sprintf("%s, ERR_VERS %d to %d", s, h.Low, h.High)
	case h.Proc == Error && h.Err == ErrChunk:
		return s + ", ERR_CHUNK"
	case h.Proc == Error:
		return fmt.Sprintf("%s, error %d", s, h.Err)
	}
	for _, r := range h.Reads {
		s += fmt.Sprintf(", to read at position %d: %s", r.Position, r.Segment)
	}
	for _, w := range h.Writes {
		s += ", Write chunk " + w.String()
	}
	if h.Reply != nil {
		s += ", Reply chunk " + h.Reply.String()
	}
	return s
}

// String describes the segment.
func (s Segment) String() string {
	return fmt.Sprintf("%d octets at STag 0x%08x TO 0x%x", s.Length, s.Handle, s.Offset)
}

// String describes the chunk.
func (c Chunk) String() string {
	if len(c) == 0 {
		return "(empty)"
	}
	parts := make([]string, len(c))
	for i, s := range c {
		parts[i] = s.String()
	}
	return "(" + strings.Join(parts, "; ") + ")"
}
