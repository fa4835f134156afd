package server

import (
	"context"
	"encoding/binary"
	"slices"

	"urnic/conformance/service"
	"urnic/rnic"
)

// A queuePair is a queue pair with its two completion queues.
type queuePair struct {
	session    *session
	num        int
	pd         int
	rnic       *rnic.QP
	srq        int // of the shared receive queue, or 0
	send, recv completionQueue
	inline     int // bytes

	connecting chan struct{} // closed when the start-up that connect has begun is over; nil if there was none
	connectErr error         // of it
}

// A completionQueue is one of a queue pair's.
type completionQueue struct {
	cq      *rnic.CQ
	waiting []service.Completion // that were taken by operations that waited for another one
}

// A sharedQueue is a shared receive queue.
type sharedQueue struct {
	num  int
	pd   int
	rnic *rnic.SRQ
}

// A buffer is what the service keeps for a work request: its name, and memory
// of its own if it has any.
type buffer struct {
	op    string
	qp    int // whose send queue or receive queue it is, or
	srq   int
	send  bool
	mr    *rnic.MR
	bytes []byte
}

func (b *buffer) free() {
	if b.mr != nil {
		_ = b.mr.Close() // no window is bound to it
	}
}

// newQP makes a queue pair, and posts receives to it.
func (c *session) newQP(a service.QPAttr, recvs []service.Recv) (*queuePair, []uint64, error) {
	domain, err := c.domain(a.PD)
	if err != nil {
		return nil, nil, err
	}
	q := &queuePair{session: c, pd: a.PD, srq: a.SRQ}
	attr := rnic.QPAttr{MaxSendWR: a.SendDepth, MaxRecvWR: a.RecvDepth}
	limits := c.dev.Attr()
	attr.MaxSGE, attr.MaxInline = limits.MaxSGE, limits.MaxInline
	q.inline = attr.MaxInline
	received := a.RecvDepth
	if a.SRQ != 0 {
		s, err := find(c, c.srqs, a.SRQ, "shared receive queue")
		if err != nil {
			return nil, nil, err
		}
		attr.SRQ, received = s.rnic, s.rnic.Attr().MaxWR
	}
	if q.send.cq, err = c.newCQ(a.SendEntries, a.SendDepth); err != nil {
		return nil, nil, err
	}
	if q.recv.cq, err = c.newCQ(a.RecvEntries, received); err != nil {
		_ = q.send.cq.Close() // nobody uses it
		return nil, nil, err
	}
	attr.SendCQ, attr.RecvCQ = q.send.cq, q.recv.cq
	if q.rnic, err = domain.CreateQP(attr); err != nil {
		_, _ = q.send.cq.Close(), q.recv.cq.Close() // nobody uses them
		return nil, nil, err
	}
	q.num = add(c, c.qps, q)
	ids, err := c.postRecvs(q.rnic, q.pd, buffer{qp: q.num}, recvs)
	if err != nil {
		c.drop(q)
		return nil, nil, err
	}
	return q, ids, nil
}

// newCQ makes a completion queue that is large enough, if nobody says how large.
func (c *session) newCQ(entries, depth int) (*rnic.CQ, error) {
	if entries == 0 {
		entries = 2 * max(depth, rnic.DefaultWR)
	}
	return c.dev.CreateCQ(rnic.CQAttr{Entries: min(entries, maxEntries)})
}

// drop gives a queue pair up with all that it has.
func (c *session) drop(q *queuePair) {
	_ = q.rnic.Close() // it was made by its device
	if q.connecting != nil {
		<-q.connecting
	}
	var wcs [16]rnic.WC
	for { // receives of a shared queue, too
		n := q.recv.cq.Poll(wcs[:])
		for i := range wcs[:n] {
			c.take(wcs[i].ID)
		}
		if n == 0 {
			break
		}
	}
	c.mu.Lock()
	var ids []uint64
	for id, b := range c.buffers {
		if b.qp == q.num {
			ids = append(ids, id)
		}
	}
	delete(c.qps, q.num)
	c.mu.Unlock()
	for _, id := range ids {
		c.take(id)
	}
	_, _ = q.send.cq.Close(), q.recv.cq.Close() // nobody uses them
}

