package rnic_test

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// reader is a side whose peer leaves Reads unanswered.
type reader struct {
	*world
	s    *rnictest.Side
	h    *peer
	sink *rnic.MR
}

// withReader runs f with a side that is connected to a peer as initiator.
func withReader(t *testing.T, f func(r *reader)) {
	t.Helper()
	inWorld(t, func(w *world) {
		r := &reader{world: w, s: w.side()}
		var connected <-chan error
		r.h, connected = w.responder(r.s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		r.sink = r.s.Register(w, make([]byte, 1000), rnic.LocalWrite)
		f(r)
	})
}

// read posts a Read of 100 bytes into the place of its ID, and returns the
// Request that the peer gets.
func (r *reader) read(id uint64) rdmap.ReadRequest {
	r.Helper()
	r.s.Send(r, rnic.SendWR{ID: id, Op: rnic.OpRead, SGL: []rnic.SGE{r.sink.SGE(int(id)*100, 100)}, Remote: rnic.Remote{STag: 0x100, TO: id << 20}})
	req, err := rdmap.ParseReadRequest(r.h.want(rdmap.OpReadRequest).Payload)
	if err != nil {
		r.Fatal(err)
	}
	return req
}

// atomic posts an atomic and returns its Request's MSN.
func (r *reader) atomic(id uint64) uint32 {
	r.Helper()
	r.s.Send(r, rnic.SendWR{ID: id, Op: rnic.OpFetchAdd, Remote: rnic.Remote{STag: 0x100, TO: id << 20}})
	return r.h.want(rdmap.OpAtomicRequest).Untagged.MSN
}

// ofRead returns a Terminate that captures a Read Request.
func ofRead(code rdmap.TermCode, msn uint32, req rdmap.ReadRequest) rdmap.Terminate {
	t := rdmap.Terminate{Code: code, HdrCt: 0xE0, SegmentLen: 46}
	seg := untaggedSeg(rdmap.OpReadRequest, nil)
	seg.Untagged.Control, seg.Untagged.MSN = seg.Control, msn
	t.DDPHeader, _ = seg.Untagged.AppendBinary(nil)
	t.RDMAHeader, _ = req.AppendBinary(nil)
	return t
}

const (
	ok      = rnic.StatusSuccess
	flushed = rnic.StatusFlushed
)

func TestOnlyTheErringRequestHasAnErrorOfItsOwn(t *testing.T) {
	withReader(t, func(r *reader) {
		gone := r.s.Register(r, make([]byte, 100), 0)
		r.s.Send(r, rnic.SendWR{ID: 0, Op: rnic.OpSend})
		r.h.want(rdmap.OpSend)
		r.read(1)
		r.s.Recv(r, rnic.RecvWR{ID: 10}, rnic.RecvWR{ID: 11})
		// The fence holds the Write back until its source is gone.
		r.s.Send(r,
			rnic.SendWR{ID: 2, Op: rnic.OpWrite, Flags: rnic.FlagReadFence | rnic.FlagUnsignaled, SGL: []rnic.SGE{gone.SGE(0, 100)}},
			rnic.SendWR{ID: 3, Op: rnic.OpSend, Flags: rnic.FlagUnsignaled},
			rnic.SendWR{ID: 4, Op: rnic.OpRead},
		)
		if err := gone.Close(); err != nil {
			r.Fatal(err)
		}
		r.h.quiet()
		r.h.send(taggedSeg(rdmap.OpReadResponse, r.sink.STag(), r.sink.Base()+100, make([]byte, 100)))
		r.h.wantBare(rdmap.CodeLocalCatastrophic)
		r.h.close()
		wantCompletions(r, r.s.SendCQ,
			result{0, ok}, result{1, ok}, result{2, rnic.StatusLocalProtection}, result{3, flushed}, result{4, flushed})
		wantCompletions(r, r.s.RecvCQ, result{10, flushed}, result{11, flushed})
		wantEvents(r, r.s.Device, rnic.EventCatastrophic)
	})
}

func TestEarlierRequestsThatAreUnfinishedAreFlushed(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		// The Send is out, and behind it an invalidation fails: the Read is not
		// to blame, and the Send can't complete before it.
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpSend}, rnic.SendWR{ID: 3, Op: rnic.OpLocalInvalidate, Invalidate: 0x12345600}, rnic.SendWR{ID: 4, Op: rnic.OpSend})
		r.h.want(rdmap.OpSend)
		r.h.wantBare(rdmap.CodeLocalCatastrophic)
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, flushed}, result{3, rnic.StatusBadSTag}, result{4, flushed})
	})
}

