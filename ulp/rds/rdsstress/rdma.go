package rdsstress

import (
	"encoding/binary"
	"fmt"

	"urnic/ulp/rds"
	"urnic/ulp/rds/wire"
)

// firstRDMA is the first sequence number whose request can have an RDMA operation.
const firstRDMA = 11

// plan puts the next RDMA operation into the header of a request.
func (p *pair) plan(h *Header) {
	if p.params.RDMASize == 0 || h.Sequence < firstRDMA {
		return
	}
	switch p.params.Flags[Mode] {
	case ReadOnly:
		p.operation = Read
	case WriteOnly:
		p.operation = Write
	default:
		p.operation = Read + Write - p.operation
	}
	h.RDMAOp, h.Size, h.Vectors = p.operation, p.params.RDMASize, p.params.Vectors
	h.Pattern = uint64(h.Sequence)<<32 | uint64(h.FromPort)<<16 | uint64(h.ToPort)
	h.Addr = uint64(h.Index) // the owner's to choose; it comes back
}

// mirror puts into an acknowledgement what the request says of its RDMA operation.
func (h *Header) mirror(request *Header) {
	h.RDMAOp, h.Addr, h.Phys, h.Pattern = request.RDMAOp, request.Addr, request.Phys, request.Pattern
	h.Key, h.Size, h.Vectors = request.Key, request.Size, request.Vectors
}

// judgeRDMA returns what is wrong with the RDMA operation of a message; "" if nothing is.
func (p *pair) judgeRDMA(h *Header, slot uint32) string {
	if h.Op == Ack {
		asked := Header{}
		if p.asked != nil {
			asked = p.asked[slot]
		}
		switch {
		case h.RDMAOp != asked.RDMAOp:
			return fmt.Sprintf("its RDMA operation is %d, and that of the request was %d", h.RDMAOp, asked.RDMAOp)
		case h.RDMAOp != NoRDMA && (h.Pattern != asked.Pattern || h.Size != asked.Size || h.Key != asked.Key):
			return fmt.Sprintf("its RDMA operation has pattern %#x, %d bytes and key %#x, and that of the request had %#x, %d and %#x",
				h.Pattern, h.Size, h.Key, asked.Pattern, asked.Size, asked.Key)
		}
		return ""
	}
	switch {
	case h.RDMAOp == NoRDMA:
		return ""
	case h.RDMAOp > Write:
		return fmt.Sprintf("it wants the RDMA operation %d, which there is not", h.RDMAOp)
	case h.Size != p.params.RDMASize || p.params.RDMASize == 0 || h.Vectors != p.params.Vectors:
		return fmt.Sprintf("it wants RDMA of %d times %d bytes; %d times %d were agreed", h.Vectors, h.Size, p.params.Vectors, p.params.RDMASize)
	case h.Key == 0:
		return "it wants RDMA, and gives no cookie"
	}
	return ""
}

// fill fills memory with a pattern, as the original does on a little-endian machine.
func fill(b []byte, pattern uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], pattern)
	for n := copy(b, word[:]); n < len(b); {
		n += copy(b[n:], b[:n])
	}
}

// filled returns where memory differs from a pattern; -1 if it does not.
func filled(b []byte, pattern uint64) int {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], pattern)
	for i := range b {
		if b[i] != word[i%8] {
			return i
		}
	}
	return -1
}

// regions is the memory of a flow for RDMA, by slot.
type regions struct {
	offered [][]byte  // of this side's requests, for the peer
	mrs     []*rds.MR // of these
	local   [][]byte  // of the peer's requests, for this side's operations
	busy    []bool    // local is an operation's
}

func newRegions(p *Params) *regions {
	return &regions{
		offered: make([][]byte, p.Depth), mrs: make([]*rds.MR, p.Depth),
		local: make([][]byte, p.Depth), busy: make([]bool, p.Depth),
	}
}

// length is that of the memory of a slot.
func (p *Params) length() int { return int(p.RDMASize) * int(p.Vectors) }

// offer makes the memory of a request, and returns its cookie.
func (f *flow) offer(h *Header) (wire.Cookie, error) {
	p, m, i := f.params, f.regions, int(h.Index)
	if m.offered[i] == nil {
		m.offered[i] = make([]byte, p.length())
	}
	if p.On(Verify) {
		var pattern uint64 // of what is to be written there, nothing
		if h.RDMAOp == Read {
			pattern = h.Pattern
		}
		fill(m.offered[i], pattern)
	}
	if m.mrs[i] == nil {
		options := []rds.MROption{rds.ReadWrite(), rds.MRVia(f.t.r.o.Transport)}
		if p.On(UseOnce) {
			options = append(options, rds.UseOnce())
		}
		mr, err := f.t.socket.GetMR(m.offered[i], options...)
		if err != nil {
			return 0, fmt.Errorf("memory for RDMA: %w", err)
		}
		m.mrs[i] = mr
	}
	return m.mrs[i].Cookie(), nil
}

// used takes the acknowledgement of a request with memory.
func (f *flow) used(h *Header) error {
	p, m, i := f.params, f.regions, int(h.Index)
	if !p.On(CacheMRs) {
		if err := m.mrs[i].Close(); err != nil {
			return fmt.Errorf("memory for RDMA: %w", err)
		}
		m.mrs[i] = nil
	}
	if h.RDMAOp == Read {
		f.t.r.stats.rdmaOut.Add(uint64(p.length()))
		return nil
	}
	f.t.r.stats.rdmaIn.Add(uint64(p.length()))
	return f.compare(h, m.offered[i], "was written")
}

// compare compares memory with the pattern that it must have. Of several pieces, the original fills the first one.
func (f *flow) compare(h *Header, b []byte, what string) error {
	if !f.params.On(Verify) {
		return nil
	}
	if at := filled(b[:f.params.RDMASize], h.Pattern); at >= 0 {
		return &Mismatch{f.toPort, f.selfPort, *h, fmt.Sprintf("byte %d of the memory that %s by RDMA is %#02x, which is not of the pattern %#016x", at, what, b[at], h.Pattern)}
	}
	return nil
}

// operate makes the RDMA operation that precedes an acknowledgement.
func (f *flow) operate(h *Header) *rds.Operation {
	p, m, i := f.params, f.regions, int(h.Index)
	if m.local[i] == nil {
		m.local[i] = make([]byte, p.length())
	}
	m.busy[i] = true
	cookie := wire.Cookie(h.Key)
	if h.RDMAOp == Read {
		return rds.Read(cookie, h.Phys, m.local[i])
	}
	if p.On(Verify) {
		fill(m.local[i], h.Pattern)
	}
	return rds.Write(cookie, h.Phys, m.local[i])
}

// operated waits for the end of an operation, and compares what was read.
func (f *flow) operated(h Header, op *rds.Operation) {
	r := f.t.r
	err := op.Wait(r.ctx)
	switch {
	case r.ctx.Err() != nil:
		return
	case err == nil && h.RDMAOp == Read:
		r.stats.rdmaIn.Add(uint64(f.params.length()))
		err = f.compare(&h, f.regions.local[h.Index], "was read")
		r.over()
	case err == nil:
		r.stats.rdmaOut.Add(uint64(f.params.length()))
	}
	if err != nil {
		r.fail(fmt.Errorf("rdsstress: %w", err))
		return
	}
	f.mu.Lock()
	f.regions.busy[h.Index] = false
	f.mu.Unlock()
	f.kick()
}
