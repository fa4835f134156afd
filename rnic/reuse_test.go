package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestQueuePairServesOneStreamAfterTheOther(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		for i := range 12 {
			from, to := a, b
			if i%2 > 0 {
				from, to = b, a
			}
			w.connect(from, to)
			w.exchange(from, to)
			switch i % 3 {
			case 0: // Idle by itself
				if err := a.QP.Disconnect(w.Context()); err != nil {
					w.Error(err)
				}
				wantState(w, b.QP, rnic.Idle)
				continue
			case 1:
				a.QP.Abort()
			default:
				if err := b.QP.Terminate(w.Context()); err != nil {
					w.Error(err)
				}
			}
			wantState(w, a.QP, rnic.Error)
			wantState(w, b.QP, rnic.Error)
			for _, s := range []*rnictest.Side{a, b} {
				if err := s.QP.Reset(); err != nil {
					w.Error(err)
				}
				if s.QP.Err() != nil || s.QP.State() != rnic.Idle {
					w.Errorf("after Reset the state is %v, the error %v", s.QP.State(), s.QP.Err())
				}
				if _, connected := s.QP.Params(); connected {
					w.Error("after Reset there are parameters of a connection")
				}
			}
		}
		for _, s := range []*rnictest.Side{a, b} {
			c := s.QP.Counters()
			if n := c.Sent[rdmap.OpSend].Messages; n != 12 {
				w.Errorf("the queue pair counts %d Sends; want those of all streams, 12", n)
			}
			if n := s.Device.Counters().Messages.Received[rdmap.OpSend].Octets; n != 12*3000 {
				w.Errorf("the device counts %d octets of Sends", n)
			}
		}
	})
}

// againStage ends the stream of a queue pair in one of the ways that lead to Idle.
var againStages = map[string]func(w *world, s *rnictest.Side, h *peer){
	"after Reset": func(w *world, s *rnictest.Side, _ *peer) {
		s.QP.Abort()
		if err := s.QP.Reset(); err != nil {
			w.Error(err)
		}
	},
	"after a graceful close": func(w *world, s *rnictest.Side, h *peer) {
		h.close()
		wantState(w, s.QP, rnic.Idle)
	},
}

func TestSTagOfAStreamDoesNotWorkOnTheNext(t *testing.T) {
	for name, again := range againStages {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				mem := make([]byte, 100)
				mr, err := s.PD.RegisterMemory(rnic.Memory{Slice: mem}, allRights, s.QP)
				if err != nil {
					w.Fatal(err)
				}
				h := w.peerOf(s, rnic.ConnParam{})
				h.send(writeSeg(mr.Remote(0), []byte("first")))
				wantState(w, s.QP, rnic.RTS)
				again(w, s, h)
				h = w.peerOf(s, rnic.ConnParam{})
				h.send(writeSeg(mr.Remote(0), []byte("second")))
				h.wantCapture(ddpCode(ddp.CodeSTagNotAssociated), h.last, false)
				h.close()
				if string(mem[:6]) != "first\x00" {
					w.Errorf("the memory holds %q", mem[:6])
				}
			})
		})
	}
}

func TestWindowOfAStreamDoesNotWorkOnTheNext(t *testing.T) {
	for name, again := range againStages {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				mr := s.Register(w, make([]byte, 100), allRights|rnic.BindWindow)
				mw, err := s.PD.AllocMW(rnic.Type2)
				if err != nil {
					w.Fatal(err)
				}
				h := w.peerOf(s, rnic.ConnParam{})
				s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: mw, MR: mr, Addr: mr.Base(), Length: 100, Access: rnic.RemoteWrite, Key: mw.STag().Key() + 1}})
				rnictest.Want(w, s.SendCQ, 1)
				to := rnic.Remote{STag: mw.STag(), TO: mr.Base()}
				h.send(writeSeg(to, []byte("first")))
				wantState(w, s.QP, rnic.RTS)
				again(w, s, h)
				h = w.peerOf(s, rnic.ConnParam{})
				h.send(writeSeg(to, []byte("second")))
				h.wantCapture(ddpCode(ddp.CodeSTagNotAssociated), h.last, false)
				h.close()
				if err := mw.Close(); err != nil {
					w.Error(err)
				}
			})
		})
	}
}

