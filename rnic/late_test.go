package rnic_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// lenient are the options of a pair that takes requests as hardware does.
func lenient(_ string, c *rnic.Config) {
	door.SetPolicy(c, policy.Lenient{Departures: policy.CheckAtTurn | policy.TakeLate})
}

// Each request of A with memory that can't be used is posted, and completes with
// its own status, between one that succeeds and one that is flushed.
func TestBadMemoryIsToldByTheCompletionIfCheckedAtTurn(t *testing.T) {
	nowhere := []rnic.SGE{{Addr: 0x1000, Length: 8, LKey: 0x1234}}
	for _, op := range []rnic.Opcode{rnic.OpSend, door.OpSendImmediate, rnic.OpWrite, rnic.OpWriteImmediate, rnic.OpRead, rnic.OpFetchAdd} {
		t.Run(op.String(), func(t *testing.T) {
			onBoth(t, func(t *testing.T, p *rnictest.Pair) {
				target := p.B.Register(t, make([]byte, 64), rnic.LocalWrite|rnic.RemoteRead|rnic.RemoteWrite|rnic.RemoteAtomic)
				p.B.Recv(t, receives(1, 3)...)
				p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpSend}, rnic.SendWR{ID: 2, Op: op, SGL: nowhere, Remote: target.Remote(0)}, rnic.SendWR{ID: 3, Op: rnic.OpSend})
				rnictest.Want(t, p.A.SendCQ, 1)
				if wc := wantStatus(t, p.A.SendCQ, 2, rnic.StatusLocalProtection); wc.Cause == nil {
					t.Error("it has no cause")
				}
				wantStatus(t, p.A.SendCQ, 3, rnic.StatusFlushed)
				nextEvent(t, p.A.Device, rnic.EventCatastrophic)
			}, rnictest.Options{Device: lenient})
		})
	}
}

func TestReadOnlySinkIsToldByTheCompletionIfCheckedAtTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		target := p.B.Register(t, make([]byte, 64), rnic.RemoteRead)
		sink := p.A.Register(t, make([]byte, 64), 0)
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 8)}, Remote: target.Remote(0)})
		wantStatus(t, p.A.SendCQ, 1, rnic.StatusLocalProtection)
	}, rnictest.Options{Device: lenient})
}

// A region may become valid between post and turn. If it is not valid then, the Read is not
// sent.
func TestSinkThatIsNotValidIsToldByTheCompletionIfCheckedAtTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(c *rnic.Config, _ *rnic.QPAttr) { lenient("", c) })
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		mr := labOf(w, s).allocated(s.PD)
		fast := rnic.FastRegister{MR: mr, Memory: rnic.Memory{Slice: make([]byte, 8), ZeroBased: true}, Access: rnic.LocalWrite, Key: mr.STag().Key() + 1}
		tag := stag.Make(mr.STag().Index(), fast.Key)
		read := func(id uint64) rnic.SendWR {
			return rnic.SendWR{ID: id, Op: rnic.OpRead, SGL: []rnic.SGE{{Length: 8, LKey: tag}}}
		}
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpFastRegister, Register: fast}, read(2))
		h.want(rdmap.OpReadRequest)
		h.send(taggedSeg(rdmap.OpReadResponse, tag, 0, make([]byte, 8)))
		wantCompletions(w, s.SendCQ, result{1, ok}, result{2, ok})
		s.Send(w, rnic.SendWR{ID: 3, Op: rnic.OpLocalInvalidate, Invalidate: tag}, read(4))
		h.wantTerminate(rdmap.CodeLocalCatastrophic)
		h.close()
		wantCompletions(w, s.SendCQ, result{3, ok}, result{4, rnic.StatusLocalProtection})
	})
}

func TestBadReceiveIsToldByTheCompletionIfCheckedAtTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{{Addr: 0x1000, Length: 8, LKey: 0x1234}}}, rnic.RecvWR{ID: 2})
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte("x")})
		wantStatus(t, p.B.RecvCQ, 1, rnic.StatusLocalProtection)
		wantStatus(t, p.B.RecvCQ, 2, rnic.StatusFlushed)
	}, rnictest.Options{Device: lenient})
}

