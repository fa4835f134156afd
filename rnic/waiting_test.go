package rnic_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/door"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Outstanding counts what no completion has told of yet.
func TestOutstandingCountsWhatHasNotCompleted(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		if n := door.Outstanding(new(rnic.QP)); n != 0 {
			w.Errorf("a queue pair that no verb has made: %d", n)
		}
		a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend, Flags: rnic.FlagUnsignaled})
		a.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpSend})
		if n := door.Outstanding(a.QP); n != 2 {
			w.Errorf("before there is a connection: %d; want 2", n)
		}
		b.Recv(w, receives(1, 2)...)
		w.connect(a, b)
		rnictest.Want(w, b.RecvCQ, 1)
		rnictest.Want(w, b.RecvCQ, 2)
		rnictest.Want(w, a.SendCQ, 2)
		if n := door.Outstanding(a.QP); n != 0 {
			w.Errorf("when all is sent: %d", n)
		}
	})
}

// Unpolled counts messages, not what was flushed, and of its queue pair alone.
func TestUnpolledCountsMessagesThatNobodyHasSeen(t *testing.T) {
	inWorld(t, func(w *world) {
		if n := door.Unpolled(new(rnic.QP)); n != 0 {
			w.Errorf("a queue pair that no verb has made: %d", n)
		}
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		s.Recv(w, receives(1, 3)...)
		h.send(sendSeg("one"[:0]))
		h.closeWrite()
		h.wantEnd(io.EOF)
		other, err := s.PD.CreateQP(rnic.QPAttr{SendCQ: s.SendCQ, RecvCQ: s.RecvCQ})
		if err != nil {
			w.Fatal(err)
		}
		if n := door.Unpolled(other); n != 0 {
			w.Errorf("another queue pair: %d", n)
		}
		if n := door.Unpolled(s.QP); n != 1 {
			w.Errorf("after a message: %d; want 1", n)
		}
		wantCompletions(w, s.RecvCQ, result{1, rnic.StatusSuccess}, result{2, rnic.StatusFlushed}, result{3, rnic.StatusFlushed})
		if n := door.Unpolled(s.QP); n != 0 {
			w.Errorf("when it is polled: %d", n)
		}
	})
}

// Immediate Data are messages too, and what the queue pair sends is none.
func TestUnpolledCountsImmediateDataAndNoSends(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.side()
		b := w.side()
		one := newQP(w, b.Device, b.PD, rnic.QPAttr{SendCQ: b.RecvCQ, RecvCQ: b.RecvCQ})
		w.connect(a, one)
		a.Recv(w, receives(1, 1)...)
		one.Recv(w, receives(1, 3)...)
		a.Send(w, rnic.SendWR{Op: rnic.OpImmediate}, rnic.SendWR{Op: rnic.OpSend}, rnic.SendWR{Op: rnic.OpWriteImmediate})
		for range 3 {
			rnictest.Want(w, a.SendCQ, 0)
		}
		time.Sleep(unattended)
		one.Send(w, rnic.SendWR{Op: rnic.OpSend})
		synctest.Wait()
		if n := door.Unpolled(one.QP); n != 3 {
			w.Errorf("%d; want 3", n)
		}
	})
}

// Waiting tells those who keep a request whether it is worth to continue.
func TestWaitingTellsWhetherARequestCanBeAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		l := w.listen(s)
		if door.Waiting(new(rnic.ConnRequest)) {
			w.Error("a request that no listener has made waits")
		}
		for name, going := range goings {
			h := w.ask(l)
			r := w.request(l)
			if !door.Waiting(r) {
				w.Errorf("%s: not before, though", name)
			}
			going.do(h)
			synctest.Wait()
			if door.Waiting(r) {
				w.Errorf("%s: the request still waits", name)
			}
		}
		w.ask(l)
		r := w.request(l)
		time.Sleep(rnic.DefaultAnswerTimeout - time.Millisecond)
		if !door.Waiting(r) {
			w.Error("it waits no more before its time is over")
		}
		time.Sleep(2 * time.Millisecond)
		if door.Waiting(r) {
			w.Error("it waits when its time is over")
		}
		w.ask(l)
		r = w.request(l)
		if err := r.Close(); err != nil {
			w.Error(err)
		}
		if door.Waiting(r) {
			w.Error("it waits when it is dropped")
		}
	})
}
