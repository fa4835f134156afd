package rpcrdma

import (
	"encoding/binary"
	"fmt"

	"urnic/stag"
)

// Version is that of the protocol (RFC 8166 §4.2.2).
const Version = 1

// A Proc says what follows the fixed fields of a header (RFC 8166 §4.2.4).
type Proc uint32

// The procedures.
const (
	Msg   Proc = 0 // chunk lists, and the stream behind them
	NoMsg Proc = 1 // chunk lists, which hold the stream
	MsgP  Proc = 2 // nobody may send it (RFC 8166 §4.6.1)
	Done  Proc = 3 // nobody may send it (RFC 8166 §4.6.2)
	Error Proc = 4 // the call could not be carried out by this transport
)

func (p Proc) String() string {
	switch p {
	case Msg:
		return "RDMA_MSG"
	case NoMsg:
		return "RDMA_NOMSG"
	case MsgP:
		return "RDMA_MSGP"
	case Done:
		return "RDMA_DONE"
	case Error:
		return "RDMA_ERROR"
	}
	return fmt.Sprintf("procedure %d", uint32(p))
}

// An ErrCode says why a call could not be carried out (RFC 8166 §4.5).
type ErrCode uint32

// The codes.
const (
	ErrVers  ErrCode = 1 // the responder has other versions
	ErrChunk ErrCode = 2 // the header can't be decoded, or its chunks can't be used
)

func (c ErrCode) String() string {
	switch c {
	case ErrVers:
		return "ERR_VERS"
	case ErrChunk:
		return "ERR_CHUNK"
	}
	return fmt.Sprintf("error %d", uint32(c))
}

// A Segment is a piece of the requester's memory (RFC 8166 §3.4.3).
type Segment struct {
	Handle stag.STag
	Length uint32 // bytes
	Offset uint64 // the TO of the first byte
}

// A ReadSegment is a Segment of a Read chunk: successive ones with the same position
// are a chunk (RFC 8166 §3.4.5).
type ReadSegment struct {
	Position uint32 // where the chunk belongs in the stream
	Segment
}

// A Header is the transport header in front of a message (RFC 8166 §4). In a reply the
// lengths of segments say what was written to them.
type Header struct {
	XID     uint32
	Version uint32
	Credits uint32 // asked for by a call, granted by a reply (RFC 8166 §3.3.1)
	Proc    Proc

	Read     []ReadSegment // all Read chunks
	Write    [][]Segment   // the Write chunks
	Reply    []Segment     // the Reply chunk
	HasReply bool          // there is a Reply chunk, which may be empty

	Align, Threshold uint32 // with MsgP

	Err       ErrCode // with Error
	Low, High uint32  // with ErrVers: the versions that the responder has

	segments []Segment // what Write and Reply have been decoded into
}

// Bytes of parts of a header.
const (
	fixedLen   = 16
	minLen     = 28 // of a header with chunk lists, all of them empty
	segmentLen = 16
)

// Len returns how many bytes the header has.
func (h *Header) Len() int {
	switch h.Proc {
	case Done:
		return fixedLen
	case Error:
		if h.Err == ErrVers {
			return fixedLen + 12
		}
		return fixedLen + 4
	default:
		n := minLen + len(h.Read)*(8+segmentLen)
		if h.Proc == MsgP {
			n += 8
		}
		for _, c := range h.Write {
			n += 8 + len(c)*segmentLen
		}
		if h.HasReply {
			n += 4 + len(h.Reply)*segmentLen
		}
		return n
	}
}

// Append appends the header to p.
func (h *Header) Append(p []byte) []byte {
	p = words(p, h.XID, h.Version, h.Credits, uint32(h.Proc))
	switch h.Proc {
	case Done:
		return p
	case Error:
		p = words(p, uint32(h.Err))
		if h.Err == ErrVers {
			p = words(p, h.Low, h.High)
		}
		return p
	case MsgP:
		p = words(p, h.Align, h.Threshold)
	case Msg, NoMsg:
	}
	for i := range h.Read {
		p = words(p, 1, h.Read[i].Position)
		p = h.Read[i].append(p)
	}
	p = words(p, 0)
	for _, c := range h.Write {
		p = appendChunk(p, c)
	}
	p = words(p, 0)
	if !h.HasReply {
		return words(p, 0)
	}
	return appendChunk(p, h.Reply)
}

// appendChunk appends a chunk that is there.
func appendChunk(p []byte, c []Segment) []byte {
	p = words(p, 1, uint32(len(c)))
	for i := range c {
		p = c[i].append(p)
	}
	return p
}

func (s *Segment) append(p []byte) []byte {
	return binary.BigEndian.AppendUint64(words(p, uint32(s.Handle), s.Length), s.Offset)
}

func words(p []byte, ws ...uint32) []byte {
	for _, w := range ws {
		p = binary.BigEndian.AppendUint32(p, w)
	}
	return p
}
