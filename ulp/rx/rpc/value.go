package rpc

import (
	"sync"

	"urnic/ulp/oncrpc/xdr"
)

// Void is no value: the arguments or results of operations that have none.
type Void struct{}

// XDR encodes or decodes nothing.
func (*Void) XDR(*XDR) {}

// Int32 is one integer.
type Int32 int32

// XDR encodes or decodes v.
func (v *Int32) XDR(x *XDR) { x.Int32((*int32)(v)) }

// Uint32 is one unsigned integer.
type Uint32 uint32

// XDR encodes or decodes v.
func (v *Uint32) XDR(x *XDR) { x.Uint32((*uint32)(v)) }

// codec is memory that is used again and again.
type codec struct {
	x   XDR
	e   xdr.Encoder
	d   xdr.Decoder
	out []byte
	in  []byte
}

var codecs = sync.Pool{New: func() any { return new(codec) }}

const maxKept = 1 << 16 // bytes of memory that a codec in the pool may have

func (c *codec) free() {
	if cap(c.out) > maxKept || cap(c.in) > maxKept {
		return
	}
	c.d.Reset(nil)
	c.e.Reset()
	codecs.Put(c)
}

// encode appends v to p.
func (c *codec) encode(p []byte, v Value) ([]byte, error) {
	c.e.Reset()
	c.x = XDR{e: &c.e}
	v.XDR(&c.x)
	if c.x.err != nil {
		return p, c.x.err
	}
	return c.e.AppendTo(p), nil
}

// decode decodes a value of all of p, or of its beginning.
func (c *codec) decode(p []byte, v Value, all bool) error {
	c.d.Reset(p)
	c.x = XDR{d: &c.d}
	v.XDR(&c.x)
	if all {
		return c.d.End()
	}
	return c.d.Err()
}

// Append appends the encoding of v to p.
func Append(p []byte, v Value) ([]byte, error) {
	c := codecs.Get().(*codec)
	defer c.free()
	return c.encode(p, v)
}

// Decode decodes v from p, which may have no byte more.
func Decode(p []byte, v Value) error {
	c := codecs.Get().(*codec)
	defer c.free()
	return c.decode(p, v, true)
}
