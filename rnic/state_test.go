package rnic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A stage brings a side's queue pair into one state; leave ends what is left.
type stage struct {
	state rnic.State
	name  string
	enter func(w *world, s *rnictest.Side) *peer
}

// stages are the states of draft-hilland-rddp-verbs §6.1.1, those with several
// ways in more than once.
var stages = []stage{
	{rnic.Idle, "new", func(*world, *rnictest.Side) *peer { return nil }},
	{rnic.Idle, "after a graceful close", func(w *world, s *rnictest.Side) *peer {
		h := w.peerOf(s, rnic.ConnParam{})
		h.close()
		return nil
	}},
	{rnic.Idle, "after Reset", func(w *world, s *rnictest.Side) *peer {
		s.QP.Abort()
		if err := s.QP.Reset(); err != nil {
			w.Error(err)
		}
		return nil
	}},
	{rnic.RTS, "responder", func(w *world, s *rnictest.Side) *peer { return w.peerOf(s, rnic.ConnParam{}) }},
	{rnic.RTS, "initiator", func(w *world, s *rnictest.Side) *peer {
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		return h
	}},
	{rnic.Closing, "by Disconnect", func(w *world, s *rnictest.Side) *peer {
		h := w.peerOf(s, rnic.ConnParam{})
		go func() { _ = s.QP.Disconnect(context.Background()) }()
		h.wantEnd(io.EOF)
		return h
	}},
	{rnic.Terminating, "by Terminate", func(w *world, s *rnictest.Side) *peer {
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(writeSeg(rnic.Remote{}, nil))
		go func() { _ = s.QP.Terminate(context.Background()) }()
		h.wantBare(rdmap.CodeLocalCatastrophic)
		return h
	}},
	{rnic.Terminating, "by the peer's Terminate", func(w *world, s *rnictest.Side) *peer {
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		h.wantEnd(io.EOF)
		return h
	}},
	{rnic.Error, "by Abort in Idle", func(_ *world, s *rnictest.Side) *peer {
		s.QP.Abort()
		return nil
	}},
	{rnic.Error, "by Abort in RTS", func(w *world, s *rnictest.Side) *peer {
		h := w.peerOf(s, rnic.ConnParam{})
		s.QP.Abort()
		return h
	}},
	{rnic.Error, "by the loss of the connection", func(w *world, s *rnictest.Side) *peer {
		h := w.peerOf(s, rnic.ConnParam{})
		h.reset()
		return h
	}},
}

// inEachState runs f with a queue pair in each state.
func inEachState(t *testing.T, f func(w *world, st stage, s *rnictest.Side, h *peer)) {
	t.Helper()
	for _, st := range stages {
		t.Run(fmt.Sprintf("%v %s", st.state, st.name), func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				h := st.enter(w, s)
				wantState(w, s.QP, st.state)
				f(w, st, s, h)
			})
		})
	}
}

// wantStateError checks that a verb was refused because of the state.
func wantStateError(t testing.TB, verb string, err error, want rnic.State) {
	t.Helper()
	var e *rnic.StateError
	if !errors.As(err, &e) || e.State != want {
		t.Errorf("%s: %v; want a StateError in %v", verb, err, want)
	}
}

func TestEachStateTakesOnlyTheVerbsItAllows(t *testing.T) {
	inEachState(t, func(w *world, st stage, s *rnictest.Side, h *peer) {
		q, state := s.QP, st.state
		send, recv := rnic.SendWR{Op: rnic.OpSend}, rnic.RecvWR{}
		for verb, err := range map[string]error{"PostSend": q.PostSend(send), "PostRecv": q.PostRecv(recv)} {
			switch state {
			case rnic.Idle, rnic.RTS:
				if err != nil {
					w.Errorf("%s: %v", verb, err)
				}
			default:
				wantStateError(w, verb, err, state)
			}
		}
		if state != rnic.Idle {
			if err := q.Connect(context.Background(), "192.0.2.9:1", rnic.ConnParam{}); !errors.Is(err, rnic.ErrNotIdle) {
				w.Errorf("Connect: %v; want ErrNotIdle", err)
			}
			if err := acceptOnto(w, s); !errors.Is(err, rnic.ErrNotIdle) {
				w.Errorf("Accept: %v; want ErrNotIdle", err)
			}
		}
		switch err := q.Terminate(w.Context()); {
		case state == rnic.Idle, st.name == "by Abort in Idle":
			if !errors.Is(err, rnic.ErrNoStream) {
				w.Errorf("Terminate: %v; want ErrNoStream", err)
			}
		case state == rnic.RTS: // it takes until the peer closes; a queue pair that is new has not heard of it yet
			if err != nil {
				w.Errorf("Terminate: %v", err)
			}
			return
		default:
			wantStateError(w, "Terminate", err, state)
		}
		switch err := q.Reset(); state {
		case rnic.Idle, rnic.Error:
			if err != nil || q.State() != rnic.Idle {
				w.Errorf("Reset: %v, and the state is %v", err, q.State())
			}
		default:
			wantStateError(w, "Reset", err, state)
		}
	})
}

