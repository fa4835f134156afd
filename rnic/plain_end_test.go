package rnic_test

import (
	"testing"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Where a goroutine writes for a stream, a request has completed before all of it
// is out. A peer that ends its half meanwhile gets all the same what it was told.
func TestPeerThatEndsItsHalfGetsWhatAPlainStreamHasTaken(t *testing.T) {
	const size = 100_000
	inWorld(t, func(w *world) {
		w.Options = func(int) simnet.Options { return simnet.Options{Buffer: 1000} }
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = plainNetwork{&w.Network} })
		h, connected := w.responder(s, rnic.ConnParam{})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		mr := s.Register(w, make([]byte, size), 0)
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, size)}, Remote: rnic.Remote{STag: 1}})
		rnictest.Want(w, s.SendCQ, 1)
		h.closeWrite()
		for got := 0; got < size; {
			seg, err := h.next()
			if err != nil {
				w.Fatalf("%d octets of %d arrived: %v", got, size, err)
			}
			got += len(seg.Payload)
		}
		h.close()
		wantState(w, s.QP, rnic.Idle)
	})
}
