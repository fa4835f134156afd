package capture

import "bytes"

// A piece is part of a stream that arrived ahead of what precedes it.
type piece struct {
	seq  uint32
	data []byte
	at   At // where it was seen
}

// A direction puts one direction of a connection in order.
type direction struct {
	started bool
	isn     uint32 // valid if syn
	syn     bool
	next    uint32  // the sequence number that the stream continues with
	pending []piece // what lies beyond next, in order, without overlaps
	held    int     // bytes in pending
	fin     bool
	finSeq  uint32 // valid if fin
	closed  bool   // the stream has reached its FIN
	any     bool   // bytes were delivered
	reset   bool   // the side has reset the connection

	hasAcked bool
	acked    uint32 // the highest acknowledgement; valid if hasAcked
	hasEdge  bool
	edge     uint32 // where the window ends that the receiver offers; valid if hasEdge
	odd      int    // acknowledgements beyond that, one after the other
	shift    uint8  // of the windows that the side itself offers; valid if syn

	good     bool          // a checksum was right
	distrust bool          // checksums are wrong of segments that were acknowledged
	suspects []heldSegment // with a wrong checksum, in the order of arrival
	variants []piece       // other versions of what is pending
	sent     []byte        // the end of what was delivered, as far as it is not acknowledged
	rst      *heldReset    // that the receiver may have ignored
}

// start sets where the stream begins.
func (d *direction) start(seq uint32) { d.started, d.next = true, seq }

// after returns how far seq lies beyond the end of what is delivered; it is
// negative for what was delivered before.
func (d *direction) after(seq uint32) int { return int(int32(seq - d.next)) }

// perhapsFIN reports whether a FIN that was not captured explains best that the
// stream continues at seq: nothing else is known to be there.
func (d *direction) perhapsFIN(seq uint32) bool {
	return d.after(seq) == 1 && !d.fin && len(d.pending) == 0
}

// insert keeps a copy of what p holds, which begins beyond next, as far as it is
// new, and returns how many bytes it copied. What is there already and differs becomes a
// variant.
func (d *direction) insert(p piece) int {
	seq, data := p.seq, p.data
	// i is the first piece that ends behind seq. Most often there is none.
	i := len(d.pending)
	for i > 0 && int32(d.pending[i-1].end()-seq) > 0 {
		i--
	}
	copied, varied := 0, 0
	for len(data) > 0 {
		if i < len(d.pending) {
			if lead := int(int32(seq - d.pending[i].seq)); lead >= 0 { // begins within the piece
				known := min(int(d.pending[i].end()-seq), len(data))
				varied += d.vary(piece{seq, data[:known], p.at}, d.pending[i].data[lead:])
				seq, data = seq+uint32(known), data[known:]
				i++
				continue
			}
		}
		n := len(data)
		if i < len(d.pending) {
			n = min(n, int(d.pending[i].seq-seq))
		}
		d.pending = append(d.pending, piece{})
		copy(d.pending[i+1:], d.pending[i:])
		d.pending[i] = piece{seq: seq, data: append([]byte(nil), data[:n]...), at: p.at}
		copied += n
		seq, data = seq+uint32(n), data[n:]
		i++
	}
	d.held += copied
	return copied + varied
}

func (p *piece) end() uint32 { return p.seq + uint32(len(p.data)) }

// maxVariants bounds how many versions are kept of what is pending, and maxSent how much
// of what was delivered.
const (
	maxVariants = 16
	maxSent     = 1 << 20
)

// vary keeps another version of bytes that are pending, and returns how many.
func (d *direction) vary(p piece, first []byte) int {
	if bytes.Equal(p.data, first[:len(p.data)]) || len(d.variants) >= maxVariants || len(p.data) > 1<<16 {
		return 0
	}
	p.data = append([]byte(nil), p.data...)
	d.variants = append(d.variants, p)
	return len(p.data)
}

// keep keeps what is delivered until it is acknowledged.
func (d *direction) keep(b []byte) {
	if len(b) > maxSent {
		b = b[len(b)-maxSent:]
	}
	if len(d.sent)+len(b) > maxSent {
		d.trim(maxSent / 2)
	}
	d.sent = append(d.sent, b...)
}

// trim keeps the last n bytes of what was delivered.
func (d *direction) trim(n int) {
	switch {
	case n >= len(d.sent):
	case cap(d.sent) > 64<<10+4*n:
		d.sent = append([]byte(nil), d.sent[len(d.sent)-n:]...)
	default:
		d.sent = append(d.sent[:0], d.sent[len(d.sent)-n:]...)
	}
}

// top returns where the bytes end that the capture has of the stream.
func (d *direction) top() uint32 {
	if n := len(d.pending); n > 0 {
		return d.pending[n-1].end()
	}
	return d.next
}

// pop takes the next bytes of the stream off pending, if they are there. bad reports that
// their checksum was wrong.
func (d *direction) pop() (b []byte, bad bool) {
	for len(d.pending) > 0 && d.after(d.pending[0].seq) <= 0 {
		p := d.pending[0]
		d.pending = d.pending[1:]
		d.held -= len(p.data)
		if len(d.pending) == 0 {
			d.pending = nil
		}
		if known := -d.after(p.seq); known < len(p.data) {
			return p.data[known:], p.at.BadChecksum
		}
	}
	return nil, false
}
