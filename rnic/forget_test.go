package rnic_test

import (
	"testing"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rnic"
)

// What other queue pairs have completed stays in the queue, in its order.
func TestForgettingAQueuePairLeavesTheCompletionsOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		other := newQP(w, s.Device, s.PD, rnic.QPAttr{SendCQ: s.SendCQ, RecvCQ: s.RecvCQ})
		s.Recv(w, receives(1, 2)...)
		other.Recv(w, receives(3, 3)...)
		s.QP.Abort()
		other.QP.Abort()
		door.Forget(s.QP)
		wantCompletions(w, s.RecvCQ, result{3, flushed}, result{4, flushed}, result{5, flushed})
	})
}

// Only the completions are dropped: the stream continues for its peer.
func TestStreamOfAForgottenQueuePairGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		w.connect(a, b)
		b.Recv(w, receives(1, 3)...)
		door.Forget(b.QP)
		a.Send(w, empties(1, 3, 0)...)
		wantState(w, b.QP, rnic.RTS)
		wantCompletions(w, a.SendCQ, result{1, ok}, result{2, ok}, result{3, ok})
		wantCompletions(w, b.RecvCQ)
		wantEvents(w, b.Device)
	})
}

// A completion that a forgotten queue pair does not leave keeps no place in its
// receive queue.
func TestForgottenCompletionsHoldNoPlaces(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(_ *rnic.Config, attr *rnic.QPAttr) {
			attr.MaxRecvWR = 2
			door.SetPolicyOfQP(attr, policy.Lenient{Departures: policy.HoldReceives})
		})
		s.Recv(w, receives(1, 2)...)
		door.Forget(s.QP)
		s.QP.Abort()
		if err := s.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		s.Recv(w, receives(3, 2)...)
		s.QP.Abort()
		wantCompletions(w, s.RecvCQ, result{3, flushed}, result{4, flushed})
	})
}
