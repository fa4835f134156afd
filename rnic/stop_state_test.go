package rnic_test

import (
	"context"
	"testing"
	"testing/synctest"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A queue pair without a stream can be stopped and resumed too, before its first stream
// and between two of them.
func TestSendsAreStoppedAndResumedWithoutAStream(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		for id := range uint64(2) {
			for range 2 {
				if err := door.StopSending(a.QP); err != nil {
					w.Fatal(err)
				}
				if err := door.ResumeSending(a.QP); err != nil {
					w.Fatal(err)
				}
			}
			b.Recv(w, receives(int(id), 1)...)
			a.Send(w, empties(int(id), 1, 0)...)
			w.connect(a, b)
			rnictest.Want(w, a.SendCQ, id)
			rnictest.Want(w, b.RecvCQ, id)
			if err := a.QP.Disconnect(context.Background()); err != nil {
				w.Fatal(err)
			}
			wantState(w, a.QP, rnic.Idle)
			wantState(w, b.QP, rnic.Idle)
		}
	})
}

// A stream of a stopped queue that is closed gracefully takes the stop with it.
func TestNextStreamIsNotStopped(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		w.connect(a, b)
		if err := door.StopSending(a.QP); err != nil {
			w.Fatal(err)
		}
		if err := b.QP.Disconnect(context.Background()); err != nil {
			w.Fatal(err)
		}
		wantState(w, a.QP, rnic.Idle)
		b.Recv(w, receives(1, 1)...)
		a.Send(w, empties(1, 1, 0)...)
		w.connect(a, b)
		rnictest.Want(w, a.SendCQ, 1)
		rnictest.Want(w, b.RecvCQ, 1)
	})
}

// A queue whose requests are flushed has not drained.
func TestFlushIsNoDrain(t *testing.T) {
	withReader(t, func(r *reader) {
		r.read(1)
		if err := door.StopSending(r.s.QP); err != nil {
			r.Fatal(err)
		}
		r.s.QP.Abort()
		wantCompletions(r, r.s.SendCQ, result{1, flushed})
		if n := drainedEvents(r.s.Device); n != 0 {
			r.Error("the event says that a queue is drained whose stream was aborted")
		}
	})
}

// A queue has not drained while a request of it is carried out that sends nothing.
func TestQueueIsNotDrainedBeforeItsInvalidationHasEnded(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		w.connect(a, b)
		mr := a.Register(w, make([]byte, 8), rnic.LocalWrite)
		release, err := rnic.Hold(mr)
		if err != nil {
			w.Fatal(err)
		}
		go a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpLocalInvalidate, Invalidate: mr.STag()})
		synctest.Wait()
		if err := door.StopSending(a.QP); err != nil {
			w.Fatal(err)
		}
		if n := drainedEvents(a.Device); n != 0 {
			w.Error("it is drained while the memory is still in use")
		}
		release()
		rnictest.Want(w, a.SendCQ, 1)
		synctest.Wait()
		if n := drainedEvents(a.Device); n != 1 {
			w.Errorf("%d events say that it is drained; want 1", n)
		}
	})
}
