package rnictimeline

import (
	"context"
	"errors"
	"time"

	"urnic/rnic"
)

// PostSend is q.PostSend, and notes the requests that were posted.
func (r *Recorder) PostSend(q *rnic.QP, wrs ...rnic.SendWR) error {
	if r == nil {
		return q.PostSend(wrs...)
	}
	r.Connected(q)
	at := time.Now()
	err := q.PostSend(wrs...)
	for i := range wrs[:posted(len(wrs), err)] {
		r.Note(SendEvent(at, q.Num(), &wrs[i]))
	}
	return err
}

// PostRecv is q.PostRecv, and notes the receives that were posted.
func (r *Recorder) PostRecv(q *rnic.QP, wrs ...rnic.RecvWR) error {
	if r == nil {
		return q.PostRecv(wrs...)
	}
	at := time.Now()
	err := q.PostRecv(wrs...)
	r.noteRecvs(PostedRecv, at, q.Num(), wrs[:posted(len(wrs), err)])
	return err
}

// PostShared is s.PostRecv, and notes the receives that were posted.
func (r *Recorder) PostShared(s *rnic.SRQ, wrs ...rnic.RecvWR) error {
	if r == nil {
		return s.PostRecv(wrs...)
	}
	at := time.Now()
	err := s.PostRecv(wrs...)
	r.noteRecvs(PostedShared, at, s.Num(), wrs[:posted(len(wrs), err)])
	return err
}

func (r *Recorder) noteRecvs(kind Kind, at time.Time, num uint32, wrs []rnic.RecvWR) {
	for i := range wrs {
		r.Note(Event{Kind: kind, Op: rnic.OpRecv, QPN: num, ID: wrs[i].ID, Length: lengthOf(wrs[i].SGL), Time: at})
	}
}

// Poll is c.Poll, and notes the completions that were polled. Connections are noted when requests are
// posted, and by Connected.
func (r *Recorder) Poll(c *rnic.CQ, wcs []rnic.WC) int {
	n := c.Poll(wcs)
	r.notePolled(wcs[:n])
	return n
}

// Wait is c.Wait, and notes the completions that were polled.
func (r *Recorder) Wait(ctx context.Context, c *rnic.CQ, wcs []rnic.WC) (int, error) {
	n, err := c.Wait(ctx, wcs)
	r.notePolled(wcs[:n])
	return n, err
}

func (r *Recorder) notePolled(wcs []rnic.WC) {
	if r == nil || len(wcs) == 0 {
		return
	}
	now := time.Now()
	for i := range wcs {
		w := &wcs[i]
		r.Note(Event{Kind: Polled, Op: w.Op, QPN: w.QPN, ID: w.ID, Failed: w.Status != rnic.StatusSuccess, Length: uint64(w.ByteLen), Messages: 1, Time: now})
	}
}

// SendEvent returns the event of a request that was posted to a send queue at a time, for programs that
// post by other means than PostSend.
func SendEvent(at time.Time, qpn uint32, wr *rnic.SendWR) Event {
	e := Event{Kind: PostedSend, Op: wr.Op, QPN: qpn, ID: wr.ID, Length: lengthOf(wr.SGL) + uint64(len(wr.Inline)), Messages: 1, Time: at}
	switch wr.Op {
	case rnic.OpWriteImmediate:
		e.Messages = 2
	case rnic.OpRead, rnic.OpReadInvalidate: // one for each sink with room, or one
		e.Messages = 0
		for _, s := range wr.SGL {
			if s.Length > 0 {
				e.Messages++
			}
		}
		e.Messages = max(e.Messages, 1)
	case rnic.OpLocalInvalidate, rnic.OpFastRegister, rnic.OpBindWindow:
		e.Messages = 0
	default:
	}
	return e
}

// posted returns how many of n requests were posted.
func posted(n int, err error) int {
	if err == nil {
		return n
	}
	if at, is := errors.AsType[*rnic.WRError](err); is {
		return min(at.Index, n)
	}
	return 0
}

func lengthOf(sgl []rnic.SGE) (n uint64) {
	for i := range sgl {
		n += uint64(sgl[i].Length)
	}
	return n
}