// acceptOnto makes a request arrive at a side and accepts it with its queue pair.
func acceptOnto(w *world, s *rnictest.Side) error {
	w.Helper()
	l, accepted := w.accept(s, rnic.ConnParam{})
	defer l.Close()
	h := w.dial(l.Addr().String())
	h.frame(&plainRequest)
	return <-accepted
}

func TestDisconnectInEachState(t *testing.T) {
	inEachState(t, func(w *world, st stage, s *rnictest.Side, h *peer) {
		done := make(chan error, 1)
		go func() { done <- s.QP.Disconnect(context.Background()) }()
		synctest.Wait()
		if h != nil {
			h.close()
		}
		err := <-done
		switch {
		case st.state == rnic.Idle && st.name == "after a graceful close": // it has ended as wanted
			fallthrough
		case st.state == rnic.RTS, st.state == rnic.Closing:
			if err != nil {
				w.Error(err)
			}
			wantState(w, s.QP, rnic.Idle)
		case st.state == rnic.Idle, st.name == "by Abort in Idle":
			if !errors.Is(err, rnic.ErrNoStream) {
				w.Errorf("%v; want ErrNoStream", err)
			}
		case st.state == rnic.Error:
			wantStateError(w, "Disconnect", err, rnic.Error)
		default: // the stream ends with its error
			if err == nil || !errors.Is(err, s.QP.Err()) {
				w.Errorf("%v; want %v", err, s.QP.Err())
			}
			wantState(w, s.QP, rnic.Error)
		}
	})
}

func TestCloseInEachState(t *testing.T) {
	inEachState(t, func(w *world, st stage, s *rnictest.Side, h *peer) {
		q := s.QP
		if st.state == rnic.Idle || st.state == rnic.RTS {
			if err := q.PostRecv(rnic.RecvWR{ID: 1}); err != nil {
				w.Error(err)
			}
		}
		if err := q.Close(); err != nil {
			w.Error(err)
		}
		if err := q.Close(); err != nil {
			w.Errorf("second Close: %v", err)
		}
		if st.state == rnic.Idle || st.state == rnic.RTS {
			wantCompletions(w, s.RecvCQ, result{1, rnic.StatusFlushed})
		}
		for verb, err := range map[string]error{
			"PostSend": q.PostSend(rnic.SendWR{Op: rnic.OpSend}), "PostRecv": q.PostRecv(rnic.RecvWR{}), "Reset": q.Reset(),
			"Connect": q.Connect(w.Context(), "192.0.2.9:1", rnic.ConnParam{}),
		} {
			if !errors.Is(err, rnic.ErrClosed) {
				w.Errorf("%s: %v; want ErrClosed", verb, err)
			}
		}
		if err := acceptOnto(w, s); !errors.Is(err, rnic.ErrClosed) {
			w.Errorf("Accept: %v; want ErrClosed", err)
		}
		if h != nil && (st.state == rnic.RTS || st.state == rnic.Closing || st.state == rnic.Terminating) {
			h.wantEnd(syscall.ECONNRESET)
		}
		wantState(w, q, rnic.Error)
		wantHeld(w, s.Device, pd.Limits{pd.Domains: 1, pd.CompletionQueues: 2, pd.CQEntries: 2048})
	})
}

