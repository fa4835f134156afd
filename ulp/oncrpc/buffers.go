package oncrpc

import (
	"sync"

	"urnic/ulp/oncrpc/xdr"
)

// sizes are those of the buffers that messages and bulks are read into, in bytes. Each
// has a pool of its own, so that short messages do not occupy long buffers. The last is
// the longest record of NFS with 1 MiB of data.
var sizes = [...]int{4 << 10, 64 << 10, 256 << 10, DefaultRecordMost}

var buffers [len(sizes)]sync.Pool

// A buffer is memory of a pool, or of the heap if it is larger than those of the pools.
type buffer struct {
	p    []byte // of length 0
	pool int    // or -1
}

// newBuffer returns a buffer for at least n bytes.
func newBuffer(n int) *buffer {
	for i, size := range sizes {
		if n > size {
			continue
		}
		if b, ok := buffers[i].Get().(*buffer); ok {
			return b
		}
		return &buffer{p: make([]byte, 0, size), pool: i}
	}
	return &buffer{p: make([]byte, 0, n), pool: -1}
}

// release gives the memory back. b may be nil.
func (b *buffer) release() {
	if b != nil && b.pool >= 0 {
		buffers[b.pool].Put(b)
	}
}

// A received is a message in a buffer.
type received struct {
	Message
	buf *buffer
	put func() // release, as a value that need not be made for each message
}

var messages sync.Pool

// newReceived returns an empty message. Its Release gives it back.
func newReceived() *received {
	m, ok := messages.Get().(*received)
	if !ok {
		m = new(received)
		m.put = m.release
	}
	m.Free = m.put
	return m
}

func (m *received) release() {
	m.buf.release()
	m.buf = nil
	messages.Put(m)
}

// room returns p, which is all that has come of the message, with room for some of n more
// bytes: for so few at first, and then for so few times of what has come, that nobody
// gains much by naming a length.
func (m *received) room(p []byte, n int) []byte {
	buf := newBuffer(len(p) + min(n, max(firstRoom, 3*len(p))))
	p = append(buf.p, p...)
	m.buf.release()
	m.buf = buf
	return p
}

// A bench is what a call or reply is encoded and decoded on.
type bench struct {
	enc xdr.Encoder
	dec xdr.Decoder
	req Request
}

var benches = sync.Pool{New: func() any { return new(bench) }}

// release gives b back, and holds nothing of the caller's.
func (b *bench) release() {
	b.enc.Reset()
	b.dec.Reset(nil)
	b.req = Request{}
	benches.Put(b)
}
