package rnic_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"urnic/ddp"
	"urnic/internal/door"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/stag"
)

// frameWords shows a frame of start-up.
func (l *life) frameWords(f *mpa.Frame) string {
	s := "MPA Request"
	if f.Reply {
		s = "MPA Reply"
	}
	if f.Rejected {
		s += ", rejected"
	}
	s += fmt.Sprintf(", revision %d", f.Revision)
	if e, err := mpa.ParseEnhanced(f.PrivateData); f.Enhanced && err == nil {
		s += ", " + e.String()
	}
	return s
}

// segmentWords shows a segment that the side has sent, and keeps what an answer needs.
func (l *life) segmentWords(seg ddp.Segment) string {
	op := opcodeOf(seg)
	l.last[op] = seg
	s := op.String()
	if seg.Control.Tagged() {
		s += fmt.Sprintf(" STag=%s TO=%d len=%d", l.stagName(seg.Tagged.STag), seg.Tagged.TO, len(seg.Payload))
	} else {
		s += fmt.Sprintf(" QN=%d MSN=%d MO=%d len=%d", seg.Untagged.QN, seg.Untagged.MSN, seg.Untagged.MO, len(seg.Payload))
	}
	if seg.Control.Last() {
		s += " L"
	}
	switch op {
	case rdmap.OpReadRequest:
		if r, err := rdmap.ParseReadRequest(seg.Payload); err == nil {
			s += fmt.Sprintf(": %d octets of %s+%d to %s+%d", r.Size, l.stagName(r.SrcSTag), r.SrcTO, l.stagName(r.SinkSTag), r.SinkTO)
		}
	case rdmap.OpAtomicRequest:
		if r, err := rdmap.ParseAtomicRequest(seg.Payload); err == nil {
			s += fmt.Sprintf(": %v of %s+%d", r.Op, l.stagName(r.STag), r.TO)
			l.atomics = append(l.atomics, r.RequestID)
		}
	case rdmap.OpReadResponse, rdmap.OpAtomicResponse:
		if seg.Control.Last() {
			l.unanswered--
		}
	case rdmap.OpTerminate:
		if t, err := rdmap.ParseTerminate(seg.Payload); err == nil {
			s = "Terminate: " + l.terminateWords(&t)
		}
	case rdmap.OpSendInvalidate, rdmap.OpSendSEInvalidate:
		s += ": invalidates " + l.stagName(stag.STag(uint32(seg.Untagged.RsvdULP[1])<<24|uint32(seg.Untagged.RsvdULP[2])<<16|uint32(seg.Untagged.RsvdULP[3])<<8|uint32(seg.Untagged.RsvdULP[4])))
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		s += fmt.Sprintf(": %q", strings.TrimRight(string(seg.Payload), "\x00"))
	default:
	}
	return s
}

// terminateWords shows a Terminate: its code, and the header that it captures. When a
// completion queue has overflowed, it may have one or not: who completes finds that, and who
// ends all queue pairs that complete there.
func (l *life) terminateWords(t *rdmap.Terminate) string {
	s := t.Code.String()
	if len(t.DDPHeader) > 0 && !errors.Is(l.s.QP.Err(), rnic.ErrOverflow) {
		if seg, err := ddp.ParseSegment(t.DDPHeader); err == nil {
			s += fmt.Sprintf(", of the %v", opcodeOf(seg))
			if seg.Control.Tagged() {
				s += fmt.Sprintf(" STag=%s TO=%d", l.stagName(seg.Tagged.STag), seg.Tagged.TO)
			} else {
				s += fmt.Sprintf(" QN=%d MSN=%d MO=%d", seg.Untagged.QN, seg.Untagged.MSN, seg.Untagged.MO)
			}
			s += fmt.Sprintf(", a segment of %d octets", t.SegmentLen)
		}
	}
	if r, err := rdmap.ParseReadRequest(t.RDMAHeader); err == nil {
		s += fmt.Sprintf(", which reads %d octets of %s+%d", r.Size, l.stagName(r.SrcSTag), r.SrcTO)
	}
	return s
}

// completion shows a completion.
func (l *life) completion(wc *rnic.WC) string {
	s := fmt.Sprintf("completion: id=%d %v: %v", wc.ID, wc.Op, wc.Status)
	if wc.Status != rnic.StatusSuccess {
		if wc.Status != rnic.StatusFlushed {
			s += fmt.Sprintf(" (%s)", l.words(wc.Cause))
		}
		return s
	}
	switch wc.Op {
	case rnic.OpFastRegister, rnic.OpBindWindow, rnic.OpLocalInvalidate:
	default:
		s += fmt.Sprintf(", %d octets", wc.ByteLen)
	}
	switch wc.Op {
	case rnic.OpRecv, rnic.OpRecvImmediate:
		if !l.byHand {
			l.see("message delivered")
		}
		if wc.Solicited {
			s += ", solicited"
		}
		if wc.Invalidated != 0 {
			s += ", invalidated " + l.stagName(wc.Invalidated)
		}
		if wc.Op == rnic.OpRecvImmediate || door.Paired(wc) {
			s += fmt.Sprintf(", immediate %q", strings.TrimRight(string(wc.Immediate[:]), "\x00"))
		}
	case rnic.OpFetchAdd, rnic.OpCmpSwap:
		s += fmt.Sprintf(", original %d", wc.Original)
	default:
	}
	return s
}

// wordsOf are the words of a script for errors that have a name.
var wordsOf = []struct {
	err   error
	words string
}{
	{rnic.ErrNotIdle, "not idle"},
	{rnic.ErrOverflow, "the completion queue has overflowed"},
	{rnic.ErrQueueFull, "the queue is full"},
	{rnic.ErrNoStream, "no connection"},
	{rnic.ErrAborted, "aborted"},
	{rnic.ErrClosed, "closed"},
	{rnic.ErrUsesSRQ, "it uses an SRQ"},
	{context.DeadlineExceeded, "its context has ended"},
	{syscall.ECONNRESET, "the connection was reset"},
}

// words shows an error, without what differs from run to run.
func (l *life) words(err error) string {
	if err == nil {
		return "ok"
	}
	if e, ok := errors.AsType[*rnic.OpError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*rnic.WRError](err); ok {
		return fmt.Sprintf("request %d is refused: %s", e.Index, l.words(e.Err))
	}
	if e, ok := errors.AsType[*rnic.StateError](err); ok && !errors.Is(err, rnic.ErrNotIdle) {
		switch {
		case e.State == rnic.RTS && e.Err != nil:
			return "it is being disconnected"
		case e.Err == nil:
			return fmt.Sprintf("the state is %v", e.State)
		}
		return fmt.Sprintf("the state is %v: %s", e.State, l.words(e.Err))
	}
	for _, w := range wordsOf {
		if errors.Is(err, w.err) {
			return w.words
		}
	}
	if e, ok := errors.AsType[*rdmap.PeerError](err); ok {
		return "Terminate of the peer: " + e.Terminate.Code.String()
	}
	if e, ok := errors.AsType[*stag.AccessError](err); ok {
		return e.Violation.String()
	}
	if e, ok := errors.AsType[*stag.RegisterError](err); ok {
		return e.Reason
	}
	if e, ok := errors.AsType[*rdmap.Error](err); ok {
		return e.Code.String()
	}
	if errors.As(err, new(*mpa.RejectedError)) {
		return "rejected by the peer"
	}
	if e, ok := errors.AsType[*mpa.Error](err); ok {
		return "MPA: " + e.Code.String()
	}
	return err.Error()
}