func TestReadThatTheTerminateNamesIsBlamed(t *testing.T) {
	for name, change := range map[string]func(t *rdmap.Terminate){
		"as RFC 5040 draws it": func(*rdmap.Terminate) {},
		"as Linux siw does":    func(t *rdmap.Terminate) { t.HdrCt, t.DDPHeader[13] = 0x07, 100 }, // its MSN is another field's
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				r.read(1)
				bad := r.read(2)
				r.read(3)
				term := ofRead(rdmap.CodeBaseBounds, 2, bad)
				change(&term)
				r.h.send(terminateSeg(term))
				r.h.wantEnd(io.EOF)
				r.h.close()
				wc := drain(r.s.SendCQ)
				if len(wc) != 3 || wc[0].Status != flushed || wc[1].Status != rnic.StatusRemoteTermination || wc[2].Status != flushed {
					r.Fatalf("completions %+v", wc)
				}
				if code, byPeer := termCode(wc[1].Err()); code != rdmap.CodeBaseBounds || !byPeer {
					r.Errorf("cause %v", wc[1].Cause)
				}
			})
		})
	}
}

func TestReadInProgressIsBlamedByWhatIsLeftOfIt(t *testing.T) {
	withReader(t, func(r *reader) {
		req := r.read(1)
		r.read(2)
		r.h.send(taggedSeg(rdmap.OpReadResponse, req.SinkSTag, req.SinkTO, make([]byte, 40)), notLast)
		req.SinkTO, req.SrcTO, req.Size = req.SinkTO+40, req.SrcTO+40, req.Size-40
		r.h.send(terminateSeg(ofRead(rdmap.CodeInvalidSTag, 1, req)))
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, rnic.StatusRemoteTermination}, result{2, flushed})
	})
}

func TestAtomicThatTheTerminateNamesIsBlamed(t *testing.T) {
	withReader(t, func(r *reader) {
		first := r.atomic(1)
		msn := r.atomic(2)
		r.read(3)
		r.h.send(untaggedSeg(rdmap.OpAtomicResponse, []byte{0, 0, 0, byte(first), 0, 0, 0, 0, 0, 0, 0, 9}))
		seg := atomicSeg(rdmap.AtomicRequest{})
		seg.Untagged.Control, seg.Untagged.MSN = seg.Control, msn
		header, _ := seg.Untagged.AppendBinary(nil)
		r.h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeInvalidSTag, HdrCt: 0xC0, SegmentLen: 70, DDPHeader: header}))
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, ok}, result{2, rnic.StatusRemoteTermination}, result{3, flushed})
	})
}

func TestReadThatIsAnRTRCountsInTheMSN(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{MPA: &mpa.Config{PeerToPeer: true, RTR: mpa.RTRRead}})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		h.want(rdmap.OpReadRequest)
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpFetchAdd}, rnic.SendWR{ID: 2, Op: rnic.OpFetchAdd})
		h.want(rdmap.OpAtomicRequest)
		seg := h.want(rdmap.OpAtomicRequest)
		header, _ := seg.Untagged.AppendBinary(nil)
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeInvalidSTag, HdrCt: 0xC0, SegmentLen: 70, DDPHeader: header}))
		h.close()
		wantCompletions(w, s.SendCQ, result{1, flushed}, result{2, rnic.StatusRemoteTermination})
	})
}

func TestTerminateThatNamesNoRequestOfOursBlamesNone(t *testing.T) {
	for name, change := range map[string]func(t *rdmap.Terminate, req *rdmap.ReadRequest){
		"other source":   func(_ *rdmap.Terminate, q *rdmap.ReadRequest) { q.SrcSTag++ },
		"other sink":     func(_ *rdmap.Terminate, q *rdmap.ReadRequest) { q.SinkSTag++ },
		"other length":   func(_ *rdmap.Terminate, q *rdmap.ReadRequest) { q.Size++ },
		"other offset":   func(_ *rdmap.Terminate, q *rdmap.ReadRequest) { q.SrcTO++ },
		"no header":      func(t *rdmap.Terminate, _ *rdmap.ReadRequest) { *t = rdmap.Terminate{Code: t.Code} },
		"a tagged one":   func(t *rdmap.Terminate, _ *rdmap.ReadRequest) { *t = ofTagged(t.Code) },
		"MSN of a Read":  func(t *rdmap.Terminate, _ *rdmap.ReadRequest) { t.HdrCt = 0xC0 },
		"another's MSN":  func(t *rdmap.Terminate, _ *rdmap.ReadRequest) { t.HdrCt, t.DDPHeader[13] = 0xC0, 7 },
		"of a Send's QN": func(t *rdmap.Terminate, _ *rdmap.ReadRequest) { t.HdrCt, t.DDPHeader[9] = 0xC0, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				req := r.read(1)
				term := ofRead(rdmap.CodeInvalidSTag, 1, req)
				change(&term, &req)
				if term.HdrCt == 0xE0 {
					term.RDMAHeader, _ = req.AppendBinary(nil)
				} else {
					term.RDMAHeader = nil
				}
				r.h.send(terminateSeg(term))
				r.h.close()
				wantCompletions(r, r.s.SendCQ, result{1, flushed})
			})
		})
	}
}

