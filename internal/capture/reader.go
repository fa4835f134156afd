package capture

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// maxPacket is the longest packet that a Reader takes. Linux's largest
// packets (BIG TCP) stay below.
const maxPacket = 1 << 20

// A Packet is one packet of a capture file.
type Packet struct {
	Number int       // from 1, as Wireshark counts
	Time   time.Time // zero if the file does not tell
	Link   layers.LinkType
	Length int    // on the wire; may exceed len(Data)
	Data   []byte // valid until the next call of Next
}

// An Error says where and why a capture file can't be read on. What the file
// held before that is good.
type Error struct {
	Packets int    // how many packets were read
	Offset  int64  // where in the file, after decompression
	Reason  string // what is wrong, human-readable
	Err     error  // the cause, if there is one
}

// Error describes the damage.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s (after packet %d, at byte %d)", e.Reason, e.Packets, e.Offset)
	if e.Err != nil && !errors.Is(e.Err, io.ErrUnexpectedEOF) {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause: io.ErrUnexpectedEOF if the file is cut short.
func (e *Error) Unwrap() error { return e.Err }

// A format takes packets out of one kind of capture file.
type format interface {
	next(r *Reader, p *Packet) error
}

// A Reader reads the packets of a pcap or pcapng file.
type Reader struct {
	r       *bufio.Reader
	format  format
	offset  int64
	packets int
	buf     []byte
	err     error
}

// NewReader starts to read a capture from r. It fails with an *Error if what r
// holds is no capture.
func NewReader(r io.Reader) (*Reader, error) {
	c := &Reader{r: bufio.NewReaderSize(r, 64<<10)}
	if magic, _ := c.r.Peek(2); len(magic) == 2 && magic[0] == 0x1F && magic[1] == 0x8B {
		z, err := gzip.NewReader(c.r)
		if err != nil {
			return nil, c.fail("the gzip header is damaged", err)
		}
		c.r = bufio.NewReaderSize(z, 64<<10)
	}
	magic, err := c.r.Peek(4)
	if len(magic) < 4 {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, c.fail("too short to be a capture: give a pcap or pcapng file", err)
	}
	if binary.LittleEndian.Uint32(magic) == blockSection {
		c.format = &ng{}
		return c, nil
	}
	c.format, err = newClassic(c)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Next returns the next packet, io.EOF behind the last one, or an *Error.
// After any error it returns the same again.
func (r *Reader) Next() (Packet, error) {
	if r.err != nil {
		return Packet{}, r.err
	}
	p := Packet{Number: r.packets + 1}
	if err := r.format.next(r, &p); err != nil {
		r.err = err
		return Packet{}, err
	}
	r.packets++
	return p, nil
}

// Packets returns how many packets were read.
func (r *Reader) Packets() int { return r.packets }

func (r *Reader) fail(reason string, err error) error {
	return &Error{Packets: r.packets, Offset: r.offset, Reason: reason, Err: err}
}

// take reads n bytes, which must be there. They are valid until the next take.
func (r *Reader) take(n int) ([]byte, error) {
	if n > cap(r.buf) {
		r.buf = make([]byte, n)
	}
	b := r.buf[:n]
	got, err := io.ReadFull(r.r, b)
	r.offset += int64(got)
	if err != nil {
		return nil, r.cut(err)
	}
	return b, nil
}

// start reads n bytes with which a record begins: io.EOF in front of them is
// the end of the file.
func (r *Reader) start(n int) ([]byte, error) {
	if _, err := r.r.Peek(1); errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	return r.take(n)
}

// skip drops n bytes, which must be there.
func (r *Reader) skip(n int64) error {
	got, err := io.CopyN(io.Discard, r.r, n)
	r.offset += got
	if err != nil {
		return r.cut(err)
	}
	return nil
}

// cut makes an error of what stopped a read within a record.
func (r *Reader) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return r.fail("the capture is cut short", io.ErrUnexpectedEOF)
	}
	return r.fail("the capture can't be read", err)
}
