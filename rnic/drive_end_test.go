package rnic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/hang"
	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A drivenEnd is one end of a connection at a hand-made peer, of which a test
// decides who receives for it.
type drivenEnd struct {
	*world
	s     *rnictest.Side
	h     *peer
	block chan struct{} // whoever receives a Send stops here, if not nil
	at    chan struct{}
}

func newDrivenEnd(t *testing.T) *drivenEnd {
	t.Helper()
	w := &world{TB: t, Network: simnet.Network{Polls: true}}
	e := &drivenEnd{world: w, at: make(chan struct{}, 1)}
	e.s = w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
		cfg.Trace = func(m rnic.Trace) {
			if e.block != nil && !m.Sent && m.Op == rdmap.OpSend {
				e.at <- struct{}{}
				<-e.block
			}
		}
	})
	e.h = w.peerOf(e.s, rnic.ConnParam{})
	e.h.send(writeSeg(rnic.Remote{}, nil)) // opens the stream
	time.Sleep(unattended)
	return e
}

// holders bring about who receives when the end comes. What they return says
// whether the programs that wait have come back, with an error or a completion.
var holders = map[string]func(e *drivenEnd) (done func() bool){
	"the goroutine": func(*drivenEnd) func() bool { return func() bool { return true } },
	"a waiter": func(e *drivenEnd) func() bool {
		w := waits(e.Context(), e.s.RecvCQ)
		e.wantReceiver("driver")
		return w.isDone
	},
	"a waiter at the other queue": func(e *drivenEnd) func() bool {
		e.s.Send(e, rnic.SendWR{ID: 9, Op: rnic.OpRead, Flags: rnic.FlagUnsignaled}) // is flushed
		w := waits(e.Context(), e.s.SendCQ)
		e.wantReceiver("driver")
		return w.isDone
	},
	"two waiters": func(e *drivenEnd) func() bool {
		v, w := waits(e.Context(), e.s.RecvCQ), waits(e.Context(), e.s.RecvCQ)
		e.wantReceiver("driver")
		return func() bool { return v.isDone() && w.isDone() }
	},
	"nobody": func(e *drivenEnd) func() bool {
		spin(e.s.RecvCQ)
		e.wantReceiver("nobody")
		return func() bool { return true }
	},
	"the goroutine, which has been asked": func(e *drivenEnd) func() bool {
		e.block = make(chan struct{})
		e.h.send(sendSeg(""))
		<-e.at
		spin(e.s.RecvCQ)
		e.wantReceiver("asked")
		go func() { // when the end is under way
			time.Sleep(time.Microsecond)
			close(e.block)
		}()
		return func() bool { return true }
	},
}

func (e *drivenEnd) wantReceiver(want string) {
	e.Helper()
	synctest.Wait()
	if got := rnic.Receiver(e.s.QP); got != want {
		e.Fatalf("the receiver is %q; want %q", got, want)
	}
}

// ends are ways in which a stream comes to its end. They don't return before that
// if they are verbs.
var ends = map[string]struct {
	do    func(e *drivenEnd)
	state rnic.State // at last
}{
	"Disconnect": {func(e *drivenEnd) {
		time.AfterFunc(unattended, func() { _ = e.h.conn.(*simnet.Conn).CloseWrite() })
		ctx, cancel := context.WithTimeout(e.Context(), time.Second)
		defer cancel()
		_ = e.s.QP.Disconnect(ctx) // the states tell
	}, rnic.Idle},
	"Disconnect that the peer ignores": {func(e *drivenEnd) {
		ctx, cancel := context.WithTimeout(e.Context(), time.Second)
		defer cancel()
		if err := e.s.QP.Disconnect(ctx); err == nil {
			e.Error("no error")
		}
	}, rnic.Error},
	"Abort":     {func(e *drivenEnd) { e.s.QP.Abort() }, rnic.Error},
	"Terminate": {func(e *drivenEnd) { _ = e.s.QP.Terminate(e.Context()) }, rnic.Error},
	"FIN": {func(e *drivenEnd) {
		e.h.closeWrite()
		time.Sleep(unattended)
	}, rnic.Idle},
	"RST": {func(e *drivenEnd) {
		e.h.reset()
		time.Sleep(unattended)
	}, rnic.Error},
	"a Terminate of the peer": {func(e *drivenEnd) {
		e.h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		e.h.closeWrite()
		time.Sleep(unattended)
	}, rnic.Error},
	"a damaged FPDU": {func(e *drivenEnd) {
		b := e.h.fpdu(writeSeg(rnic.Remote{STag: 1}, []byte("damaged")))
		b[len(b)-1] ^= 1
		e.h.write(b)
		e.h.closeWrite()
		time.Sleep(unattended)
	}, rnic.Error},
	"an FPDU for a bad STag": {func(e *drivenEnd) {
		e.h.send(writeSeg(rnic.Remote{STag: 1}, []byte("stray")))
		e.h.closeWrite()
		time.Sleep(unattended)
	}, rnic.Error},
	"the end of the device": {func(e *drivenEnd) {
		if err := e.s.Device.Close(); err != nil {
			e.Error(err)
		}
	}, rnic.Error},
}

