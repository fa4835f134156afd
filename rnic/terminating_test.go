package rnic_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ddp"
	"urnic/internal/test/leakcheck"
	"urnic/internal/test/simnet"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestTerminateReachesAPeerThatStillSends(t *testing.T) {
	// A connection that is closed with unread bytes is reset, and a Terminate
	// on its way is lost. So it lingers, and drops what comes.
	more := make([]byte, 200_000)
	t.Run("memory", func(t *testing.T) {
		inWorld(t, func(w *world) {
			late := simnet.Faults{Latency: 10 * time.Millisecond}
			w.Options = func(int) simnet.Options { return simnet.Options{BA: late} }
			s := w.side()
			h := w.peerOf(s, rnic.ConnParam{})
			b := h.fpdu(sendSeg(""))
			captured := h.last
			h.write(append(b, more...))
			h.write(more)
			h.wantCapture(ddpCode(ddp.CodeMSNNoBuffer), captured, false)
			h.write(more)
			h.close()
			wantState(w, s.QP, rnic.Error)
		})
	})
	t.Run("TCP", func(t *testing.T) {
		leakcheck.Check(t)
		for range 10 {
			s := tcpSide(t, "B", nil)
			h := peerOverTCP(t, s)
			h.write(h.fpdu(sendSeg("")))
			captured := h.last
			sent := make(chan bool)
			go func() {
				defer close(sent)
				for range 20 {
					if _, err := h.conn.Write(more); err != nil {
						t.Errorf("the peer's write: %v", err)
						return
					}
				}
				_ = h.conn.(*net.TCPConn).CloseWrite()
			}()
			<-sent
			h.wantCapture(ddpCode(ddp.CodeMSNNoBuffer), captured, false)
			_ = s.Device.Close()
		}
	})
}

// peerOverTCP connects a peer to a side over loopback.
func peerOverTCP(t testing.TB, s *rnictest.Side) *peer {
	t.Helper()
	l, err := s.Device.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(context.Background())
		if err == nil {
			err = r.Accept(context.Background(), s.QP, rnic.ConnParam{})
		}
		accepted <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	h := newPeer(t, c)
	f := plainRequest
	h.frame(&f)
	h.readFrame()
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	h.full(&f, &h.theirs)
	return h
}

func TestPeerThatNeverClosesAfterATerminateIsReset(t *testing.T) {
	for name, end := range map[string]func(w *world, s *rnictest.Side, h *peer){
		"which it has received": func(w *world, s *rnictest.Side, h *peer) {
			h.send(sendSeg(""))
			h.wantTerminate(ddpCode(ddp.CodeMSNNoBuffer))
		},
		"which it has sent": func(w *world, s *rnictest.Side, h *peer) {
			h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
			h.wantEnd(io.EOF)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				h := w.peerOf(s, rnic.ConnParam{})
				start := time.Now()
				end(w, s, h)
				wantState(w, s.QP, rnic.Terminating)
				why := s.QP.Err()
				time.Sleep(rnic.DefaultCloseTimeout)
				wantState(w, s.QP, rnic.Error)
				h.wantReset()
				if !errors.Is(s.QP.Err(), why) {
					w.Errorf("the stream ended with %v; want the error that began it, %v", s.QP.Err(), why)
				}
				if d := time.Since(start); d != rnic.DefaultCloseTimeout {
					w.Errorf("it took %v", d)
				}
			})
		})
	}
}

func TestPeerThatDoesNotReadItsTerminateIsReset(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side()
		src := s.Register(w, make([]byte, 50_000), rnic.RemoteRead)
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(readSeg(rdmap.ReadRequest{Size: 50_000, SrcSTag: src.STag(), SrcTO: src.Base()}))
		h.send(sendSeg(""))
		wantState(w, s.QP, rnic.Terminating)
		time.Sleep(rnic.DefaultCloseTimeout)
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventRemoteOperation)
	})
}