func ofTagged(code rdmap.TermCode) rdmap.Terminate {
	header, _ := ddp.TaggedHeader{Control: ddp.NewControl(true, true), RsvdULP: 0x40}.AppendBinary(nil)
	return rdmap.Terminate{Code: code, HdrCt: 0xC0, SegmentLen: 14, DDPHeader: header}
}

func TestReadWhoseSinkIsGoneIsBlamed(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		other := r.s.Register(r, make([]byte, 100), rnic.LocalWrite)
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: []rnic.SGE{other.SGE(0, 100)}})
		r.h.want(rdmap.OpReadRequest)
		gone := other.STag()
		to := other.Base()
		if err := other.Close(); err != nil {
			r.Fatal(err)
		}
		r.h.send(taggedSeg(rdmap.OpReadResponse, r.sink.STag(), r.sink.Base()+100, make([]byte, 100)))
		r.h.send(taggedSeg(rdmap.OpReadResponse, gone, to, make([]byte, 50)), notLast)
		r.h.wantCapture(rdmap.TermCode(ddp.CodeInvalidSTag.TermWord()), r.h.last, false)
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, ok}, result{2, rnic.StatusLocalProtection})
		wantEvents(r, r.s.Device, rnic.EventProtection)
	})
}

func TestUnsolicitedResponseBlamesNoRead(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		r.h.send(taggedSeg(rdmap.OpReadResponse, 0x4200, 0, make([]byte, 10)))
		r.h.wantCapture(rdmap.TermCode(ddp.CodeInvalidSTag.TermWord()), r.h.last, false)
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, flushed})
	})
}

func TestAtMostOneRequestHasAnErrorOfItsOwn(t *testing.T) {
	withReader(t, func(r *reader) {
		req := r.read(1)
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpLocalInvalidate, Invalidate: 0x12345600})
		synctest.Wait() // its Terminate is on its way, and so is the peer's
		r.h.send(terminateSeg(ofRead(rdmap.CodeInvalidSTag, 1, req)))
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, rnic.StatusBadSTag})
		wantEvents(r, r.s.Device, rnic.EventCatastrophic, rnic.EventTerminateReceived)
		if _, byPeer := termCode(r.s.QP.Err()); byPeer {
			r.Errorf("the stream ended with %v; want the first error", r.s.QP.Err())
		}
	})
}

func TestUnfinishedAtomicWithAResultThatCantBeStoredIsBlamed(t *testing.T) {
	withReader(t, func(r *reader) {
		gone := r.s.Register(r, make([]byte, 8), rnic.LocalWrite)
		r.s.Send(r, rnic.SendWR{ID: 1, Op: rnic.OpFetchAdd, SGL: []rnic.SGE{gone.SGE(0, 8)}}, rnic.SendWR{ID: 2, Op: rnic.OpRead})
		r.h.want(rdmap.OpAtomicRequest)
		r.h.want(rdmap.OpReadRequest)
		if err := gone.Close(); err != nil {
			r.Fatal(err)
		}
		r.h.send(untaggedSeg(rdmap.OpAtomicResponse, []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9}))
		r.h.wantBare(rdmap.CodeLocalCatastrophic)
		r.h.close()
		wantCompletions(r, r.s.SendCQ, result{1, rnic.StatusLocalProtection}, result{2, flushed})
	})
}

