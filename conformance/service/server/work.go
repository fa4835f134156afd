package server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"urnic/conformance/service"
	"urnic/rnic"
	"urnic/stag"
)

func (c *session) createSRQ(_ context.Context, a *service.SRQArgs) (any, error) {
	domain, err := c.domain(a.PD)
	if err != nil {
		return nil, err
	}
	s := &sharedQueue{pd: a.PD}
	s.rnic, err = domain.CreateSRQ(rnic.SRQAttr{MaxWR: a.Depth, MaxSGE: c.dev.Attr().MaxSGE, Limit: a.Limit, PerQP: a.PerQP})
	if err != nil {
		return nil, err
	}
	s.num = add(c, c.srqs, s)
	ids, err := c.postRecvs(s.rnic, s.pd, buffer{srq: s.num}, a.Recvs)
	if err != nil {
		return nil, errors.Join(err, c.dropSRQ(s))
	}
	return &service.SRQ{SRQ: s.num, IDs: ids}, nil
}

func (c *session) closeSRQ(_ context.Context, a *service.CloseSRQArgs) (any, error) {
	s, err := find(c, c.srqs, a.SRQ, "shared receive queue")
	if err != nil {
		return nil, err
	}
	return nil, c.dropSRQ(s)
}

func (c *session) dropSRQ(s *sharedQueue) error {
	if err := s.rnic.Close(); err != nil {
		return err
	}
	c.mu.Lock()
	var ids []uint64
	for id, b := range c.buffers {
		if b.srq == s.num {
			ids = append(ids, id)
		}
	}
	delete(c.srqs, s.num)
	c.mu.Unlock()
	for _, id := range ids {
		c.take(id)
	}
	return nil
}

func (c *session) recv(_ context.Context, a *service.RecvArgs) (any, error) {
	var to poster
	var owner buffer
	var domain int
	if a.SRQ != 0 {
		s, err := find(c, c.srqs, a.SRQ, "shared receive queue")
		if err != nil {
			return nil, err
		}
		to, owner, domain = s.rnic, buffer{srq: s.num}, s.pd
	} else {
		q, err := find(c, c.qps, a.QP, "queue pair")
		if err != nil {
			return nil, err
		}
		to, owner, domain = q.rnic, buffer{qp: q.num}, q.pd
	}
	ids, err := c.postRecvs(to, domain, owner, a.Recvs)
	if err != nil {
		return nil, err
	}
	return &service.IDs{IDs: ids}, nil
}

// A poster takes receives.
type poster interface {
	PostRecv(wrs ...rnic.RecvWR) error
}