func TestWhatIsPreparedBetweenTwoStreamsServesTheSecond(t *testing.T) {
	for name, again := range againStages {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				h := w.peerOf(s, rnic.ConnParam{})
				again(w, s, h)
				drain(s.RecvCQ)
				mem := make([]byte, 100)
				mr, err := s.PD.RegisterMemory(rnic.Memory{Slice: mem}, allRights, s.QP)
				if err != nil {
					w.Fatal(err)
				}
				s.Recv(w, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{mr.SGE(50, 50)}})
				s.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{mr.SGE(0, 10)}})
				if err := s.QP.Reset(); err != nil { // of a queue pair that is idle: it changes nothing
					w.Error(err)
				}
				h = w.peerOf(s, rnic.ConnParam{})
				h.send(writeSeg(mr.Remote(0), []byte("written")))
				h.send(sendSeg("received"))
				h.want(rdmap.OpSend)
				wantCompletions(w, s.RecvCQ, result{1, ok})
				wantCompletions(w, s.SendCQ, result{2, ok})
				if !bytes.HasPrefix(mem, []byte("written")) || !bytes.HasPrefix(mem[50:], []byte("received")) {
					w.Errorf("the memory holds %q", mem)
				}
			})
		})
	}
}

func TestMessageNumbersBeginAnewWithEachStream(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		for range 3 {
			h := w.peerOf(s, rnic.ConnParam{})
			s.Recv(w, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2})
			s.Send(w, rnic.SendWR{ID: 3, Op: rnic.OpSend}, rnic.SendWR{ID: 4, Op: rnic.OpSend})
			h.send(sendSeg(""))
			h.send(sendSeg(""))
			for msn := range uint32(2) {
				if got := h.want(rdmap.OpSend).Untagged.MSN; got != msn+1 {
					w.Errorf("MSN %d; want %d", got, msn+1)
				}
			}
			wantCompletions(w, s.RecvCQ, result{1, ok}, result{2, ok})
			h.close()
			wantState(w, s.QP, rnic.Idle)
		}
	})
}

func TestLateAbortLeavesTheNextStreamAlone(t *testing.T) {
	// It waits for the end of a stream, and finds another one.
	for i := range 200 {
		inWorld(t, func(w *world) {
			a, b := w.side(), w.side()
			w.connect(a, b)
			aborted := make(chan bool)
			go func() {
				a.QP.Abort()
				close(aborted)
			}()
			if i%2 == 0 {
				a.QP.Abort()
			} else {
				b.QP.Abort()
			}
			for a.QP.Reset() != nil {
				time.Sleep(time.Nanosecond) // in a bubble, until all others wait
			}
			<-aborted
			if a.QP.State() == rnic.Error { // it came last, to an idle queue pair
				if err := a.QP.Reset(); err != nil {
					w.Fatal(err)
				}
			}
			c := w.side()
			w.connect(a, c)
			w.exchange(a, c)
			wantState(w, a.QP, rnic.RTS)
		})
	}
}

// An Abort that comes while a graceful close is being reported leaves the queue pair as
// Abort says.
func TestAbortAtTheEndOfAGracefulCloseIsNotLost(t *testing.T) {
	inWorld(t, func(w *world) {
		logger, release := newSlowLog(rnic.EventCloseComplete.String())
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Logger = logger })
		h := w.peerOf(s, rnic.ConnParam{})
		h.close()
		synctest.Wait()
		aborted := make(chan struct{})
		go func() {
			s.QP.Abort()
			close(aborted)
		}()
		synctest.Wait()
		release()
		<-aborted
		if got := s.QP.State(); got != rnic.Error {
			w.Errorf("state %v after Abort; want Error", got)
		}
	})
}

func TestDisconnectTellsTheEndOfItsOwnStream(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend}) // keeps it from closing
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- s.QP.Disconnect(ctx) }()
		h.quiet()
		h.reset()
		if err := <-done; err == nil {
			w.Error("a stream that was lost was closed gracefully")
		}
		if err := s.QP.Reset(); err != nil {
			w.Error(err)
		}
		if err := s.QP.Disconnect(ctx); !errors.Is(err, rnic.ErrNoStream) {
			w.Errorf("Disconnect after Reset: %v; want ErrNoStream", err)
		}
	})
}