// keep notes a buffer, unless it is nil, and returns the ID of its work request.
func (c *session) keep(b *buffer) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastWR++
	if b != nil {
		c.buffers[c.lastWR] = b
	}
	return c.lastWR
}

// take gives a buffer up and returns it; nil if there is none.
func (c *session) take(id uint64) *buffer {
	c.mu.Lock()
	b := c.buffers[id]
	delete(c.buffers, id)
	c.mu.Unlock()
	if b != nil {
		b.free()
	}
	return b
}

// own gives a work request a buffer of the service.
func (c *session) own(b *buffer, pd int, mem []byte, access rnic.Access) (rnic.SGE, error) {
	domain, err := c.domain(pd)
	if err != nil {
		return rnic.SGE{}, err
	}
	if b.mr, err = domain.Register(mem, access); err != nil {
		return rnic.SGE{}, err
	}
	b.bytes = mem
	return b.mr.SGE(0, len(mem)), nil
}

// sgl returns the pieces of regions that a request names.
func (c *session) sgl(pieces []service.Piece) ([]rnic.SGE, error) {
	list := make([]rnic.SGE, 0, len(pieces))
	for _, p := range pieces {
		r, err := c.region(p.MR)
		if err != nil {
			return nil, err
		}
		list = append(list, rnic.SGE{Addr: r.rnic.Base() + p.Offset, Length: p.Length, LKey: r.rnic.STag()})
	}
	return list, nil
}

// side returns one of the two completion queues.
func (q *queuePair) side(name string) (*completionQueue, error) {
	switch name {
	case service.SendQueue:
		return &q.send, nil
	case service.RecvQueue:
		return &q.recv, nil
	}
	return nil, bad("queue %q: say send or recv", service.Shorten([]byte(name)))
}

// queue returns one of the completion queues of a queue pair.
func (c *session) queue(qp int, name string) (*queuePair, *completionQueue, error) {
	q, err := find(c, c.qps, qp, "queue pair")
	if err != nil {
		return nil, nil, err
	}
	side, err := q.side(name)
	return q, side, err
}

// next waits for the next completion of the RNIC.
func (q *completionQueue) next(ctx context.Context) (rnic.WC, error) {
	var wc [1]rnic.WC
	if q.cq.Poll(wc[:]) == 1 {
		return wc[0], nil
	}
	_, err := q.cq.Wait(ctx, wc[:])
	if err != nil {
		return wc[0], timely(ctx, err)
	}
	return wc[0], nil
}

// completed is a completion as the client gets it.
func (c *session) completed(q *queuePair, w *rnic.WC) service.Completion {
	r := service.Completion{ID: w.ID, Op: opcodes[w.Op], Status: statuses[w.Status], Failure: failureOf(w.Cause)}
	b := c.take(w.ID)
	if b != nil && b.send {
		r.Op = b.op
		c.done(q, w.ID)
	}
	if w.Status != rnic.StatusSuccess {
		return r
	}
	r.Length, r.Solicited, r.Invalidated = w.ByteLen, w.Solicited, service.STag(w.Invalidated)
	switch w.Op { //nolint:exhaustive // others have nothing of their own
	case rnic.OpRecvImmediate:
		r.Immediate = new(service.Uint64(binary.BigEndian.Uint64(w.Immediate[:])))
	case rnic.OpFetchAdd, rnic.OpCmpSwap:
		r.Original = new(service.Uint64(w.Original))
	case rnic.OpRecv:
		if b != nil && b.mr != nil {
			r.Data = slices.Clone(b.bytes[:min(int(w.ByteLen), len(b.bytes))])
		}
	}
	return r
}

// done gives up what requests of the send queue had that came before one that
// has completed, and don't say so themselves.
func (c *session) done(q *queuePair, id uint64) {
	c.mu.Lock()
	var before []uint64
	for n, b := range c.buffers {
		if b.send && b.qp == q.num && n < id {
			before = append(before, n)
		}
	}
	c.mu.Unlock()
	for _, n := range before {
		c.take(n)
	}
}