// What is malformed is refused as ever.
func TestMalformedRequestsAreRefusedThoughCheckedAtTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(c *rnic.Config, a *rnic.QPAttr) { lenient("", c); a.MaxSGE = 2 })
		wantRefused(w, "too many SGEs to send", s.QP.PostSend(rnic.SendWR{Op: rnic.OpSend, SGL: make([]rnic.SGE, 3)}), nil)
		wantRefused(w, "too many SGEs to receive", s.QP.PostRecv(rnic.RecvWR{SGL: make([]rnic.SGE, 3)}), nil)
		wantRefused(w, "a sink too small", s.QP.PostSend(rnic.SendWR{Op: rnic.OpFetchAdd, SGL: []rnic.SGE{{Length: 7}}}), nil)
	})
}

// Requests that are posted in any state in which a stream ends or has ended are
// flushed, each once, behind those before.
func TestPostsToAnEndedQueuePairAreFlushedIfTakenLate(t *testing.T) {
	post := func(w *world, s *rnictest.Side, id uint64) {
		s.Send(w, rnic.SendWR{ID: id, Op: rnic.OpSend, Flags: rnic.FlagUnsignaled})
		s.Recv(w, rnic.RecvWR{ID: id})
	}
	inWorld(t, func(w *world) {
		a, b := w.side(func(c *rnic.Config, _ *rnic.QPAttr) { lenient("", c) }), w.side()
		a.QP.Abort() // without a connection
		post(w, a, 1)
		wantCompletions(w, a.SendCQ, result{1, flushed})
		wantCompletions(w, a.RecvCQ, result{1, flushed})
		if err := a.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		w.connect(a, b)
		a.Recv(w, rnic.RecvWR{ID: 2})
		a.QP.Abort()
		post(w, a, 3)
		wantCompletions(w, a.SendCQ, result{3, flushed})
		wantCompletions(w, a.RecvCQ, result{2, flushed}, result{3, flushed})
		wantState(w, a.QP, rnic.Error)
	})
}

// A Send alone is flushed as well: no other request has to follow it.
func TestSendToAnEndedQueuePairIsFlushedAtOnceIfTakenLate(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(c *rnic.Config, _ *rnic.QPAttr) { lenient("", c) })
		s.QP.Abort()
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend})
		wantCompletions(w, s.SendCQ, result{1, flushed})
	})
}

// Memory that is only sent needs no right to be written, whatever the request waits for.
func TestFencedSendOfReadOnlyMemorySucceedsIfCheckedAtTurn(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		src := p.A.Register(t, make([]byte, 8), 0)
		p.B.Recv(t, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2, SGL: []rnic.SGE{p.B.Register(t, make([]byte, 8), rnic.LocalWrite).SGE(0, 8)}})
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpSend}, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagLocalFence, SGL: []rnic.SGE{src.SGE(0, 8)}})
		rnictest.Want(t, p.A.SendCQ, 1)
		rnictest.Want(t, p.A.SendCQ, 2)
	}, rnictest.Options{Device: lenient})
}

// While the stream is being closed, what is posted waits for its end, and holds it
// up no longer.
func TestPostsWhileClosingAreFlushedIfTakenLate(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.side(func(c *rnic.Config, _ *rnic.QPAttr) { lenient("", c) })
		h := w.peerOf(a, rnic.ConnParam{})
		ended := make(chan error, 1)
		go func() { ended <- a.QP.Disconnect(context.Background()) }()
		h.wantEnd(io.EOF)
		wantState(w, a.QP, rnic.Closing)
		a.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagUnsignaled}, rnic.SendWR{ID: 3, Op: rnic.OpWrite})
		a.Recv(w, rnic.RecvWR{ID: 4})
		wantCompletions(w, a.SendCQ)
		h.close()
		if err := <-ended; err != nil {
			w.Fatal(err)
		}
		wantCompletions(w, a.SendCQ, result{2, flushed}, result{3, flushed})
		wantCompletions(w, a.RecvCQ, result{4, flushed})
		wantState(w, a.QP, rnic.Idle)
	})
}

