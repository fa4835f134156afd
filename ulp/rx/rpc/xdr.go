package rpc

import (
	"bytes"
	"errors"
	"strings"

	"urnic/ulp/oncrpc/xdr"
)

// A Value is encoded and decoded by one method, which names its fields in order.
type Value interface {
	XDR(x *XDR)
}

// Reasons why a value can't be encoded or decoded, besides those of package xdr.
var (
	ErrLong  = xdr.ErrLong
	ErrValue = xdr.ErrValue
	errNUL   = errors.New("a string of an array must end with a zero byte, and contain no other")
)

// An XDR encodes or decodes a value: its methods do either, depending on what it was made for.
// The first error stays, and what follows it is not encoded, or decoded as zero.
type XDR struct {
	e   *xdr.Encoder // nil while decoding
	d   *xdr.Decoder
	err error // while encoding
}

// Decoding reports whether the value is decoded.
func (x *XDR) Decoding() bool { return x.e == nil }

// Err returns the first error.
func (x *XDR) Err() error {
	if x.e == nil {
		return x.d.Err()
	}
	return x.err
}

// Fail notes that the value can't be encoded, or that what was decoded makes no sense.
func (x *XDR) Fail(what string, err error) {
	if x.e == nil {
		x.d.Fail(what, err)
		return
	}
	if x.err == nil {
		x.err = &xdr.Error{At: x.e.Len(), What: what, Err: err}
	}
}

// Uint32 is an unsigned integer.
func (x *XDR) Uint32(v *uint32) {
	if x.e == nil {
		*v = x.d.Uint32()
		return
	}
	x.e.Uint32(*v)
}

// Int32 is an integer.
func (x *XDR) Int32(v *int32) {
	if x.e == nil {
		*v = x.d.Int32()
		return
	}
	x.e.Int32(*v)
}

// Uint64 is an unsigned hyper integer.
func (x *XDR) Uint64(v *uint64) {
	if x.e == nil {
		*v = x.d.Uint64()
		return
	}
	x.e.Uint64(*v)
}

// Int64 is a hyper integer.
func (x *XDR) Int64(v *int64) {
	if x.e == nil {
		*v = x.d.Int64()
		return
	}
	x.e.Int64(*v)
}

// Int16 is a short, which takes four bytes, with its sign extended. While decoding, the upper
// half is ignored, as peers do.
func (x *XDR) Int16(v *int16) {
	if x.e == nil {
		*v = int16(x.d.Uint32())
		return
	}
	x.e.Int32(int32(*v))
}

// Uint16 is an unsigned short, which takes four bytes.
func (x *XDR) Uint16(v *uint16) {
	if x.e == nil {
		*v = uint16(x.d.Uint32())
		return
	}
	x.e.Uint32(uint32(*v))
}

// Char is a signed character, which takes four bytes, with its sign extended.
func (x *XDR) Char(v *int8) {
	if x.e == nil {
		*v = int8(x.d.Uint32())
		return
	}
	x.e.Int32(int32(*v))
}

// Byte is an unsigned character, which takes four bytes.
func (x *XDR) Byte(v *uint8) {
	if x.e == nil {
		*v = uint8(x.d.Uint32())
		return
	}
	x.e.Uint32(uint32(*v))
}

// Bool is a 32-bit integer that is 0 or not: Rx's interfaces have no other booleans.
func (x *XDR) Bool(v *bool) {
	if x.e == nil {
		*v = x.d.Uint32() != 0
		return
	}
	x.e.Bool(*v)
}

// String is a string of at most so many bytes.
func (x *XDR) String(s *string, most int) {
	if x.e == nil {
		*s = x.d.String(most)
		return
	}
	if len(*s) > most {
		x.Fail("a string", ErrLong)
		return
	}
	x.e.String(*s)
}

// Opaque is opaque data of at most so many bytes. What is decoded has memory of its own.
func (x *XDR) Opaque(p *[]byte, most int) {
	if x.e == nil {
		*p = bytes.Clone(x.d.Opaque(most))
		return
	}
	if len(*p) > most {
		x.Fail("opaque data", ErrLong)
		return
	}
	x.e.Opaque(*p)
}

// Fixed is opaque data whose length both sides know.
func (x *XDR) Fixed(p []byte) {
	if x.e == nil {
		clear(p[copy(p, x.d.Fixed(len(p))):])
		return
	}
	x.e.Fixed(p)
}

// Text is a string in an array of n characters ("char name[n]"), each of which takes four
// bytes. The string ends with a zero. What follows that is ignored.
func (x *XDR) Text(s *string, n int) {
	if x.e == nil {
		*s = x.text(n)
		return
	}
	if len(*s) >= n {
		x.Fail("an array of characters", ErrLong)
		return
	}
	if strings.IndexByte(*s, 0) >= 0 {
		x.Fail("an array of characters", errNUL)
		return
	}
	for i := range n {
		var c int8
		if i < len(*s) {
			c = int8((*s)[i])
		}
		x.e.Int32(int32(c))
	}
}

// text decodes n characters, and returns those in front of the first zero.
func (x *XDR) text(n int) string {
	p := x.d.Fixed(4 * n)
	if p == nil {
		return ""
	}
	var b strings.Builder
	for i := range n {
		c := p[4*i+3]
		if c == 0 {
			return b.String()
		}
		b.WriteByte(c)
	}
	x.Fail("an array of characters", errNUL)
	return ""
}

// Skip is so many words without meaning: zeros while encoding, ignored while decoding.
func (x *XDR) Skip(words int) {
	for range words {
		var spare uint32
		x.Uint32(&spare)
	}
}
