package capture

// A piece is part of a stream that arrived ahead of what precedes it.
type piece struct {
	seq  uint32
	data []byte
}

// A direction puts one direction of a connection in order.
type direction struct {
	started bool
	isn     uint32 // valid if syn
	syn     bool
	next    uint32  // the sequence number that the stream goes on with
	pending []piece // what lies beyond next, in order, without overlaps
	held    int     // octets in pending
	fin     bool
	finSeq  uint32 // valid if fin
	closed  bool   // the stream has reached its FIN
	any     bool   // octets were delivered
}

// start sets where the stream begins.
func (d *direction) start(seq uint32) { d.started, d.next = true, seq }

// after returns how far seq lies beyond the end of what is delivered; it is
// negative for what was delivered before.
func (d *direction) after(seq uint32) int { return int(int32(seq - d.next)) }

// perhapsFIN reports whether a FIN that was not captured explains best that the
// stream goes on at seq: nothing else is known to be there.
func (d *direction) perhapsFIN(seq uint32) bool {
	return d.after(seq) == 1 && !d.fin && len(d.pending) == 0
}

// insert keeps a copy of data, which begin beyond next, as far as they are
// new, and returns how many octets it copied.
func (d *direction) insert(seq uint32, data []byte) int {
	// i is the first piece that ends behind seq. Most often there is none.
	i := len(d.pending)
	for i > 0 && int32(d.pending[i-1].end()-seq) > 0 {
		i--
	}
	copied := 0
	for len(data) > 0 {
		if i < len(d.pending) {
			if lead := int(int32(seq - d.pending[i].seq)); lead >= 0 { // begins within the piece
				known := min(int(d.pending[i].end()-seq), len(data))
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
		d.pending[i] = piece{seq: seq, data: append([]byte(nil), data[:n]...)}
		copied += n
		seq, data = seq+uint32(n), data[n:]
		i++
	}
	d.held += copied
	return copied
}

func (p *piece) end() uint32 { return p.seq + uint32(len(p.data)) }

// pop takes the next octets of the stream off pending, if they are there.
func (d *direction) pop() []byte {
	for len(d.pending) > 0 && d.after(d.pending[0].seq) <= 0 {
		p := d.pending[0]
		d.pending = d.pending[1:]
		d.held -= len(p.data)
		if len(d.pending) == 0 {
			d.pending = nil
		}
		if known := -d.after(p.seq); known < len(p.data) {
			return p.data[known:]
		}
	}
	return nil
}
