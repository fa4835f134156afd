package rnic_test

import (
	"testing"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// resets are ways to a queue pair that Reset makes as new: from Idle and from Error.
var resets = map[string]func(w *world, s *rnictest.Side){
	"in Idle":  func(*world, *rnictest.Side) {},
	"in Error": func(_ *world, s *rnictest.Side) { s.QP.Abort() },
	"after a stream": func(w *world, s *rnictest.Side) {
		h := w.peerOf(s, rnic.ConnParam{})
		h.reset()
		wantState(w, s.QP, rnic.Error)
	},
}

func TestResetResumesSending(t *testing.T) {
	for name, end := range resets {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a, b := w.side(), w.side()
				if err := door.StopSending(a.QP); err != nil {
					w.Fatal(err)
				}
				end(w, a)
				if err := a.QP.Reset(); err != nil {
					w.Fatal(err)
				}
				a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend})
				b.Recv(w, rnic.RecvWR{ID: 2})
				w.connect(a, b)
				wantCompletions(w, a.SendCQ, result{1, ok})
				wantCompletions(w, b.RecvCQ, result{2, ok})
			})
		})
	}
}

func TestResetMakesAForgottenQueuePairCompleteAgain(t *testing.T) {
	for name, end := range resets {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				end(w, s)
				door.Forget(s.QP)
				if err := s.QP.Reset(); err != nil {
					w.Fatal(err)
				}
				s.Recv(w, rnic.RecvWR{ID: 1})
				s.QP.Abort()
				wantCompletions(w, s.RecvCQ, result{1, flushed})
			})
		})
	}
}
