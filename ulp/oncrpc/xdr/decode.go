package xdr

import (
	"encoding/binary"
)

// Positions of what is known by its order only: it says where the next bulk data is (RFC
// 8166 §4.3.2.1).
const (
	Next   = -1 // in Data, all of it: there was a place for it, which had to be used (§6.1)
	Inline = -2 // in the stream, as it had to be: there was no place for it (§4.3.2.3)
)

// A Moved is data that a transport has moved outside of the stream.
type Moved struct {
	Position int    // where its first byte would stand in the stream, or Next, or Inline
	Data     []byte // with or without the bytes that fill it up; none if Inline
}

// ordered reports whether m is known by its order only.
func (m *Moved) ordered() bool { return m.Position == Next || m.Position == Inline }

// A Decoder reads a stream. What it returns of opaque data lies in the stream's own
// memory, or in that of what was moved.
type Decoder struct {
	rest  []byte
	at    int // of rest, in the stream with all that was moved
	moved []Moved
	err   error
}

// NewDecoder returns a decoder of a stream, of which the transport has moved some data:
// in the order of their positions.
func NewDecoder(stream []byte, moved ...Moved) *Decoder {
	return &Decoder{rest: stream, moved: moved}
}

// Reset makes d a decoder of another stream, as NewDecoder does.
func (d *Decoder) Reset(stream []byte, moved ...Moved) {
	*d = Decoder{rest: stream, moved: moved}
}

// Err returns the first error, an *Error, or nil.
func (d *Decoder) Err() error { return d.err }

// At returns the position in the stream, in bytes, moved data counted.
func (d *Decoder) At() int { return d.at }

// Left returns how many bytes of the stream are left, without what was moved.
func (d *Decoder) Left() int { return len(d.rest) }

// Fail notes that what was read before is not what it should be.
func (d *Decoder) Fail(what string, err error) {
	if d.err == nil {
		d.err = &Error{At: d.at, What: what, Err: err}
	}
	d.rest, d.moved = nil, nil
}

// End fails with ErrTrailer if something is left, or ErrMoved if something was moved
// that nobody has read. It returns Err.
func (d *Decoder) End() error {
	switch {
	case d.err != nil:
	case len(d.rest) > 0:
		d.Fail("the end", ErrTrailer)
	case d.unread():
		d.Fail("the end", ErrMoved)
	}
	return d.err
}

// unread reports whether something was moved that nobody has read.
func (d *Decoder) unread() bool {
	for _, m := range d.moved {
		if !m.ordered() || len(m.Data) > 0 {
			return true
		}
	}
	return false
}

// take returns the next n bytes, or nil.
func (d *Decoder) take(n int, what string) []byte {
	if d.err != nil {
		return nil
	}
	if len(d.moved) > 0 && !d.moved[0].ordered() && d.moved[0].Position < d.at+n { // where something else stands
		d.Fail(what, ErrMoved)
		return nil
	}
	if n > len(d.rest) {
		d.Fail(what, ErrShort)
		return nil
	}
	p := d.rest[:n:n]
	d.rest = d.rest[n:]
	d.at += n
	return p
}

// Uint32 reads an unsigned integer (RFC 4506 §4.2).
func (d *Decoder) Uint32() uint32 {
	if p := d.take(4, "an integer"); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

// Int32 reads an integer (§4.1), or an enumeration (§4.3), whose values the caller
// checks.
func (d *Decoder) Int32() int32 { return int32(d.Uint32()) }

// Uint64 reads an unsigned hyper integer (§4.5).
func (d *Decoder) Uint64() uint64 {
	if p := d.take(8, "a hyper integer"); p != nil {
		return binary.BigEndian.Uint64(p)
	}
	return 0
}

// Int64 reads a hyper integer (§4.5).
func (d *Decoder) Int64() int64 { return int64(d.Uint64()) }

// Bool reads a boolean (§4.4). It fails with ErrValue if that is neither 0 nor 1.
func (d *Decoder) Bool() bool {
	switch d.Uint32() {
	case 0:
	case 1:
		return true
	default:
		d.Fail("a boolean", ErrValue)
	}
	return false
}

// Fixed reads opaque data of n bytes (§4.9). What fills it up may be anything.
func (d *Decoder) Fixed(n int) []byte {
	if n < 0 {
		d.Fail("opaque data", ErrLong)
		return nil
	}
	p := d.take(n, "opaque data")
	d.take(pad(n), "the end of opaque data")
	if d.err != nil {
		return nil
	}
	return p
}

// length reads a length of at most so much.
func (d *Decoder) length(most int, what string) int {
	n := d.Uint32()
	if d.err == nil && uint64(n) > uint64(max(0, most)) {
		d.Fail(what, ErrLong)
	}
	if d.err != nil {
		return 0
	}
	return int(n)
}

// Count reads how many elements follow (§4.13), each of at least size bytes. It fails
// with ErrLong if they are more than most, and with ErrShort if there can't be so many.
func (d *Decoder) Count(most, size int) int {
	n := d.length(most, "a count")
	if n > 0 && size > 0 && n > len(d.rest)/size {
		d.Fail("a count", ErrShort)
		return 0
	}
	return n
}

// Opaque reads opaque data of at most so many bytes (§4.10).
func (d *Decoder) Opaque(most int) []byte {
	return d.Fixed(d.length(most, "the length of opaque data"))
}

// String reads a string of at most so many bytes (§4.11).
func (d *Decoder) String(most int) string {
	return string(d.Fixed(d.length(most, "the length of a string")))
}

// Bulk reads opaque data as Opaque does, wherever it is: in the stream, or moved. It
// fails with ErrMoved if what was moved is shorter than its length says, or longer than
// that and what fills it up. Of what is known by its order, each belongs to one Bulk: it
// fails with ErrUnmoved if there is data, and its place was not used.
func (d *Decoder) Bulk(most int) []byte {
	n := d.length(most, "the length of bulk data")
	if d.err != nil || len(d.moved) == 0 {
		return d.Fixed(n)
	}
	switch m := d.moved[0]; {
	case m.Position == Inline:
		d.moved = d.moved[1:]
		return d.Fixed(n)
	case m.Position == Next:
		d.moved = d.moved[1:]
		if n > 0 && len(m.Data) == 0 {
			d.Fail("bulk data", ErrUnmoved)
			return nil
		}
		return d.fromMoved(m.Data, n)
	case m.Position != d.at || n == 0:
		return d.Fixed(n)
	default:
		d.moved = d.moved[1:]
		return d.fromMoved(m.Data, n)
	}
}

// fromMoved takes n bytes out of moved data.
func (d *Decoder) fromMoved(data []byte, n int) []byte {
	if len(data) < n || len(data) > n+pad(n) {
		d.Fail("bulk data", ErrMoved)
		return nil
	}
	d.at += n + pad(n)
	return data[:n:n]
}

// BulkInto reads bulk data as Bulk does, and copies it into p unless it lies there
// already. It returns its length, and fails with ErrLong if p is too small.
func (d *Decoder) BulkInto(p []byte) int {
	data := d.Bulk(len(p))
	if len(data) > 0 && &data[0] != &p[0] {
		copy(p, data)
	}
	return len(data)
}
