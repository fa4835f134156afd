package rnic_test

import (
	"io"
	"testing"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A Terminate names an atomic by its queue and MSN. That of another queue, or one in
// the layout of Linux siw, whose MSN is another field's, names none.
func TestOnlyTheQueueOfRequestsNamesAnAtomic(t *testing.T) {
	for name, change := range map[string]func(t *rdmap.Terminate){
		"a Send":             func(t *rdmap.Terminate) { t.DDPHeader[9] = byte(rdmap.QueueSend) },
		"as Linux siw draws": func(t *rdmap.Terminate) { t.HdrCt = 0x03 },
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				seg := atomicSeg(rdmap.AtomicRequest{})
				seg.Untagged.Control, seg.Untagged.MSN = seg.Control, r.atomic(1)
				header, _ := seg.Untagged.AppendBinary(nil)
				term := rdmap.Terminate{Code: rdmap.CodeInvalidSTag, HdrCt: 0xC0, SegmentLen: 70, DDPHeader: header}
				change(&term)
				r.h.send(terminateSeg(term))
				r.h.close()
				wantCompletions(r, r.s.SendCQ, result{1, flushed})
			})
		})
	}
}

// A Response that breaks a rule in memory that is there is the peer's fault.
func TestResponseThatBreaksARuleBlamesNoRead(t *testing.T) {
	for name, send := range map[string]func(r *reader, first, second rdmap.ReadRequest){
		"unknown version": func(r *reader, req, _ rdmap.ReadRequest) {
			version2 := byte(rdmap.NewControl(rdmap.OpReadResponse))&0x3F | 0x80
			r.h.send(taggedSeg(rdmap.OpReadResponse, req.SinkSTag, req.SinkTO, make([]byte, 100)), withControl(version2))
		},
		"out of turn": func(r *reader, _, req rdmap.ReadRequest) {
			r.h.send(taggedSeg(rdmap.OpReadResponse, req.SinkSTag, req.SinkTO, make([]byte, 100)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				send(r, r.read(1), r.read(2))
				r.h.terminate()
				r.h.close()
				wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, flushed})
			})
		})
	}
}

// So is one that exceeds its Read, even if the sink is gone.
func TestResponseBeyondItsReadBlamesNone(t *testing.T) {
	withReader(t, func(r *reader) {
		req := r.read(1)
		if err := r.sink.Close(); err != nil {
			r.Fatal(err)
		}
		r.h.send(taggedSeg(rdmap.OpReadResponse, req.SinkSTag, req.SinkTO+50, make([]byte, 60)), notLast)
		r.h.wantCapture(ddpCode(ddp.CodeInvalidSTag), r.h.last, false)
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, flushed})
	})
}

// Two regions of the same memory differ in their STags only.
func TestReadIsBlamedByTheSTagOfItsSink(t *testing.T) {
	withReader(t, func(r *reader) {
		mem := make([]byte, 100)
		kept, gone := r.s.Register(r, mem, rnic.LocalWrite), r.s.Register(r, mem, rnic.LocalWrite)
		tag := gone.STag()
		for id, mr := range []*rnic.MR{kept, gone} {
			r.s.Send(r, rnic.SendWR{ID: uint64(id), Op: rnic.OpRead, SGL: []rnic.SGE{mr.SGE(0, 100)}})
			r.h.want(rdmap.OpReadRequest)
		}
		if err := gone.Close(); err != nil {
			r.Fatal(err)
		}
		r.h.send(taggedSeg(rdmap.OpReadResponse, tag, kept.Base(), make([]byte, 100)))
		r.h.wantCapture(ddpCode(ddp.CodeInvalidSTag), r.h.last, false)
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{0, flushed}, result{1, rnic.StatusLocalProtection})
	})
}

// withShared runs f with a peer of a side that has an SRQ with three receives of 10
// bytes.
func withShared(t *testing.T, f func(w *world, s *rnictest.Side, h *peer)) {
	t.Helper()
	inWorld(t, func(w *world) {
		first := w.side()
		srq := labOf(w, first).srq(first.PD, rnic.SRQAttr{})
		s := newQP(w, first.Device, first.PD, rnic.QPAttr{SRQ: srq})
		mr := s.Register(w, make([]byte, 10), rnic.LocalWrite)
		for id := range uint64(3) {
			fill(w, srq, rnic.RecvWR{ID: id, SGL: []rnic.SGE{mr.SGE(0, 10)}})
		}
		f(w, s, w.peerOf(s, rnic.ConnParam{}))
	})
}

func TestReceiveOfAnSRQIsTooShort(t *testing.T) {
	withShared(t, func(w *world, s *rnictest.Side, h *peer) {
		h.send(sendSeg("ten octets"))
		h.send(sendSeg("ten octets!"))
		h.wantCapture(ddpCode(ddp.CodeMessageTooLong), h.last, false)
		h.close()
		wantCompletions(w, s.RecvCQ, result{0, ok}, result{1, rnic.StatusLocalLength})
	})
}

// A message out of turn that exceeds its receive leaves all of them in the SRQ.
func TestTooLongMessageOutOfTurnBlamesNoReceive(t *testing.T) {
	withShared(t, func(w *world, s *rnictest.Side, h *peer) {
		h.send(sendSeg("ten octets!"), withMSN(2))
		h.wantCapture(ddpCode(ddp.CodeMessageTooLong), h.last, false)
		h.close()
		wantState(w, s.QP, rnic.Error)
		wantCompletions(w, s.RecvCQ)
	})
}

// Not every Terminate names an STag.
func TestRefusedTellsNothingWithoutAnSTag(t *testing.T) {
	for name, term := range map[string]rdmap.Terminate{
		"no header": {Code: rdmap.CodeGlobalCatastrophic},
		"a Send": func() rdmap.Terminate {
			seg := sendSeg("")
			seg.Untagged.Control, seg.Untagged.MSN = seg.Control, 1
			header, _ := seg.Untagged.AppendBinary(nil)
			return rdmap.Terminate{Code: ddpCode(ddp.CodeMSNNoBuffer), HdrCt: 0xC0, SegmentLen: 18, DDPHeader: header}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				r.h.send(terminateSeg(term))
				r.h.close()
				wantState(r, r.s.QP, rnic.Error)
				if s, ok := r.s.QP.Refused(); s != 0 || ok {
					r.Errorf("%v, %v", s, ok)
				}
			})
		})
	}
}

// A peer that refuses a Read that it has not got yet blames none: the Read waits for a
// place.
func TestReadThatHasNotBeenSentIsNotBlamed(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{ORD: 1})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		r := &reader{world: w, s: s, h: h, sink: s.Register(w, make([]byte, 1000), rnic.LocalWrite)}
		req := r.read(1)
		s.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: []rnic.SGE{r.sink.SGE(200, 100)}, Remote: rnic.Remote{STag: 0x100, TO: 2 << 20}})
		h.quiet()
		req.SinkTO, req.SrcTO = r.sink.Base()+200, 2<<20
		h.send(terminateSeg(ofRead(rdmap.CodeBaseBounds, 2, req)))
		h.wantEnd(io.EOF)
		h.close()
		wantCompletions(w, s.SendCQ, result{1, flushed}, result{2, flushed})
	})
}
