package rnic_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"urnic/rnic"
)

// poll takes the completions of one end and compares them with the model.
func (r *run) poll(e *end) {
	var wcs [7]rnic.WC
	for n := e.SendCQ.Poll(wcs[:]); n > 0; n = e.SendCQ.Poll(wcs[:]) {
		for _, wc := range wcs[:n] {
			r.sendCompleted(e, wc)
		}
	}
	for n := e.RecvCQ.Poll(wcs[:]); n > 0; n = e.RecvCQ.Poll(wcs[:]) {
		for _, wc := range wcs[:n] {
			r.recvCompleted(e, wc)
		}
	}
}

func (r *run) sendCompleted(e *end, wc rnic.WC) {
	// What is skipped has succeeded, and wanted to tell nobody.
	for len(e.sq) > 0 && e.sq[0].id != wc.ID && e.sq[0].wr.Flags&rnic.FlagUnsignaled != 0 && !e.flushing {
		r.succeeded(e, e.sq[0], nil)
		e.sq = e.sq[1:]
	}
	if len(e.sq) == 0 || e.sq[0].id != wc.ID {
		failf("%s: completion of request %d (%v, %v) is not in turn", e.name, wc.ID, wc.Op, wc.Status)
	}
	q := e.sq[0]
	e.sq = e.sq[1:]
	switch {
	case wc.Op != q.wr.Op || wc.QPN != e.QP.Num():
		failf("%s: %v completed as %v of QP %d", e.name, q.wr.Op, wc.Op, wc.QPN)
	case wc.Status != rnic.StatusSuccess:
		if !e.mayFail {
			failf("%s: %w, and the stream: %w", e.name, wc.Err(), errors.Join(e.QP.Err(), e.other.QP.Err()))
		}
		e.flushing = true
	case e.flushing:
		failf("%s: request %d succeeded after another one was flushed", e.name, wc.ID)
	case q.wr.Flags&rnic.FlagUnsignaled != 0:
		failf("%s: request %d is unsignaled, and succeeded with a completion", e.name, wc.ID)
	default:
		r.succeeded(e, q, &wc)
	}
}

// succeeded checks what a request has brought; wc is nil if it is unsignaled.
func (r *run) succeeded(e *end, q *request, wc *rnic.WC) {
	atomic := q.wr.Op == rnic.OpFetchAdd || q.wr.Op == rnic.OpCmpSwap
	switch {
	case q.wr.Op == rnic.OpRead:
		if !bytes.Equal(q.sink, q.data) {
			failf("%s: Read %d brought other octets than were written", e.name, q.id)
		}
	case atomic:
		if wc != nil && wc.Original != q.orig {
			failf("%s: %v %d brought %d; want %d", e.name, q.wr.Op, q.id, wc.Original, q.orig)
		}
	}
	if wc != nil && !atomic && int(wc.ByteLen) != len(q.data) {
		failf("%s: %v %d tells of %d octets; want %d", e.name, q.wr.Op, q.id, wc.ByteLen, len(q.data))
	}
}

func (r *run) recvCompleted(e *end, wc rnic.WC) {
	if e.srq == nil {
		if len(e.rq) == 0 || e.rq[0] != wc.ID {
			failf("%s: receive %d is not in turn", e.name, wc.ID)
		}
		e.rq = e.rq[1:]
	}
	buf := r.bufs[wc.ID]
	if buf == nil {
		failf("%s: there is no receive %d", e.name, wc.ID)
	}
	delete(r.bufs, wc.ID)
	if wc.Status != rnic.StatusSuccess {
		if !e.mayFail {
			failf("%s: %w", e.name, wc.Err())
		}
		return
	}
	if e.arrived == len(e.other.sent) {
		failf("%s: receive %d completed, but nothing was sent", e.name, wc.ID)
	}
	q := e.other.sent[e.arrived]
	e.arrived++
	immediate := q.wr.Op == rnic.OpImmediate || q.wr.Op == rnic.OpWriteImmediate
	switch {
	case immediate && (wc.Op != rnic.OpRecvImmediate || wc.Immediate != q.wr.Immediate || wc.ByteLen != 8):
		failf("%s: Immediate Data of request %d arrived as %+v", e.name, q.id, wc)
	case !immediate && (wc.Op != rnic.OpRecv || int(wc.ByteLen) != len(q.data) || !bytes.Equal(buf[:len(q.data)], q.data)):
		failf("%s: message of request %d, %d octets, arrived as %+v", e.name, q.id, len(q.data), wc)
	case wc.Solicited != (q.wr.Flags&rnic.FlagSolicited != 0) || wc.Invalidated != q.wr.Invalidate:
		failf("%s: message of request %d arrived as %+v", e.name, q.id, wc)
	}
}

// settle lets all traffic come to rest, and polls.
func (r *run) settle() {
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, e := range r.ends {
		r.poll(e)
	}
}

// checkQuiet checks, once all is at rest, that nothing is left undone.
func (r *run) checkQuiet(pair int) {
	for _, e := range r.ends[2*pair : 2*pair+2] {
		if e.mayFail {
			continue
		}
		if s := e.QP.State(); s != rnic.RTS {
			failf("%s is in state %v: %w", e.name, s, e.QP.Err())
		}
		for _, q := range e.sq {
			if q.wr.Flags&rnic.FlagUnsignaled == 0 {
				failf("%s: request %d (%v) never completed", e.name, q.id, q.wr.Op)
			}
			r.succeeded(e, q, nil)
		}
		e.sq = nil
		if n := e.unmatched(); n != 0 {
			failf("%s: %d messages never arrived", e.name, n)
		}
		if !bytes.Equal(e.mem, e.model) || binary.NativeEndian.Uint64(e.word[:]) != e.modelWord {
			failf("%s: the memory is not what was written", e.name)
		}
	}
}

// disconnect closes a connection gracefully, which must succeed if all was quiet.
func (r *run) disconnect(pair int, e *end) {
	if e.mayFail {
		return
	}
	quiet := r.rng.IntN(2) > 0
	if quiet {
		r.settle()
		r.checkQuiet(pair)
	}
	e.mayFail, e.other.mayFail = true, true
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := e.QP.Disconnect(ctx); quiet {
		must(err)
		time.Sleep(time.Second)
		if s := e.other.QP.State(); s != rnic.Idle {
			failf("%s is in state %v after a graceful close: %w", e.other.name, s, e.other.QP.Err())
		}
	}
}

// again connects two ends anew whose stream has ended, or is ending.
func (r *run) again(pair int) {
	r.settle()
	for _, e := range r.ends[2*pair : 2*pair+2] {
		switch e.QP.State() {
		case rnic.RTS, rnic.Closing, rnic.Terminating:
			e.QP.Abort() // the reason was none in the end
		}
	}
	r.settle()
	for _, e := range r.ends[2*pair : 2*pair+2] {
		// All requests have completed: those that wanted to tell only failures
		// may have succeeded.
		if i := slices.IndexFunc(e.sq, func(q *request) bool { return q.wr.Flags&rnic.FlagUnsignaled == 0 || e.flushing }); i >= 0 {
			failf("%s: request %d (%v) never completed", e.name, e.sq[i].id, e.sq[i].wr.Op)
		}
		e.sq = nil
		if len(e.rq) > 0 {
			failf("%s: %d receives never completed", e.name, len(e.rq))
		}
		must(e.QP.Reset())
	}
	r.shared = r.srq.Len()
	for _, e := range r.ends {
		if e.srq != nil && !e.mayFail {
			r.shared -= e.other.unmatched()
		}
	}
	r.connect(pair)
}
