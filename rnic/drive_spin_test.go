package rnic_test

import (
	"testing"
	"testing/synctest"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A program whose polls find something now and then has other work to do: it is not
// asked to receive for itself.
func TestWhoFindsCompletionsDoesNotSpin(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		var wcs [1]rnic.WC
		for i := range 20 {
			p.B.Recv(t, receives(i, 1)...)
			p.A.Send(t, empties(i, 1, 0)...)
			synctest.Wait()
			if n := p.B.RecvCQ.Poll(wcs[:]); n != 1 || wcs[0].ID != uint64(i) {
				t.Fatalf("message %d: %d completions, %+v", i, n, wcs[0])
			}
			for range 16 {
				p.B.RecvCQ.Poll(wcs[:])
			}
			wantReceiver(t, p.B.QP, "goroutine")
		}
	}, polled)
}

// A call that has no room for a completion is not one that waits for it.
func TestPollForNothingReceivesNothing(t *testing.T) {
	w := new(witness)
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		for range 100 {
			p.B.RecvCQ.Poll(nil)
		}
		wantReceiver(t, p.B.QP, "goroutine")
		freed(t, p.B.QP, p.B.RecvCQ)
		p.B.Recv(t, receives(1, 1)...)
		p.A.Send(t, empties(1, 1, 0)...)
		p.B.RecvCQ.Poll(nil)
		w.want(t, nil)
		rnictest.Want(t, p.B.RecvCQ, 1)
	}, w.options(polled))
}