func TestAbortInEachState(t *testing.T) {
	inEachState(t, func(w *world, st stage, s *rnictest.Side, h *peer) {
		why := s.QP.Err()
		s.QP.Abort()
		if got := s.QP.State(); got != rnic.Error {
			w.Errorf("state %v after Abort; want Error", got)
		}
		if err := s.QP.Err(); why == nil && !errors.Is(err, rnic.ErrAborted) || why != nil && !errors.Is(err, why) {
			w.Errorf("the stream ended with %v; want %v", err, why)
		}
		for _, e := range eventsOf(s.Device) {
			if e == rnic.EventLost && st.name != "by the loss of the connection" {
				w.Error("an Abort was reported as the loss of the connection")
			}
		}
		if err := s.QP.Reset(); err != nil {
			w.Error(err)
		}
	})
}

func TestRequestsPostedInIdleWaitForTheStream(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend})
		b.Recv(w, rnic.RecvWR{ID: 2})
		wantCompletions(w, a.SendCQ)
		w.connect(a, b)
		wantCompletions(w, a.SendCQ, result{1, rnic.StatusSuccess})
		wantCompletions(w, b.RecvCQ, result{2, rnic.StatusSuccess})
	})
}

func TestAbortInIdleFlushesWhatIsPosted(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend}, rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagUnsignaled})
		s.Recv(w, rnic.RecvWR{ID: 3})
		s.QP.Abort()
		wantCompletions(w, s.SendCQ, result{1, rnic.StatusFlushed}, result{2, rnic.StatusFlushed})
		wantCompletions(w, s.RecvCQ, result{3, rnic.StatusFlushed})
		wantEvents(w, s.Device)
	})
}

func TestDisconnectGoesThroughClosingToIdle(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		s.Recv(w, rnic.RecvWR{ID: 1})
		done := make(chan error, 1)
		go func() { done <- s.QP.Disconnect(context.Background()) }()
		h.wantEnd(io.EOF)
		wantState(w, s.QP, rnic.Closing)
		wantEvents(w, s.Device)
		h.close()
		if err := <-done; err != nil {
			w.Error(err)
		}
		wantState(w, s.QP, rnic.Idle)
		wantEvents(w, s.Device, rnic.EventCloseComplete)
		wantCompletions(w, s.RecvCQ, result{1, rnic.StatusFlushed})
	})
}

func TestFINWithNothingOutstandingClosesGracefully(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		s.Recv(w, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2})
		h.send(sendSeg("last"[:0]))
		h.closeWrite()
		h.wantEnd(io.EOF)
		wantState(w, s.QP, rnic.Idle)
		wantEvents(w, s.Device, rnic.EventCloseComplete)
		wantCompletions(w, s.RecvCQ, result{1, rnic.StatusSuccess}, result{2, rnic.StatusFlushed})
	})
}

func TestResetOfTheConnectionIsReportedAsItsLoss(t *testing.T) {
	for _, st := range stages {
		if st.state != rnic.RTS && st.state != rnic.Closing && st.state != rnic.Terminating {
			continue
		}
		t.Run(fmt.Sprintf("%v %s", st.state, st.name), func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				h := st.enter(w, s)
				eventsOf(s.Device)
				h.reset()
				wantState(w, s.QP, rnic.Error)
				if st.state == rnic.Terminating { // the error that leads here was reported
					wantEvents(w, s.Device)
					return
				}
				wantEvents(w, s.Device, rnic.EventLost)
				if !errors.Is(s.QP.Err(), syscall.ECONNRESET) {
					w.Errorf("%v; want ECONNRESET", s.QP.Err())
				}
			})
		})
	}
}

func TestResetWaitsForTheFlush(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(rnic.Trace) { <-hold } // keeps the receiver busy
		})
		h := w.peerOf(s, rnic.ConnParam{})
		s.Recv(w, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2})
		h.send(sendSeg(""))
		aborted := make(chan bool)
		go func() {
			s.QP.Abort()
			close(aborted)
		}()
		wantState(w, s.QP, rnic.Error)
		err := s.QP.Reset()
		wantStateError(w, "Reset", err, rnic.Error)
		if !errors.Is(err, rnic.ErrBusy) {
			w.Errorf("%v; want ErrBusy", err)
		}
		close(hold)
		<-aborted
		wantCompletions(w, s.RecvCQ, result{1, rnic.StatusSuccess}, result{2, rnic.StatusFlushed})
		if err := s.QP.Reset(); err != nil {
			w.Error(err)
		}
	})
}

