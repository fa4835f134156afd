package rpcrdma

import (
	"encoding/binary"
	"errors"
	"fmt"

	"urnic/stag"
)

// Limits bounds what is taken of a header. A zero stands for the default, which is
// beyond what a server has to take (RFC 8267 §6.4.2).
type Limits struct {
	ReadSegments int // of all Read chunks: 256
	WriteChunks  int // 16
	Segments     int // of all Write chunks and the Reply chunk: 256
}

const (
	defaultSegments = 256
	defaultChunks   = 16
)

func (l Limits) orDefaults() Limits {
	if l.ReadSegments == 0 {
		l.ReadSegments = defaultSegments
	}
	if l.WriteChunks == 0 {
		l.WriteChunks = defaultChunks
	}
	if l.Segments == 0 {
		l.Segments = defaultSegments
	}
	return l
}

// What can be wrong with a header.
var (
	ErrShort    = errors.New("it ends too early")
	ErrVersion  = errors.New("it has another version of the protocol")
	ErrProc     = errors.New("there is no such procedure")
	ErrObsolete = errors.New("nobody may send this procedure any more")
	ErrMark     = errors.New("a word that says whether something follows is neither 0 nor 1")
	ErrMany     = errors.New("it has more segments or chunks than are allowed")
	ErrPosition = errors.New("the position of a Read chunk is no multiple of four")
	ErrNoStream = errors.New("neither the message nor a chunk holds the stream")
	ErrWhy      = errors.New("there is no such error code")
)

// A HeaderError says why a header can't be used, and what a responder owes to whoever has
// sent it.
type HeaderError struct {
	XID     uint32
	Version uint32  // of the header
	Code    ErrCode // of the RDMA_ERROR to answer a call with; 0: the message is to be discarded
	Clause  string  // of RFC 8166
	Err     error   // one of the Err values
}

func (e *HeaderError) Error() string {
	return fmt.Sprintf("rpcrdma: the header of XID %08x can't be used: %v (RFC 8166 §%s)", e.XID, e.Err, e.Clause)
}

// Unwrap returns Err.
func (e *HeaderError) Unwrap() error { return e.Err }

// A cursor reads words. What it reads beyond the end are zeros.
type cursor struct {
	rest []byte
	bad  error
}

func (c *cursor) word() uint32 {
	if len(c.rest) < 4 {
		c.fail(ErrShort)
		return 0
	}
	w := binary.BigEndian.Uint32(c.rest)
	c.rest = c.rest[4:]
	return w
}

func (c *cursor) fail(err error) {
	if c.bad == nil {
		c.bad = err
	}
	c.rest = nil
}

// more reads the word in front of optional data (RFC 4506 §4.19).
func (c *cursor) more() bool {
	switch c.word() {
	case 0:
	case 1:
		return true
	default:
		c.fail(ErrMark)
	}
	return false
}

// count reads how many segments follow, of which so many are allowed.
func (c *cursor) count(most int) int {
	n := c.word()
	switch {
	case uint64(n) > uint64(max(0, most)):
		c.fail(ErrMany)
	case uint64(n)*segmentLen > uint64(len(c.rest)):
		c.fail(ErrShort)
	}
	if c.bad != nil {
		return 0
	}
	return int(n)
}

func (c *cursor) segment() Segment {
	s := Segment{Handle: stag.STag(c.word()), Length: c.word()}
	s.Offset = uint64(c.word()) << 32
	s.Offset |= uint64(c.word())
	return s
}

// Decode reads a header off a message and returns what follows it. It writes over h,
// whose memory it uses again. It returns a *HeaderError; the fixed fields are read then,
// unless it says that the message is too short for them.
//
// The rules are those that hold for calls and replies alike.
func (h *Header) Decode(message []byte, l Limits) (stream []byte, err error) {
	*h = Header{Read: h.Read[:0], Write: h.Write[:0], segments: h.segments[:0]}
	// "it MUST silently discard the message before performing any parsing" (RFC 8166
	// §4.5). An RDMA_ERROR without versions is shorter by its definition in §4.1, and is
	// taken.
	if len(message) < minLen && (len(message) < fixedLen+4 || Proc(binary.BigEndian.Uint32(message[12:])) != Error) {
		return nil, &HeaderError{Clause: "4.5", Err: ErrShort}
	}
	c := cursor{rest: message}
	h.XID, h.Version, h.Credits, h.Proc = c.word(), c.word(), c.word(), Proc(c.word())
	refuse := func(code ErrCode, clause string, err error) ([]byte, error) {
		return nil, &HeaderError{XID: h.XID, Version: h.Version, Code: code, Clause: clause, Err: err}
	}
	if h.Proc == Error {
		if h.error(&c); c.bad != nil {
			return refuse(0, "4.5", c.bad) // "silently discard an RDMA_ERROR procedure that it cannot decode"
		}
		return c.rest, nil
	}
	if h.Version != Version {
		return refuse(ErrVers, "4.5.1", ErrVersion)
	}
	switch h.Proc {
	case Msg, NoMsg:
	case MsgP:
		return refuse(ErrChunk, "4.6.1", ErrObsolete)
	case Done:
		return refuse(0, "4.6.2", ErrObsolete)
	default:
		return refuse(ErrChunk, "4.5.2", ErrProc)
	}
	h.chunks(&c, l.orDefaults())
	switch {
	case c.bad != nil:
		return refuse(ErrChunk, "4.5.2", c.bad)
	case h.Proc == NoMsg && len(h.Read) == 0 && len(h.Write) == 0 && !h.HasReply:
		return refuse(ErrChunk, "4.5.2", ErrNoStream)
	}
	return c.rest, nil
}

// error reads what follows the fixed fields of an RDMA_ERROR.
func (h *Header) error(c *cursor) {
	switch h.Err = ErrCode(c.word()); h.Err {
	case ErrVers:
		h.Low, h.High = c.word(), c.word()
	case ErrChunk:
	default:
		c.fail(ErrWhy)
	}
}

// chunks reads the chunk lists (RFC 8166 §4.3).
func (h *Header) chunks(c *cursor, l Limits) {
	for c.more() {
		if len(h.Read) == l.ReadSegments {
			c.fail(ErrMany)
			return
		}
		s := ReadSegment{Position: c.word()}
		if s.Position%4 != 0 { // RFC 8166 §3.4.5
			c.fail(ErrPosition)
			return
		}
		s.Segment = c.segment()
		h.Read = append(h.Read, s)
	}
	for c.more() {
		if len(h.Write) == l.WriteChunks {
			c.fail(ErrMany)
			return
		}
		h.Write = append(h.Write, h.chunk(c, l))
	}
	if h.HasReply = c.more(); h.HasReply {
		h.Reply = h.chunk(c, l)
	}
}

// chunk reads a counted array of segments. All of them share memory, which earlier
// chunks keep if it has to grow.
func (h *Header) chunk(c *cursor, l Limits) []Segment {
	from := len(h.segments)
	for range c.count(l.Segments - from) {
		h.segments = append(h.segments, c.segment())
	}
	return h.segments[from:len(h.segments):len(h.segments)]
}
