package rnic_test

import (
	"errors"
	"testing"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
)

// An initiator that finds that it was not its peer that has accepted sends nothing to it,
// and can be connected to another one.
func TestVerifyJudgesWhoHasAccepted(t *testing.T) {
	inWorld(t, func(w *world) {
		a, stranger, b := w.side(), w.side(), w.side()
		a.Send(w, rnic.SendWR{ID: 72, Op: rnic.OpSend})
		b.Recv(w, rnic.RecvWR{ID: 71})
		errStranger := errors.New("a stranger")
		verify := func(p mpa.Params) error {
			if string(p.PrivateData) != "b" {
				return errStranger
			}
			return nil
		}
		errA, _ := w.tryConnect(a, stranger, rnic.ConnParam{Verify: verify}, rnic.ConnParam{PrivateData: []byte("x")})
		if !errors.Is(errA, errStranger) {
			w.Errorf("%v; want what Verify says", errA)
		}
		wantState(w, a.QP, rnic.Idle)
		if got := stranger.Device.Counters().Messages; got != (rdmap.Stats{}) {
			w.Errorf("the stranger was sent %+v", got)
		}
		if errA, errB := w.tryConnect(a, b, rnic.ConnParam{Verify: verify}, rnic.ConnParam{PrivateData: []byte("b")}); errA != nil || errB != nil {
			w.Errorf("the peer: %v, %v", errA, errB)
		}
		wantState(w, a.QP, rnic.RTS)
	})
}
