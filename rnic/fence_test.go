package rnic_test

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"urnic/internal/test/leakcheck"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A Read with Invalidate has not completed before its sink is invalidated,
// however long its Response has been there.
func TestReadFenceWaitsForTheInvalidationOfARead(t *testing.T) {
	withReader(t, func(r *reader) {
		r.s.Send(r, rnic.SendWR{ID: 1, Op: rnic.OpReadInvalidate, SGL: []rnic.SGE{r.sink.SGE(0, 100)}, Remote: rnic.Remote{STag: 0x100}})
		r.h.want(rdmap.OpReadRequest)
		release, err := rnic.Hold(r.sink)
		if err != nil {
			r.Fatal(err)
		}
		r.h.send(taggedSeg(rdmap.OpReadResponse, r.sink.STag(), r.sink.Base(), make([]byte, 100)))
		// Now the receiver waits for the invalidation, and the poster transmits.
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagReadFence})
		r.h.quiet()
		wantCompletions(r, r.s.SendCQ)
		release()
		synctest.Wait()
		r.h.want(rdmap.OpSend)
		wantCompletions(r, r.s.SendCQ, result{1, ok}, result{2, ok})
	})
}

// The same for a graceful close, which waits for all requests.
func TestCloseWaitsForTheInvalidationOfARead(t *testing.T) {
	withReader(t, func(r *reader) {
		r.s.Send(r, rnic.SendWR{ID: 1, Op: rnic.OpReadInvalidate, SGL: []rnic.SGE{r.sink.SGE(0, 100)}, Remote: rnic.Remote{STag: 0x100}})
		r.h.want(rdmap.OpReadRequest)
		release, err := rnic.Hold(r.sink)
		if err != nil {
			r.Fatal(err)
		}
		r.h.send(taggedSeg(rdmap.OpReadResponse, r.sink.STag(), r.sink.Base(), make([]byte, 100)))
		var closing sync.WaitGroup
		closing.Go(func() {
			if err := r.s.QP.Disconnect(r.Context()); err != nil {
				r.Error(err)
			}
		})
		r.h.quiet()
		wantState(r, r.s.QP, rnic.RTS)
		release()
		synctest.Wait()
		r.h.close()
		closing.Wait()
		wantCompletions(r, r.s.SendCQ, result{1, ok})
	})
}

// What a Read or an atomic could not do here ends the stream before anything
// that waits for it is sent.
func TestReadFenceStaysShutWhenTheReadFailsHere(t *testing.T) {
	for name, c := range map[string]struct {
		op     rnic.Opcode
		status rnic.Status
		sink   func(r *reader) (sge rnic.SGE, spoil func())
		answer func(r *reader, at rnic.SGE)
	}{
		"atomic whose sink is gone": {
			op: rnic.OpFetchAdd, status: rnic.StatusLocalProtection,
			sink: func(r *reader) (rnic.SGE, func()) {
				return r.sink.SGE(0, 8), func() {
					if err := r.sink.Close(); err != nil {
						r.Error(err)
					}
				}
			},
			answer: func(r *reader, _ rnic.SGE) {
				b, _ := rdmap.AtomicResponse{RequestID: 1, Original: 5}.AppendBinary(nil)
				r.h.send(untaggedSeg(rdmap.OpAtomicResponse, b))
			},
		},
		"Read whose sink has got a window": {
			op: rnic.OpReadInvalidate, status: rnic.StatusInvalidateFailed,
			sink: func(r *reader) (rnic.SGE, func()) {
				mr := r.s.Register(r, make([]byte, 100), allRights|rnic.BindWindow)
				mw := labOf(r, r.s).window(r.s.PD, rnic.Type2)
				return mr.SGE(0, 100), func() {
					r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpBindWindow, Bind: rnic.Bind{
						MW: mw, MR: mr, Addr: mr.Base(), Length: 100, Access: rnic.RemoteWrite, Key: mw.STag().Key() + 1,
					}})
				}
			},
			answer: func(r *reader, at rnic.SGE) {
				r.h.send(taggedSeg(rdmap.OpReadResponse, at.LKey, at.Addr, make([]byte, 100)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withReader(t, func(r *reader) {
				sge, spoil := c.sink(r)
				r.s.Send(r, rnic.SendWR{ID: 1, Op: c.op, SGL: []rnic.SGE{sge}, Remote: rnic.Remote{STag: 0x100}})
				spoil()
				r.s.Send(r, rnic.SendWR{ID: 3, Op: rnic.OpSend, Flags: rnic.FlagReadFence})
				if _, err := r.h.next(); err != nil { // the request
					r.Fatal(err)
				}
				c.answer(r, sge)
				r.h.wantTerminate(rdmap.CodeLocalCatastrophic) // and not the Send
				r.h.close()
				wcs := drain(r.s.SendCQ)
				if n := len(wcs); n < 2 || wcs[0].ID != 1 || wcs[0].Status != c.status || wcs[n-1].ID != 3 || wcs[n-1].Status != flushed {
					r.Errorf("completions %+v", wcs)
				}
			})
		})
	}
}

// Queue pairs serve one stream after the other: a Read that was flushed holds
// nothing back on the next one.
func TestReadThatWasFlushedDoesNotShutTheFenceOfTheNextStream(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		r.s.QP.Abort()
		if err := r.s.QP.Reset(); err != nil {
			r.Fatal(err)
		}
		h, connected := r.responder(r.s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			r.Fatal(err)
		}
		r.s.Send(r, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagReadFence})
		h.want(rdmap.OpSend)
		wantCompletions(r, r.s.SendCQ, result{1, flushed}, result{2, ok})
	})
}

// A fenced Send carries what the atomic before it has found, whoever transmits
// while the response comes in.
func TestFencedSendCarriesTheResultOfAnAtomic(t *testing.T) {
	for polls, name := range networks {
		t.Run(name, func(t *testing.T) {
			leakcheck.Check(t)
			fencedSends(t, rnictest.Connect(t, rnictest.Options{Polls: polls}))
		})
	}
}

func fencedSends(t *testing.T, p *rnictest.Pair) {
	const rounds = 2000
	_, counter := words(1)
	target := p.B.Register(t, counter, everyRight)
	found, arrived := make([]byte, 8), make([]byte, 8)
	source, sink := p.A.Register(t, found, rnic.LocalWrite), p.B.Register(t, arrived, rnic.LocalWrite)
	var stop atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		for !stop.Load() {
			if err := p.A.QP.PostSend(); err != nil { // makes the transmitter look
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	defer others.Wait()
	defer stop.Store(true)
	for i := range uint64(rounds) {
		p.B.Recv(t, rnic.RecvWR{ID: i, SGL: []rnic.SGE{sink.SGE(0, 8)}})
		p.A.Send(t,
			rnic.SendWR{ID: i, Op: rnic.OpFetchAdd, SGL: []rnic.SGE{source.SGE(0, 8)}, Remote: target.Remote(0), Atomic: rnic.Atomic{Add: 1}},
			rnic.SendWR{ID: i, Op: rnic.OpSend, Flags: rnic.FlagReadFence, SGL: []rnic.SGE{source.SGE(0, 8)}})
		for _, cq := range []*rnic.CQ{p.A.SendCQ, p.A.SendCQ, p.B.RecvCQ} {
			rnictest.Want(t, cq, i)
		}
		if got := binary.NativeEndian.Uint64(arrived); got != i {
			t.Fatalf("round %d: the Send carried %d", i, got)
		}
	}
}