// However the stream ends and whoever receives then: the queue pair gets its last
// state in time, all requests are flushed, and nobody who waits is left behind.
func TestStreamEndsWhoeverReceives(t *testing.T) {
	for how, end := range ends {
		for who, holder := range holders {
			t.Run(how+", at "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newDrivenEnd(t)
					const posted = 4
					e.s.Recv(e, receives(0, posted)...)
					done := holder(e)
					end.do(e)
					synctest.Wait()
					want := end.state
					if who == "a waiter at the other queue" {
						want = rnic.Error // the Read is in the way
					}
					if got := e.s.QP.State(); got != want {
						t.Errorf("state %v (%v); want %v", got, e.s.QP.Err(), want)
					}
					if !done() {
						t.Error("somebody still waits")
					}
					if how == "the end of the device" {
						return // and its queues
					}
					taken := map[string]int{"a waiter": 1, "two waiters": 2}[who]
					if got := len(drain(e.s.RecvCQ)); got != posted-taken {
						t.Errorf("%d receives have completed; want %d", got+taken, posted)
					}
					if got := rnic.Receiver(e.s.QP); got != "goroutine" {
						t.Errorf("at the end, the receiver is %q", got)
					}
				})
			})
		}
	}
}

// A Terminate ends the stream when it is there, though the peer does not close its half.
func TestTerminateEndsTheStreamWhoeverReceives(t *testing.T) {
	for who, holder := range holders {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newDrivenEnd(t)
				e.s.Recv(e, receives(0, 1)...)
				holder(e)
				e.h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
				time.Sleep(unattended)
				wantTerminate(t, e.s.Device, rdmap.CodeGlobalCatastrophic)
			})
		})
	}
}

// A program may come back for the role at any moment while the stream ends. Over
// TCP, where all of it runs at once.
func TestRoleAndEndMeetAtAnyMoment(t *testing.T) {
	leakcheck.Check(t)
	p := overTCP(t, "127.0.0.1:0")
	small := rnic.QPAttr{MaxSendWR: 8, MaxRecvWR: 8}
	for i := range 60 {
		a, b := newQP(t, p.A.Device, p.A.PD, small), newQP(t, p.B.Device, p.B.PD, small)
		p.Link(t, a.QP, b.QP)
		b.Recv(t, receives(0, 4)...)
		a.Send(t, empties(0, 1, 0)...)
		rnictest.Want(t, b.RecvCQ, 0)
		ctx, cancel := context.WithCancel(t.Context())
		stop := make(chan struct{})
		polls := make(chan struct{})
		go func() {
			defer close(polls)
			var wcs [1]rnic.WC
			for n := 0; n < 1; {
				n = b.RecvCQ.Poll(wcs[:])
				select {
				case <-stop:
					n++
				default:
				}
			}
		}()
		first, second := waits(ctx, b.RecvCQ), waits(ctx, b.RecvCQ)
		for range i % 3 {
			_ = b.SendCQ.Arm(rnic.NextCompletion)
		}
		switch i % 6 {
		case 0:
			if err := a.QP.Disconnect(ctx); err != nil {
				t.Error(err)
			}
		case 1:
			a.QP.Abort()
		case 2:
			b.QP.Abort()
		case 3:
			_ = a.QP.Terminate(ctx)
		case 4:
			_ = b.QP.Terminate(ctx)
		case 5:
			if err := b.QP.Disconnect(ctx); err != nil {
				t.Error(err)
			}
		}
		released := hang.Guard(t, func() { // somebody is left behind
			cancel()
			close(stop)
		})
		<-first.done
		<-second.done
		<-polls // there are three receives, and three who want one
		released()
		if t.Failed() {
			return
		}
		close(stop)
		cancel()
		for _, s := range []*rnictest.Side{a, b} {
			if err := s.QP.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
