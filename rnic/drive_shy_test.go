package rnic_test

import (
	"context"
	"testing"
	"testing/synctest"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// transmitting runs f with a side whose transmitter waits for a peer that does not read: a
// Write is outstanding, whose completion is that of request 7.
func transmitting(t *testing.T, f func(t *testing.T, w *world, a *rnictest.Side, h *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{TB: t}
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000, Polls: true} }
		a := w.side()
		h := w.peerOf(a, rnic.ConnParam{})
		h.send(writeSeg(rnic.Remote{}, nil)) // else the Responder may not send
		src := a.Register(w, make([]byte, 5000), 0)
		a.Send(w, rnic.SendWR{ID: 7, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 5000)}})
		synctest.Wait()
		if got := rnic.Transmitter(a.QP); got != "somebody" {
			w.Fatalf("%s transmits; want the goroutine", got)
		}
		f(t, w, a, h)
	})
}

// Who waits for what somebody else transmits would be interrupted by that each time. It
// leaves the receiving to the goroutine, for some waits.
func TestWhoWaitsForATransmitterDoesNotReceive(t *testing.T) {
	transmitting(t, func(t *testing.T, w *world, a *rnictest.Side, h *peer) {
		b := waits(t.Context(), a.SendCQ)
		wantReceiver(t, a.QP, "goroutine")
		for range 5 {
			if _, err := h.conn.Read(make([]byte, 1000)); err != nil {
				w.Fatal(err)
			}
			synctest.Wait()
		}
		b.want(t, 7)
		wait := func(want string) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			c := waits(ctx, a.SendCQ)
			wantReceiver(t, a.QP, want)
			cancel()
			<-c.done
		}
		for range 10 {
			wait("goroutine")
		}
		for range 100 { // it tries again at last
			ctx, cancel := context.WithCancel(t.Context())
			c := waits(ctx, a.SendCQ)
			synctest.Wait()
			cancel()
			<-c.done
		}
		wait("driver")
	})
}

// The role that a poll has left free goes back to the goroutine as the program waits.
func TestWhoWaitsForATransmitterGivesTheRoleBack(t *testing.T) {
	transmitting(t, func(t *testing.T, _ *world, a *rnictest.Side, _ *peer) {
		freed(t, a.QP, a.SendCQ)
		ctx, cancel := context.WithCancel(t.Context())
		b := waits(ctx, a.SendCQ)
		wantReceiver(t, a.QP, "goroutine")
		cancel()
		<-b.done
	})
}
