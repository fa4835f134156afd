package rdpfile

import (
	"container/heap"
	"fmt"
	"io"
)

// An assembly puts a file together.
type assembly interface {
	// put takes a piece.
	put(data []byte, offset int64) error
	// flush writes what was put.
	flush() error
	// size returns how long the file is, and whether nothing is missing.
	size() (n int64, whole bool)
}

// A gather joins pieces that follow each other, so that they are written together.
type gather struct {
	buf []byte
	at  int64
}

// add adds a piece. It reports false if that has to be written apart.
func (g *gather) add(data []byte, offset int64) bool {
	if len(g.buf) == 0 {
		g.at = offset
	}
	if g.at+int64(len(g.buf)) != offset || len(g.buf) > 0 && len(g.buf)+len(data) > atOnce {
		return false
	}
	g.buf = append(g.buf, data...)
	return true
}

// inOrder writes a file from its beginning to its end.
type inOrder struct {
	w    io.Writer
	g    gather
	next int64 // offset of what is to be written next
	held pieces
	n    int // bytes of them
}

func (o *inOrder) put(data []byte, offset int64) error {
	if offset > o.next {
		if len(data) == 0 {
			return nil
		}
		if o.n += len(data); o.n > maxHeld || len(o.held) >= maxPieces {
			return fmt.Errorf("%w: more than %d bytes or %d messages wait for what is before them", ErrHoles, maxHeld, maxPieces)
		}
		heap.Push(&o.held, piece{append([]byte(nil), data...), offset})
		return nil
	}
	if err := o.write(data, offset); err != nil {
		return err
	}
	for len(o.held) > 0 && o.held[0].offset <= o.next {
		p := heap.Pop(&o.held).(piece)
		o.n -= len(p.data)
		if err := o.write(p.data, p.offset); err != nil {
			return err
		}
	}
	return nil
}

// write writes a piece that begins where the file ends so far, or before that.
func (o *inOrder) write(data []byte, offset int64) error {
	skip := o.next - offset
	if skip >= int64(len(data)) {
		return nil // it has come before
	}
	data = data[skip:]
	for !o.g.add(data, o.next) {
		if err := o.flush(); err != nil {
			return err
		}
	}
	o.next += int64(len(data))
	return nil
}

func (o *inOrder) flush() error {
	if len(o.g.buf) == 0 {
		return nil
	}
	_, err := o.w.Write(o.g.buf)
	o.g.buf = o.g.buf[:0]
	return err
}

func (o *inOrder) size() (int64, bool) { return o.next, len(o.held) == 0 }

// A piece is data with its place in a file.
type piece struct {
	data   []byte
	offset int64
}

// pieces are a heap: the one with the least offset is first.
type pieces []piece

func (p pieces) Len() int           { return len(p) }
func (p pieces) Less(i, j int) bool { return p[i].offset < p[j].offset }
func (p pieces) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }

// Push is of heap.Interface.
func (p *pieces) Push(x any) { *p = append(*p, x.(piece)) }

// Pop is of heap.Interface.
func (p *pieces) Pop() any {
	last := len(*p) - 1
	x := (*p)[last]
	(*p)[last] = piece{}
	*p = (*p)[:last]
	return x
}

// anyOrder writes pieces of a file where they belong.
type anyOrder struct {
	w io.WriterAt
	g gather
	r ranges
}

func (o *anyOrder) put(data []byte, offset int64) error {
	if len(data) == 0 {
		return nil
	}
	if o.r.add(offset, offset+int64(len(data))); len(o.r) > maxPieces {
		return fmt.Errorf("%w: there are more than %d holes", ErrHoles, maxPieces)
	}
	for !o.g.add(data, offset) {
		if err := o.flush(); err != nil {
			return err
		}
	}
	return nil
}

func (o *anyOrder) flush() error {
	if len(o.g.buf) == 0 {
		return nil
	}
	_, err := o.w.WriteAt(o.g.buf, o.g.at)
	o.g.buf = o.g.buf[:0]
	return err
}

func (o *anyOrder) size() (int64, bool) { return o.r.end(), o.r.whole() }