// postRecvs posts receives; owner says whose they are.
func (c *session) postRecvs(to poster, domain int, owner buffer, recvs []service.Recv) (ids []uint64, err error) {
	for _, r := range recvs {
		id, err := c.postRecv(to, domain, owner, &r)
		if err != nil {
			e := *errorOf(err)
			e.IDs = ids
			return nil, &e
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func (c *session) postRecv(to poster, domain int, owner buffer, r *service.Recv) (uint64, error) {
	var wr rnic.RecvWR
	b := &owner
	switch {
	case r.SGL != nil && r.Length != 0:
		return 0, bad("a receive has a length or an sgl, not both")
	case r.Length > maxData:
		return 0, bad("a receive of %d octets: say up to %d, or name regions in sgl", r.Length, maxData)
	case r.SGL != nil:
		sgl, err := c.sgl(r.SGL)
		if err != nil {
			return 0, err
		}
		wr.SGL = sgl
	case r.Length > 0:
		sge, err := c.own(b, domain, make([]byte, r.Length), rnic.LocalWrite)
		if err != nil {
			return 0, err
		}
		wr.SGL = []rnic.SGE{sge}
	}
	wr.ID = c.keep(b)
	if err := to.PostRecv(wr); err != nil {
		c.take(wr.ID)
		return 0, err
	}
	return wr.ID, nil
}

func (c *session) post(_ context.Context, a *service.PostArgs) (any, error) {
	q, err := find(c, c.qps, a.QP, "queue pair")
	if err != nil {
		return nil, err
	}
	wrs := make([]rnic.SendWR, 0, len(a.Posts))
	ids := make([]uint64, 0, len(a.Posts))
	giveUp := func(ids []uint64) {
		for _, id := range ids {
			c.take(id)
		}
	}
	for i := range a.Posts {
		b := &buffer{op: a.Posts[i].Op, qp: q.num, send: true}
		wr, err := c.sendWR(q, &a.Posts[i], b)
		if err != nil {
			b.free()
			giveUp(ids)
			return nil, err // none of them is posted
		}
		if wr.Flags&rnic.FlagUnsignaled != 0 && b.mr == nil {
			b = nil // nothing would ever tell that it is done with
		}
		wr.ID = c.keep(b)
		wrs, ids = append(wrs, wr), append(ids, wr.ID)
	}
	if err := q.rnic.PostSend(wrs...); err != nil {
		e := *errorOf(err)
		posted := 0
		if refused, ok := errors.AsType[*rnic.WRError](err); ok {
			posted = refused.Index
		}
		giveUp(ids[posted:])
		e.IDs = ids[:posted]
		return nil, &e
	}
	return &service.IDs{IDs: ids}, nil
}

// sendWR returns a request for the send queue.
func (c *session) sendWR(q *queuePair, p *service.Post, b *buffer) (wr rnic.SendWR, err error) {
	what, err := lookUp("op", postings, p.Op)
	if err != nil {
		return wr, err
	}
	wr = rnic.SendWR{
		Op: what.op, Flags: what.flags, Invalidate: stag.STag(p.Invalidate),
		Remote: rnic.Remote{STag: stag.STag(p.Remote.STag), TO: uint64(p.Remote.TO)},
	}
	binary.BigEndian.PutUint64(wr.Immediate[:], uint64(p.Immediate))
	wr.Atomic = rnic.Atomic{Add: uint64(p.Add), AddMask: uint64(p.AddMask), Compare: uint64(p.Compare), Swap: uint64(p.Swap), Masked: true}
	wr.Atomic.CompareMask, wr.Atomic.SwapMask = mask(p.CompareMask), mask(p.SwapMask)
	for _, f := range []struct {
		set  bool
		flag rnic.Flags
	}{{p.Unsignaled, rnic.FlagUnsignaled}, {p.ReadFence, rnic.FlagReadFence}, {p.LocalFence, rnic.FlagLocalFence}} {
		if f.set {
			wr.Flags |= f.flag
		}
	}
	switch {
	case len(p.Data) == 0:
		wr.SGL, err = c.sgl(p.SGL)
	case p.SGL != nil:
		err = bad("a request has data or an sgl, not both")
	case len(p.Data) <= q.inline:
		wr.Flags |= rnic.FlagInline
		wr.Inline = p.Data
	default:
		var sge rnic.SGE
		sge, err = c.own(b, q.pd, p.Data, 0)
		wr.SGL = []rnic.SGE{sge}
	}
	return wr, err
}

// mask returns the mask of a CmpSwap: all ones if it is left out.
func mask(m *service.Uint64) uint64 {
	if m == nil {
		return ^uint64(0)
	}
	return uint64(*m)
}

// postAndWait posts one request and waits for its completion; others that come
// before it are kept. It refuses to if as many are kept as the completion queue has
// places: else there would be no bound, as the places are free again.
func (c *session) postAndWait(ctx context.Context, qp int, wr rnic.SendWR, timeout int) error {
	q, err := find(c, c.qps, qp, "queue pair")
	if err != nil {
		return err
	}
	ctx, cancel, err := limit(ctx, timeout)
	if err != nil {
		return err
	}
	defer cancel()
	if n := len(q.send.waiting); n >= q.send.cq.Entries() {
		return &service.Error{Code: service.CodeLimit, Message: fmt.Sprintf("%d completions of the send queue wait to be fetched: fetch some with completion first", n)}
	}
	wr.ID = c.keep(&buffer{op: opcodes[wr.Op], qp: q.num, send: true})
	if err := q.rnic.PostSend(wr); err != nil {
		c.take(wr.ID)
		return err
	}
	for {
		wc, err := q.send.next(ctx)
		if err != nil {
			return err
		}
		done := c.completed(q, &wc)
		switch {
		case wc.ID != wr.ID:
			q.send.waiting = append(q.send.waiting, done)
		case wc.Status != rnic.StatusSuccess:
			return &service.Error{Code: service.CodeRefused, Message: wc.Err().Error(), Failure: done.Failure}
		default:
			return nil
		}
	}
}

func (c *session) completion(ctx context.Context, a *service.CompletionArgs) (any, error) {
	q, side, err := c.queue(a.QP, a.Queue)
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := limit(ctx, a.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if len(side.waiting) > 0 {
		first := side.waiting[0]
		side.waiting = slices.Delete(side.waiting, 0, 1)
		return &first, nil
	}
	wc, err := side.next(ctx)
	if err != nil {
		return nil, err
	}
	return new(c.completed(q, &wc)), nil
}

func (c *session) arm(_ context.Context, a *service.ArmArgs) (any, error) {
	_, side, err := c.queue(a.QP, a.Queue)
	if err != nil {
		return nil, err
	}
	what := rnic.NextCompletion
	if a.Solicited {
		what = rnic.NextSolicited
	}
	return nil, side.cq.Arm(what)
}

func (c *session) fired(ctx context.Context, a *service.CompletionArgs) (any, error) {
	_, side, err := c.queue(a.QP, a.Queue)
	if err != nil {
		return nil, err
	}
	_, err = await(ctx, a.Timeout, side.cq.Fired())
	return nil, err
}
