package rnic_test

import (
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A parked transmitter has more to send than the socket takes, and waits for its program,
// which polls, to come back.
func parked(t *testing.T, f func(w *world, a *rnictest.Side)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{TB: t}
		faults := simnet.Faults{Latency: time.Microsecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: faults, BA: faults, Buffer: 1000, Polls: true} }
		a, b := w.side(), w.side()
		w.connect(a, b)
		dst := b.Register(w, make([]byte, 1500), rnic.LocalWrite|rnic.RemoteWrite)
		src := a.Register(w, make([]byte, 1500), 0)
		freed(t, a.QP, a.SendCQ)
		spin(a.SendCQ)
		a.Send(w, rnic.SendWR{ID: 7, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 1500)}, Remote: dst.Remote(0)})
		synctest.Wait()
		if got := rnic.Transmitter(a.QP); got != "a program" {
			w.Fatalf("%s transmits; want a program that polls", got)
		}
		f(w, a)
	})
}

// The poll that sends the last of a request returns its completion.
func TestPollReturnsWhatItHasTransmitted(t *testing.T) {
	parked(t, func(w *world, a *rnictest.Side) {
		time.Sleep(10 * time.Microsecond) // there is room again
		synctest.Wait()
		var wcs [1]rnic.WC
		if n := a.SendCQ.Poll(wcs[:]); n != 1 || wcs[0].ID != 7 || wcs[0].Err() != nil {
			w.Errorf("%d completions, %+v", n, wcs[0])
		}
	})
}

// A program that polls no more, and waits for what it has left, gets it.
func TestWhoWaitsAfterPollingLeavesTheRestToAGoroutine(t *testing.T) {
	parked(t, func(w *world, a *rnictest.Side) {
		start := time.Now()
		rnictest.Want(w, a.SendCQ, 7)
		if d := time.Since(start); d > 10*time.Microsecond {
			w.Errorf("it waited for %v", d)
		}
	})
}

// The program may arm the queue while its poll transmits, in a trace hook say: the role
// goes back to the goroutine, and nothing else happens.
func TestQueueIsArmedWhileItsPollTransmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{TB: t}
		faults := simnet.Faults{Latency: time.Microsecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: faults, BA: faults, Buffer: 1000, Polls: true} }
		var hook func()
		a, b := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) {
			cfg.Trace = func(m rnic.Trace) {
				if f := hook; m.Sent && f != nil && caller() == "Poll" {
					hook = nil
					f()
				}
			}
		}), w.side()
		w.connect(a, b)
		dst := b.Register(w, make([]byte, 100_000), rnic.LocalWrite|rnic.RemoteWrite)
		src := a.Register(w, make([]byte, 100_000), 0)
		freed(t, a.QP, a.SendCQ)
		spin(a.SendCQ)
		for id := range uint64(5) {
			a.Send(w, rnic.SendWR{ID: id, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 100_000)}, Remote: dst.Remote(0)})
		}
		armed := false
		hook = func() {
			armed = true
			arm(t, a.RecvCQ, rnic.NextCompletion)
		}
		var wcs [1]rnic.WC
		for id := uint64(0); id < 5; time.Sleep(10 * time.Microsecond) {
			synctest.Wait()
			if a.SendCQ.Poll(wcs[:]) == 0 {
				continue
			}
			if wcs[0].ID != id || wcs[0].Err() != nil {
				t.Fatalf("request %d: %v; want %d", wcs[0].ID, wcs[0].Err(), id)
			}
			id++
		}
		if !armed {
			t.Error("no poll has transmitted a message")
		}
		wantState(t, a.QP, rnic.RTS)
		wantReceiver(t, a.QP, "goroutine")
	})
}
