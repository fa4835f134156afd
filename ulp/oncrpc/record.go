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

// A RecordReader reads records off a byte stream.
type RecordReader struct {
	r    io.Reader
	most int
}

// NewRecordReader returns a reader of records of at most so many octets.
func NewRecordReader(r io.Reader, most int) *RecordReader { return &RecordReader{r, most} }

// Next reads the next record behind p, which it returns with it. It returns io.EOF if the
// stream ends before it, io.ErrUnexpectedEOF if it ends inside of it, ErrRecordLong or
// ErrRecordEmpty, or an error of the stream; the stream is of no use then.
//
// Memory is taken as octets arrive, not when a peer names a length.
func (r *RecordReader) Next(p []byte) ([]byte, error) {
	left, empty := r.most, 0
	for first := true; ; first = false {
		var mark [4]byte
		if _, err := io.ReadFull(r.r, mark[:]); err != nil {
			if !first {
				err = unexpected(err)
			}
			return p, err
		}
		word := binary.BigEndian.Uint32(mark[:])
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

// read reads n octets behind p, for which memory grows as they come.
func (r *RecordReader) read(p []byte, n int) ([]byte, error) {
	const step = 64 << 10
	for n > 0 {
		now := min(n, max(step, cap(p)-len(p)))
		at := len(p)
		if cap(p)-at < now {
			p = append(p, make([]byte, now)...)
		} else {
			p = p[:at+now]
		}
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