func TestTerminateVerb(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		w.connect(a, b)
		a.Recv(w, rnic.RecvWR{ID: 1})
		if err := a.QP.Terminate(w.Context()); err != nil {
			w.Error(err)
		}
		wantState(w, a.QP, rnic.Error)
		wantState(w, b.QP, rnic.Error)
		wantEvents(w, a.Device) // the program has wanted it
		wantEvents(w, b.Device, rnic.EventTerminateReceived)
		wantCompletions(w, a.RecvCQ, result{1, flushed})
		if code, byPeer := termCode(b.QP.Err()); code != 0 || !byPeer {
			w.Errorf("the peer learns %v; want code 0x0000", b.QP.Err())
		}
		if !errors.Is(a.QP.Err(), rnic.ErrAborted) {
			w.Errorf("the stream ended with %v; want ErrAborted", a.QP.Err())
		}
	})
}

func TestContextEndsTheWaitOfTheTerminateVerb(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		if err := s.QP.Terminate(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("%v; want the context's error", err)
		}
		if d := time.Since(start); d != time.Second {
			w.Errorf("it took %v", d)
		}
		wantState(w, s.QP, rnic.Error)
		h.wantReset()
	})
}

// Terminate returns when the stream has ended, also if its context has ended before: no
// memory is touched any more.
func TestTerminateVerbWaitsForTheEndOfTheStream(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(m rnic.Trace) {
				if !m.Sent {
					<-hold // keeps the receiver busy
				}
			}
		})
		h := w.peerOf(s, rnic.ConnParam{})
		s.Recv(w, rnic.RecvWR{ID: 1})
		h.send(sendSeg(""))
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		done := make(chan error, 1)
		go func() { done <- s.QP.Terminate(ctx) }()
		synctest.Wait()
		select {
		case err := <-done:
			w.Errorf("it returned while a message is being received: %v", err)
			close(hold)
		default:
			close(hold)
			if err := <-done; !errors.Is(err, context.Canceled) {
				w.Errorf("%v; want the context's error", err)
			}
		}
	})
}

func TestTerminatesThatCrossEndTheStreamOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		late := simnet.Faults{Latency: time.Millisecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late} }
		a, b := w.side(), w.side()
		w.connect(a, b)
		time.Sleep(time.Second)
		a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpLocalInvalidate, Invalidate: 0x12345600})
		b.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpLocalInvalidate, Invalidate: 0x12345600})
		if a.QP.State() != rnic.Terminating {
			w.Fatalf("A is in state %v", a.QP.State())
		}
		time.Sleep(time.Second)
		for _, s := range []*rnictest.Side{a, b} {
			if s == b && b.QP.Err() == nil {
				w.Fatal("B did not fail")
			}
			wantState(w, s.QP, rnic.Error)
			wantEvents(w, s.Device, rnic.EventCatastrophic, rnic.EventTerminateReceived)
			if code, byPeer := termCode(s.QP.Err()); code != rdmap.CodeLocalCatastrophic || byPeer {
				w.Errorf("the stream ended with %v; want the error that this side found first", s.QP.Err())
			}
			wantCompletions(w, s.SendCQ, result{1, rnic.StatusBadSTag})
		}
	})
}

func TestTerminateEndsSending(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		src := s.Register(w, make([]byte, 1<<20), 0)
		s.Send(w, // of which the second is never begun
			rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 1<<20)}},
			rnic.SendWR{ID: 2, Op: rnic.OpSend},
		)
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		for {
			seg, err := h.next()
			if err != nil {
				break
			}
			if op := opcodeOf(seg); op != rdmap.OpWrite {
				w.Errorf("the side sent %v after the Terminate", op)
			}
		}
		h.close()
		wantState(w, s.QP, rnic.Error)
		// How much of the Write the peer has taken is not known.
		wantCompletions(w, s.SendCQ, result{1, flushed}, result{2, flushed})
	})
}

func TestTerminateThatIsTooShortIsAnError(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(untaggedSeg(rdmap.OpTerminate, []byte{0, 0, 0xC0, 0}))
		h.wantCapture(rdmap.CodeOperationUnspecified, h.last, false)
		h.close()
		wantEvents(w, s.Device, rnic.EventRemoteOperation)
	})
}
