package rnic_test

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// inPostSend reports whether it is called by a goroutine that posts.
func inPostSend() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "rnic.(*QP).PostSend") {
			return true
		}
		if !more {
			return false
		}
	}
}

// PostSend returns although the socket is full and the transmitter waits for the peer.
func TestPostSendDoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side()
		w.peerOf(s, rnic.ConnParam{}).send(writeSeg(rnic.Remote{}, nil)) // opens the stream
		src := s.Register(w, make([]byte, 100_000), 0)
		synctest.Wait()
		for id := range uint64(20) {
			s.Send(w, rnic.SendWR{ID: id, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, 100_000)}})
			synctest.Wait()
		}
		wantCompletions(w, s.SendCQ)
	})
}

// An idle queue pair sends from the goroutine that posts, also what stands behind a
// request that has to wait until the memory of those before it has been sent.
func TestPosterSendsWhatStandsBehindAnInvalidation(t *testing.T) {
	sent := 0
	o := polled
	o.Device = func(side string, cfg *rnic.Config) {
		if side == "A" {
			cfg.Trace = func(m rnic.Trace) {
				if m.Sent && m.Op == rdmap.OpSend && inPostSend() {
					sent++
				}
			}
		}
	}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		src, old := p.A.Register(t, make([]byte, 8), 0), p.A.Register(t, make([]byte, 8), 0)
		p.B.Recv(t, receives(1, 2)...)
		p.B.Recv(t, rnic.RecvWR{ID: 3})
		p.A.Send(t,
			rnic.SendWR{ID: 1, Op: rnic.OpSend},
			rnic.SendWR{ID: 2, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 8)}, Remote: p.B.Register(t, make([]byte, 8), everyRight).Remote(0)},
			rnic.SendWR{ID: 3, Op: rnic.OpLocalInvalidate, Invalidate: old.STag()},
			rnic.SendWR{ID: 4, Op: rnic.OpSend},
		)
		if sent != 2 {
			t.Errorf("PostSend has sent %d of 2 Sends", sent)
		}
		for id := range uint64(4) {
			rnictest.Want(t, p.A.SendCQ, 1+id)
		}
	}, o)
}

// A poster does not go on and on for others who post meanwhile.
func TestPosterIsNotKeptByOthersWhoPost(t *testing.T) {
	const posts = 100
	var own, all atomic.Int32
	var q *rnic.QP
	o := polled
	o.Device = func(side string, cfg *rnic.Config) {
		if side == "A" {
			cfg.Trace = func(m rnic.Trace) {
				if !m.Sent || m.Op != rdmap.OpSend {
					return
				}
				if inPostSend() {
					own.Add(1)
				}
				if all.Add(1) < posts { // stands for somebody else, who is quick
					if err := q.PostSend(rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled | rnic.FlagLocalFence}); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		q = p.A.QP
		p.B.Recv(t, receives(1, posts)...)
		p.A.Send(t, rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled})
		for id := range uint64(posts) {
			rnictest.Want(t, p.B.RecvCQ, 1+id)
		}
		if n := own.Load(); n > posts/5 {
			t.Errorf("the poster has sent %d of %d messages", n, posts)
		}
	}, o)
}

// A local request is carried out as soon as what was begun before it has been sent,
// though a Read in front of it is outstanding.
func TestLocalRequestDoesNotWaitForTheReadBeforeIt(t *testing.T) {
	withReader(t, func(r *reader) {
		src, old := r.s.Register(r, make([]byte, 8), 0), r.s.Register(r, make([]byte, 8), 0)
		r.s.Send(r,
			rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{r.sink.SGE(100, 100)}, Remote: rnic.Remote{STag: 0x100}},
			rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, 8)}},
			rnic.SendWR{ID: 3, Op: rnic.OpLocalInvalidate, Invalidate: old.STag()},
		)
		synctest.Wait()
		if old.Valid() {
			r.Error("the region is still valid")
		}
		r.h.want(rdmap.OpReadRequest)
		r.h.want(rdmap.OpSend)
		r.h.send(taggedSeg(rdmap.OpReadResponse, r.sink.STag(), r.sink.Base()+100, make([]byte, 100)))
		wantCompletions(r, r.s.SendCQ, result{1, ok}, result{2, ok}, result{3, ok})
	})
}

// A program that polls is away only after it has stayed away: a request that takes it
// long to send counts until its end.
func TestWhoHasJustTransmittedIsNotAway(t *testing.T) {
	for d := 5 * time.Millisecond; d < 6*time.Millisecond; d += 30 * time.Microsecond {
		sends := false
		o := polled
		o.Device = func(name string, cfg *rnic.Config) {
			if name == "B" {
				cfg.Trace = func(m rnic.Trace) {
					if m.Sent && sends {
						time.Sleep(d)
					}
				}
			}
		}
		rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
			p.A.Recv(t, receives(1, 1)...)
			freed(t, p.B.QP, p.B.RecvCQ)
			spin(p.B.RecvCQ)
			time.Sleep(150 * time.Microsecond) // it has been seen to come back
			wantReceiver(t, p.B.QP, "nobody")
			sends = true
			p.B.Send(t, empties(1, 1, 0)...)
			time.Sleep(90 * time.Microsecond)
			wantReceiver(t, p.B.QP, "nobody")
		}, o)
	}
}

// Memory is free again although the program aborts the connection while it is sent.
func TestAbortWhileSendingFreesTheMemory(t *testing.T) {
	var q *rnic.QP
	o := rnictest.Options{Device: func(side string, cfg *rnic.Config) {
		if side == "A" {
			cfg.Trace = func(m rnic.Trace) {
				if m.Sent && m.Op == rdmap.OpSend {
					go q.Abort()                 // it waits for the transmitter
					time.Sleep(time.Millisecond) // until then
				}
			}
		}
	}}
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		q = p.A.QP
		mr := p.A.Register(t, make([]byte, 8), 0)
		p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpSend}, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, 8)}})
		synctest.Wait()
		closing(t, &mr)
	}, o)
}
