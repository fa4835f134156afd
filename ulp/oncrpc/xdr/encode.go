package xdr

import "encoding/binary"

// pad is how many bytes bring n to a multiple of four (RFC 4506 §3).
func pad(n int) int { return -n & 3 }

var zeros [3]byte

// A Bulk is variable-length opaque data that an Encoder has by reference.
type Bulk struct {
	Position int      // where its first byte stands in the stream, behind the length
	Pieces   [][]byte // one after the other, without the bytes that fill them up
	Len      int      // bytes of them

	at int // Position, in what is there without the bulks
}

// appendTo appends the data, and what fills it up, to p.
func (b *Bulk) appendTo(p []byte) []byte {
	for _, piece := range b.Pieces {
		p = append(p, piece...)
	}
	return append(p, zeros[:pad(b.Len)]...)
}

// An Encoder makes a stream. Its zero value is ready for use, and Reset makes it so
// again without giving the memory back.
type Encoder struct {
	inline []byte
	bulks  []Bulk
	pieces [][]byte // of the bulks
	moved  int      // bytes of the bulks, filled up
}

// Reset forgets the stream.
func (e *Encoder) Reset() {
	clear(e.bulks) // holds no memory of the caller
	clear(e.pieces)
	e.inline, e.bulks, e.pieces, e.moved = e.inline[:0], e.bulks[:0], e.pieces[:0], 0
}

// Len returns how long the stream is, bulks and all, in bytes.
func (e *Encoder) Len() int { return len(e.inline) + e.moved }

// Uint32 writes an unsigned integer (RFC 4506 §4.2).
func (e *Encoder) Uint32(v uint32) { e.inline = binary.BigEndian.AppendUint32(e.inline, v) }

// Int32 writes an integer (§4.1), or an enumeration (§4.3).
func (e *Encoder) Int32(v int32) { e.Uint32(uint32(v)) }

// Uint64 writes an unsigned hyper integer (§4.5).
func (e *Encoder) Uint64(v uint64) { e.inline = binary.BigEndian.AppendUint64(e.inline, v) }

// Int64 writes a hyper integer (§4.5).
func (e *Encoder) Int64(v int64) { e.Uint64(uint64(v)) }

// Bool writes a boolean (§4.4); it stands before optional data as well (§4.19).
func (e *Encoder) Bool(v bool) {
	if v {
		e.Uint32(1)
		return
	}
	e.Uint32(0)
}

// Fixed writes opaque data whose length both sides know (§4.9).
func (e *Encoder) Fixed(p []byte) {
	e.inline = append(e.inline, p...)
	e.inline = append(e.inline, zeros[:pad(len(p))]...)
}

// Opaque writes opaque data behind its length (§4.10).
func (e *Encoder) Opaque(p []byte) {
	e.Uint32(uint32(len(p)))
	e.Fixed(p)
}

// String writes a string (§4.11).
func (e *Encoder) String(s string) {
	e.Uint32(uint32(len(s)))
	e.inline = append(e.inline, s...)
	e.inline = append(e.inline, zeros[:pad(len(s))]...)
}

// Bulk writes opaque data, of one piece or several, as Opaque does, but by reference: they
// are the encoder's until the stream has been sent.
func (e *Encoder) Bulk(pieces ...[]byte) {
	n, from := 0, len(e.pieces)
	for _, p := range pieces {
		n += len(p)
		e.pieces = append(e.pieces, p)
	}
	e.Uint32(uint32(n))
	e.bulks = append(e.bulks, Bulk{Position: e.Len(), Pieces: e.pieces[from:len(e.pieces):len(e.pieces)], Len: n, at: len(e.inline)})
	e.moved += n + pad(n)
}

// Bulks returns what Bulk has written, in order.
func (e *Encoder) Bulks() []Bulk { return e.bulks }

// AppendTo appends the whole stream to p.
func (e *Encoder) AppendTo(p []byte) []byte {
	from := 0
	for i := range e.bulks {
		b := &e.bulks[i]
		p = append(p, e.inline[from:b.at]...)
		p = b.appendTo(p)
		from = b.at
	}
	return append(p, e.inline[from:]...)
}

// Pieces appends the pieces of the stream to p, for a vectored write. They are valid
// until the next write or Reset.
func (e *Encoder) Pieces(p [][]byte) [][]byte {
	from := 0
	add := func(b []byte) {
		if len(b) > 0 {
			p = append(p, b)
		}
	}
	for i := range e.bulks {
		b := &e.bulks[i]
		add(e.inline[from:b.at])
		for _, piece := range b.Pieces {
			add(piece)
		}
		add(zeros[:pad(b.Len)])
		from = b.at
	}
	add(e.inline[from:])
	return p
}

// Reduced appends the stream to p without those bulks that move says are moved by
// other means, the bytes that fill them up included (RFC 8166 §3.4.5). move may be
// called once for each.
func (e *Encoder) Reduced(p []byte, move func(i int, b Bulk) bool) []byte {
	from := 0
	for i := range e.bulks {
		b := &e.bulks[i]
		p = append(p, e.inline[from:b.at]...)
		from = b.at
		if !move(i, *b) {
			p = b.appendTo(p)
		}
	}
	return append(p, e.inline[from:]...)
}