func TestStateNames(t *testing.T) {
	for s, want := range map[rnic.State]string{rnic.Idle: "Idle", rnic.Terminating: "Terminate", rnic.Error: "Error", rnic.Error + 1: "state 5", 9: "state 9"} {
		if s.String() != want {
			t.Errorf("state %d is called %q; want %q", uint8(s), s, want)
		}
	}
}

func TestQPIsBoundBeforeFullOperation(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		s.Recv(w, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{s.Register(w, make([]byte, 16), rnic.LocalWrite).SGE(0, 16)}})
		// The first FPDU comes in one piece with the Reply: whatever full operation
		// brings finds its queue pair.
		h, req, connected := w.asked(s, rnic.ConnParam{})
		reply := plainReply(&req)
		h.full(&reply, &req)
		b, _ := reply.AppendBinary(nil)
		h.write(append(b, h.fpdu(sendSeg("at once"))...))
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		if wc := rnictest.Want(w, s.RecvCQ, 1); wc.ByteLen != 7 {
			w.Errorf("%d octets arrived; want 7", wc.ByteLen)
		}
		wantState(w, s.QP, rnic.RTS)
	})
}

func TestVerbsFromManyGoroutines(t *testing.T) {
	for seed := range 20 {
		inWorld(t, func(w *world) {
			f := simnet.Faults{Seed: uint64(seed), ShortReads: true, ShortWrites: true, Latency: time.Microsecond}
			w.Options = func(int) simnet.Options { return simnet.Options{AB: f, BA: f, Buffer: 2000} }
			a, b := w.side(), w.side()
			w.connect(a, b)
			to, from := b.Register(w, make([]byte, 4096), rnic.LocalWrite|rnic.RemoteWrite), b.Register(w, make([]byte, 4096), rnic.RemoteRead)
			source, sink := a.Register(w, make([]byte, 4096), 0), a.Register(w, make([]byte, 4096), rnic.LocalWrite)
			var wg sync.WaitGroup
			run := func(s *rnictest.Side, f func(s *rnictest.Side, i int)) {
				for range 2 {
					wg.Go(func() {
						for i := range 30 {
							f(s, i)
						}
					})
				}
			}
			for _, s := range []*rnictest.Side{a, b} {
				run(s, func(s *rnictest.Side, i int) {
					_ = s.QP.PostRecv(rnic.RecvWR{ID: uint64(i)})
					_ = s.QP.PostSend(rnic.SendWR{Op: rnic.OpSend})
				})
				run(s, func(s *rnictest.Side, _ int) {
					s.SendCQ.Poll(make([]rnic.WC, 8))
					s.RecvCQ.Poll(make([]rnic.WC, 8))
					_, _ = s.QP.State(), s.QP.Err()
					_, _ = s.QP.Params()
					_ = s.Device.Counters()
				})
			}
			run(a, func(s *rnictest.Side, i int) {
				_ = s.QP.PostSend(
					rnic.SendWR{Op: rnic.OpWrite, SGL: []rnic.SGE{source.SGE(0, 3000)}, Remote: to.Remote(0)},
					rnic.SendWR{Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(0, 3000)}, Remote: from.Remote(0)},
				)
			})
			// The end comes from several sides at once, in several ways.
			ends := []func(){
				func() { _ = a.QP.Disconnect(w.Context()) },
				func() { _ = b.QP.Disconnect(w.Context()) },
				func() { _ = a.QP.Terminate(w.Context()) },
				func() { b.QP.Abort() },
				func() { _ = b.QP.Close() },
				func() { _ = a.QP.Reset() },
				func() { a.QP.Abort() },
				func() { _ = a.QP.Close() },
			}
			for i := range 1 + seed%len(ends) {
				wg.Go(func() {
					time.Sleep(time.Duration(i*(seed%3)) * time.Microsecond)
					ends[(seed+i)%len(ends)]()
				})
			}
			wg.Wait()
			for _, s := range []*rnictest.Side{a, b} {
				_ = s.QP.Close()
				if h := held(s.Device); h[pd.QueuePairs]+h[pd.InboundReads]+h[pd.OutboundReads]+h[pd.SendWRs]+h[pd.RecvWRs]+h[pd.HalfOpen] != 0 {
					w.Errorf("seed %d: the device holds %v", seed, h)
				}
			}
		})
	}
}
