package machine

// A pool keeps the memory of packets for reuse.
type pool struct {
	free [len(sizes)][][]byte
	out  int // pieces of memory that are in use
}

// sizes are the capacities of the pool's memory: a short call, a packet on Ethernet, a
// packet of any size.
var sizes = [...]int{256, 2048, maxPacket + 512}

// keep is how many bytes of each size are kept.
const keep = 4 << 20

// get returns n bytes, whose contents are anything.
func (p *pool) get(n int) []byte {
	p.out++
	for i, size := range sizes {
		if n > size {
			continue
		}
		free := p.free[i]
		if len(free) == 0 {
			return make([]byte, n, size)
		}
		b := free[len(free)-1]
		free[len(free)-1] = nil
		p.free[i] = free[:len(free)-1]
		return b[:n]
	}
	return make([]byte, n)
}

// capacity is how many bytes of memory are used for n bytes.
func capacity(n int) int {
	for _, size := range sizes {
		if n <= size {
			return size
		}
	}
	return n
}

// put takes back memory that get returned.
func (p *pool) put(b []byte) {
	p.out--
	for i, size := range sizes {
		if cap(b) == size {
			if len(p.free[i]) < keep/size {
				p.free[i] = append(p.free[i], b[:0])
			}
			return
		}
	}
}

// len returns how many pieces of memory are kept.
func (p *pool) len() int {
	n := 0
	for _, free := range p.free {
		n += len(free)
	}
	return n
}
