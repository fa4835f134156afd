package oncrpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"urnic/ulp/oncrpc/xdr"
)

// A record on a byte stream consists of fragments, each behind a word: whether it is the
// last one, and how long it is (RFC 5531 §11).
const (
	lastFragment = 1 << 31
	maxFragment  = 1<<31 - 1
)

// WriteRecord writes a message to a byte stream as a record of one fragment, in one
// vectored write where the stream can do that.
func WriteRecord(w io.Writer, e *xdr.Encoder) error {
	n := e.Len()
	if n > maxFragment {
		return fmt.Errorf("oncrpc: a message of %d octets: a record of one fragment has %d at most", n, maxFragment)
	}
	mark := binary.BigEndian.AppendUint32(nil, lastFragment|uint32(n))
	pieces := net.Buffers(e.Pieces([][]byte{mark}))
	_, err := pieces.WriteTo(w)
	return err
}

// What can be wrong with a record.
var (
	ErrRecordLong  = errors.New("oncrpc: a record is longer than allowed")
	ErrRecordEmpty = errors.New("oncrpc: a record has too many empty fragments")
)

// maxEmpty is how many empty fragments a record may have: they cost a peer little and
// bring nothing.
const maxEmpty = 16

// DefaultRecordMost is the length of the longest record that is read where nothing else is
// said, in bytes: 1 MiB of data, and what may stand around it.
const DefaultRecordMost = 1<<20 + 64<<10

// A RecordReader reads records off a byte stream.
type RecordReader struct {
	r    io.Reader
	most int
	mark [4]byte
	room func(p []byte, n int) []byte // returns p with room for some of n bytes more
}

// NewRecordReader returns a reader of records of at most so many bytes.
func NewRecordReader(r io.Reader, most int) *RecordReader {
	return &RecordReader{r: r, most: most, room: room}
}

// firstRoom is for how many bytes a record takes memory before any of them has come.
const firstRoom = 64 << 10

func room(p []byte, n int) []byte {
	at := len(p)
	return append(p, make([]byte, min(n, max(firstRoom, at)))...)[:at]
}

// Next reads the next record behind p, which it returns with it. It returns io.EOF if the
// stream ends before it, io.ErrUnexpectedEOF if it ends inside of it, ErrRecordLong or
// ErrRecordEmpty, or an error of the stream; the stream is of no use then.
//
// Memory is taken as bytes arrive, not when a peer names a length.
func (r *RecordReader) Next(p []byte) ([]byte, error) {
	left, empty := r.most, 0
	for first := true; ; first = false {
		if _, err := io.ReadFull(r.r, r.mark[:]); err != nil {
			if !first {
				err = unexpected(err)
			}
			return p, err
		}
		word := binary.BigEndian.Uint32(r.mark[:])
		n := int(word & maxFragment)
		if n > left {
			return p, ErrRecordLong
		}
		left -= n
		var err error
		if p, err = r.read(p, n); err != nil {
			return p, err
		}
		if word&lastFragment != 0 {
			return p, nil
		}
		if n == 0 {
			if empty++; empty > maxEmpty {
				return p, ErrRecordEmpty
			}
		}
	}
}

// read reads n bytes behind p, for which memory grows as they come.
func (r *RecordReader) read(p []byte, n int) ([]byte, error) {
	for n > 0 {
		at := len(p)
		if cap(p) == at {
			p = r.room(p, n)
		}
		now := min(n, cap(p)-at)
		p = p[:at+now]
		m, err := io.ReadFull(r.r, p[at:])
		if err != nil {
			return p[:at+m], unexpected(err)
		}
		n -= now
	}
	return p, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