func TestReceiveWhoseMemoryIsGoneIsBlamed(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		gone := s.Register(w, make([]byte, 8), rnic.LocalWrite)
		s.Recv(w, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2, SGL: []rnic.SGE{gone.SGE(0, 8)}}, rnic.RecvWR{ID: 3})
		if err := gone.Close(); err != nil {
			w.Fatal(err)
		}
		h.send(sendSeg(""))
		h.send(sendSeg("hello"))
		h.wantBare(rdmap.CodeLocalCatastrophic)
		h.close()
		wantCompletions(w, s.RecvCQ, result{1, ok}, result{2, rnic.StatusLocalProtection}, result{3, flushed})
		wantEvents(w, s.Device, rnic.EventCatastrophic)
	})
}

func TestReceivesOfAnSRQAreNotFlushedUnlessBegun(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.side()
		srq, err := first.PD.CreateSRQ(rnic.SRQAttr{})
		if err != nil {
			w.Fatal(err)
		}
		s := newQP(w, first.Device, first.PD, rnic.QPAttr{SRQ: srq})
		mr := s.Register(w, make([]byte, 100), rnic.LocalWrite)
		for id := range uint64(4) {
			if err := srq.PostRecv(rnic.RecvWR{ID: id, SGL: []rnic.SGE{mr.SGE(0, 100)}}); err != nil {
				w.Fatal(err)
			}
		}
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(sendSeg("whole"))
		h.send(sendSeg("half"), notLast)
		h.reset()
		wantState(w, s.QP, rnic.Error)
		wantCompletions(w, s.RecvCQ, result{0, ok}, result{1, flushed})
		if srq.Len() != 2 {
			w.Errorf("%d receives are left; want 2", srq.Len())
		}
		if err := s.QP.Close(); err != nil {
			w.Error(err)
		}
		if srq.Len() != 2 {
			w.Errorf("%d receives are left after Close; want 2", srq.Len())
		}
	})
}

func TestEachRequestCompletesOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{}) // which says nothing, so that nothing may leave
		const n = 100
		for id := range uint64(n) {
			s.Send(w, rnic.SendWR{ID: id, Op: rnic.OpSend, Flags: rnic.Flags(id % 2)})
			s.Recv(w, rnic.RecvWR{ID: id})
		}
		h.quiet()
		s.QP.Abort()
		s.QP.Abort()
		for _, cq := range []*rnic.CQ{s.SendCQ, s.RecvCQ} {
			wcs := drain(cq)
			if len(wcs) != n {
				w.Errorf("%d completions of %d requests", len(wcs), n)
			}
			for i, wc := range wcs {
				if wc.ID != uint64(i) || wc.Status != flushed || wc.QPN != s.QP.Num() {
					w.Errorf("completion %d is %+v", i, wc)
				}
			}
		}
		if err := s.QP.Close(); err != nil {
			w.Error(err)
		}
		wantCompletions(w, s.SendCQ)
		wantHeld(w, s.Device, pd.Limits{pd.Domains: 1, pd.CompletionQueues: 2, pd.CQEntries: 2048})
	})
}

func TestFlushedCompletionOverflowingACQEndsNothingElse(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		small, err := s.Device.CreateCQ(rnic.CQAttr{Entries: 1})
		if err != nil {
			w.Fatal(err)
		}
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{SendCQ: small, RecvCQ: small})
		other := w.side()
		w.connect(s, other)
		q.Recv(w, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2})
		q.QP.Abort()
		wantCompletions(w, small, result{1, flushed})
		wantEvents(w, s.Device, rnic.EventCQOverflow)
		if _, err := small.Wait(w.Context(), make([]rnic.WC, 1)); !errors.Is(err, rnic.ErrOverflow) {
			w.Errorf("%v; want ErrOverflow", err)
		}
		wantState(w, s.QP, rnic.RTS)
	})
}

func TestSTagInTheStatusIsTheOneThatFailed(t *testing.T) {
	withReader(t, func(r *reader) {
		gone := r.s.Register(r, make([]byte, 100), 0)
		sge := gone.SGE(0, 100)
		r.read(1)
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagReadFence, SGL: []rnic.SGE{sge}})
		if err := gone.Close(); err != nil {
			r.Fatal(err)
		}
		r.h.send(taggedSeg(rdmap.OpReadResponse, r.sink.STag(), r.sink.Base()+100, make([]byte, 100)))
		r.h.close()
		wcs := drain(r.s.SendCQ)
		var access *stag.AccessError
		if len(wcs) != 2 || !errors.As(wcs[1].Err(), &access) || access.STag != sge.LKey {
			r.Errorf("completions %+v; want the STag %v in the second", wcs, sge.LKey)
		}
	})
}
