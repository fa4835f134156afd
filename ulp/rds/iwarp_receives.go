package rds

import (
	"errors"
	"fmt"

	"urnic/rnic"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

// slotLen is how much a fragment takes with its header.
const slotLen = wire.HeaderLen + wire.FragmentLen

// receives are those of a link. It begins with few, as a node may have a thousand peers that
// say little. While so many are taken at once that there could be too few, they become twice as many.
type receives struct {
	l       *iwarpLink
	chunks  []chunk
	posted  int
	copies  []fragment
	left    int          // bytes of a message that have not come
	now     machine.Time // of the fragments that were taken together
	again   []rnic.RecvWR
	charged int // bytes, to the transport
}

// A chunk is memory of some receives.
type chunk struct {
	mem  []byte
	mr   *rnic.MR
	sges []rnic.SGE // of each slot
}

// A fragment is data that were received, and where they belong.
type fragment struct{ to, from []byte }

// recvID marks the work request of a receive; the rest is its chunk and its slot there.
const (
	recvID    = 1 << 63
	chunkBits = 32
)

// add posts more receives.
func (r *receives) add(n int) error {
	c := chunk{mem: make([]byte, n*slotLen), sges: make([]rnic.SGE, n)}
	var err error
	if c.mr, err = r.l.t.pd.Register(c.mem, rnic.LocalWrite); err != nil {
		return err
	}
	for slot := range c.sges {
		c.sges[slot] = c.mr.SGE(slot*slotLen, slotLen)
		r.again = append(r.again, rnic.RecvWR{ID: recvID | uint64(len(r.chunks))<<chunkBits | uint64(slot), SGL: c.sges[slot : slot+1]})
	}
	r.l.t.posted.Add(int64(len(c.mem)))
	r.chunks = append(r.chunks, c)
	r.posted += n
	return r.post()
}

// post posts the receives of the fragments that were taken.
func (r *receives) post() error {
	if len(r.again) == 0 {
		return nil
	}
	err := r.l.qp.PostRecv(r.again...)
	r.again = r.again[:0]
	if err != nil {
		return fmt.Errorf("rds: iwarp: a receive can't be posted: %w", err)
	}
	return nil
}

// repost is post that has the peer told, if it counts. The node is locked.
func (r *receives) repost() error {
	n := len(r.again)
	if err := r.post(); err != nil {
		return err
	}
	r.l.path.Reposted(r.l.n.now(), r.l.id, n)
	return nil
}

// busy is how many fragments at once show that a peer sends much: a long message.
const busy = 16

// grow posts as many receives again as there are, if so many completions show that they are
// too few. The node is locked.
func (r *receives) grow(completed int) error {
	l := r.l
	n := min(r.posted, l.t.receives()-r.posted)
	if completed < min((r.posted+1)/2, busy) || n <= 0 || !l.t.charge(n*slotLen) {
		return nil
	}
	r.charged += n * slotLen
	if err := r.add(n); err != nil {
		return err
	}
	l.path.Posted(l.n.now(), l.id, n)
	return nil
}

// close gives up the memory. The queue pair is closed.
func (r *receives) close() error {
	var errs []error
	for _, c := range r.chunks {
		errs = append(errs, c.mr.Close())
		r.l.t.posted.Add(-int64(len(c.mem)))
	}
	if r.charged > 0 {
		r.l.t.charge(-r.charged)
	}
	r.chunks, r.charged = nil, 0
	return errors.Join(errs...)
}

// take hands fragments to the machine, and posts their receives again.
func (r *receives) take(wcs []rnic.WC) error {
	l := r.l
	completed := 0
	l.n.mu.Lock()
	defer l.n.unlock()
	r.now = l.n.now()
	for i := range wcs {
		if wcs[i].ID&recvID == 0 || wcs[i].Status != rnic.StatusSuccess {
			continue
		}
		id := wcs[i].ID &^ recvID
		c, slot := &r.chunks[id>>chunkBits], int(id&(1<<chunkBits-1))
		if err := r.fragment(c.mem[slot*slotLen:][:wcs[i].ByteLen]); err != nil {
			return err
		}
		r.again = append(r.again, rnic.RecvWR{ID: wcs[i].ID, SGL: c.sges[slot : slot+1]})
		completed++
	}
	if completed == 0 {
		return nil
	}
	r.copy() // the slots are used again
	if err := r.repost(); err != nil {
		return err
	}
	return r.grow(completed)
}

// copy copies what has come to where it belongs, without the node's lock if it is much. The node is locked.
func (r *receives) copy() {
	if len(r.copies) == 0 {
		return
	}
	r.l.n.mu.Unlock()
	for i := range r.copies {
		copy(r.copies[i].to, r.copies[i].from)
	}
	clear(r.copies)
	r.copies = r.copies[:0]
	r.l.n.mu.Lock()
}

// fragment hands a fragment to the machine. The node is locked.
func (r *receives) fragment(b []byte) error {
	l := r.l
	h, err := wire.ParseHeader(b)
	if err != nil {
		l.path.Malformed(r.now, l.id, err)
		return err
	}
	data := b[wire.HeaderLen:]
	for {
		buf, verdict := l.path.Begin(r.now, l.id, &h, len(data))
		switch verdict {
		case machine.Dead:
			return errLinkGone
		case machine.Take:
			r.place(&h, buf, data)
			return nil
		default:
		}
		if err := r.wait(); err != nil {
			return err
		}
	}
}

// place copies data that the machine takes, or notes that they are to be copied before the
// machine has the last ones of the message.
func (r *receives) place(h *wire.Header, buf, data []byte) {
	l := r.l
	if h.Kind() == wire.Ack {
		return
	}
	if r.left == 0 {
		r.left = int(h.Len)
	}
	r.left -= len(data)
	switch {
	case r.left > 0:
		r.copies = append(r.copies, fragment{buf, data})
	case len(r.copies) == 0:
		copy(buf, data)
	default:
		r.copies = append(r.copies, fragment{buf, data})
		r.copy()
	}
	l.path.Fill(r.now, l.id, len(data))
}

// wait waits until there may be memory again. The node is locked.
func (r *receives) wait() error {
	l := r.l
	r.copy()
	if err := r.repost(); err != nil {
		return err
	}
	l.n.unlock()
	select {
	case <-l.room:
	case <-l.ctx.Done():
	}
	l.n.mu.Lock()
	r.now = l.n.now()
	if l.ctx.Err() != nil {
		return errLinkGone
	}
	return nil
}