// Who forgets a queue pair finds nothing of it any more; others are not touched.
func TestForgottenQueuePairCompletesNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.side()
		other := newQP(w, a.Device, a.PD, rnic.QPAttr{SendCQ: a.SendCQ, RecvCQ: a.RecvCQ})
		for i, s := range []*rnictest.Side{a, other, a, other} {
			if i < 2 {
				s.QP.Abort()
				if err := s.QP.Reset(); err != nil {
					w.Fatal(err)
				}
			}
			s.Send(w, rnic.SendWR{ID: uint64(i), Op: rnic.OpSend})
			s.Recv(w, rnic.RecvWR{ID: uint64(i)})
		}
		a.QP.Abort()
		door.Forget(a.QP)
		other.QP.Abort()
		wantCompletions(w, a.SendCQ, result{1, flushed}, result{3, flushed})
		wantCompletions(w, a.RecvCQ, result{1, flushed}, result{3, flushed})

		if err := a.QP.Reset(); err != nil { // it is as new
			w.Fatal(err)
		}
		a.Recv(w, rnic.RecvWR{ID: 5})
		a.QP.Abort()
		wantCompletions(w, a.RecvCQ, result{5, flushed})
		if err := a.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		a.Recv(w, rnic.RecvWR{ID: 6})
		door.Forget(a.QP)
		if err := a.QP.Close(); err != nil {
			w.Fatal(err)
		}
		wantCompletions(w, a.RecvCQ)
	})
}

// What the completions of a queue pair that is forgotten have held of an SRQ's share
// is free again.
func TestForgottenCompletionsOfAnSRQHoldNoShare(t *testing.T) {
	inWorld(t, func(w *world) {
		a, host := w.side(), w.side()
		srq, err := host.PD.CreateSRQ(rnic.SRQAttr{PerQP: 2})
		if err != nil {
			w.Fatal(err)
		}
		b := newQP(w, host.Device, host.PD, rnic.QPAttr{SRQ: srq})
		for range 3 {
			if err := srq.PostRecv(receives(1, 2)...); err != nil {
				w.Fatal(err)
			}
			w.connect(a, b)
			a.Send(w, empties(1, 2, 0)...)
			rnictest.Want(w, a.SendCQ, 1)
			rnictest.Want(w, a.SendCQ, 2)
			synctest.Wait()
			for srq.Len() > 0 {
				synctest.Wait()
			}
			b.QP.Abort()
			door.Forget(b.QP)
			wantCompletions(w, b.RecvCQ)
			a.QP.Abort()
			for _, s := range []*rnictest.Side{a, b} {
				if err := s.QP.Reset(); err != nil {
					w.Fatal(err)
				}
			}
			drain(a.SendCQ)
			eventsOf(host.Device)
		}
	})
}

// A number that the consumer has chosen is in completions and events.
func TestQueuePairHasTheNumberThatIsAskedFor(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(_ *rnic.Config, a *rnic.QPAttr) { door.SetNum(a, 0xABCDEF) })
		s.Recv(w, rnic.RecvWR{ID: 1})
		s.QP.Abort()
		if wc := drain(s.RecvCQ)[0]; wc.QPN != 0xABCDEF || s.QP.Num() != 0xABCDEF {
			w.Errorf("the completion is of QP %x, the queue pair is %x", wc.QPN, s.QP.Num())
		}
	})
}

// The STag of a type 1 window can be known before it is bound.
func TestKeyOfAWindowCanBeDrawnBefore(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		mr := p.A.Register(t, make([]byte, 64), rnic.LocalWrite|rnic.BindWindow)
		mw, err := p.A.PD.AllocMW(rnic.Type1)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[uint8]bool{}
		for i := range 200 {
			bind := door.DrawKey(rnic.Bind{MW: mw, MR: mr, Addr: mr.Base(), Length: 8, Access: rnic.RemoteRead})
			key := bind.Key
			if seen[key] {
				t.Fatalf("key %d comes again", key)
			}
			seen[key] = true
			p.A.Send(t, rnic.SendWR{ID: uint64(i), Op: rnic.OpBindWindow, Bind: bind})
			rnictest.Want(t, p.A.SendCQ, uint64(i))
			if want := stag.Make(mw.STag().Index(), key); mw.STag() != want {
				t.Fatalf("STag %v; want %v", mw.STag(), want)
			}
		}
	})
	if none := (rnic.Bind{MW: &rnic.MW{}}); door.DrawKey(none) != none {
		t.Error("a window that no verb has made has a key")
	}
}
