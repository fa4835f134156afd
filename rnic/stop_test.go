package rnic_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// drainedEvents fetches all events, and counts those that tell of a drained send queue.
func drainedEvents(d *rnic.Device) (n int) {
	for {
		e, some := d.PollEvent()
		if !some {
			return n
		}
		if e.Type == door.EventSQDrained {
			n++
		}
	}
}

// A send queue that is stopped keeps what is posted until it is resumed.
func TestStoppedSendsWait(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		b.Recv(w, receives(1, 4)...)
		w.connect(a, b, rnic.ConnParam{}, rnic.ConnParam{})
		if err := door.StopSending(a.QP); err != nil {
			t.Fatal(err)
		}
		if n := drainedEvents(a.Device); n != 1 {
			t.Errorf("%d events say that an empty queue is drained; want 1", n)
		}
		a.Send(w, empties(1, 2, 0)...)
		synctest.Wait()
		var wcs [4]rnic.WC
		if n := a.SendCQ.Poll(wcs[:]) + b.RecvCQ.Poll(wcs[:]); n != 0 {
			t.Errorf("%d completions while the queue is stopped", n)
		}
		if err := door.ResumeSending(a.QP); err != nil {
			t.Fatal(err)
		}
		for id := range uint64(2) {
			rnictest.Want(w, a.SendCQ, 1+id)
			rnictest.Want(w, b.RecvCQ, 1+id)
		}
		if n := drainedEvents(a.Device); n != 0 {
			t.Errorf("%d more events", n)
		}
	})
}

// What was begun before it was stopped completes first.
func TestStoppedQueueDrains(t *testing.T) {
	inWorld(t, func(w *world) {
		late := simnet.Faults{Latency: time.Second} // no answer comes before the test waits for one
		w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late} }
		a, b := w.side(), w.side()
		mr := b.Register(w, make([]byte, 8), rnic.RemoteRead)
		sink := a.Register(w, make([]byte, 8), rnic.LocalWrite)
		b.Recv(w, receives(1, 1)...)
		w.connect(a, b, rnic.ConnParam{}, rnic.ConnParam{})
		a.Send(w, rnic.SendWR{
			ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{{Addr: sink.Base(), Length: 8, LKey: sink.STag()}},
			Remote: rnic.Remote{STag: mr.STag(), TO: mr.Base()},
		})
		if err := door.StopSending(a.QP); err != nil { // the peer has not answered yet
			t.Fatal(err)
		}
		if n := drainedEvents(a.Device); n != 0 {
			t.Error("it is drained while a Read is outstanding")
		}
		a.Send(w, empties(2, 1, 0)...)
		rnictest.Want(w, a.SendCQ, 1)
		synctest.Wait()
		if n := drainedEvents(a.Device); n != 1 {
			t.Errorf("%d events say that it is drained; want 1", n)
		}
		// An end of the stream flushes what waits.
		a.QP.Abort()
		synctest.Wait()
		var wcs [2]rnic.WC
		if n := a.SendCQ.Poll(wcs[:]); n != 1 || wcs[0].ID != 2 || wcs[0].Status != rnic.StatusFlushed {
			t.Errorf("%d completions: %+v", n, wcs[0])
		}
		if err := door.StopSending(a.QP); !errors.As(err, new(*rnic.StateError)) {
			t.Errorf("stopped without a stream: %v", err)
		}
		if n := drainedEvents(a.Device); n != 0 {
			t.Errorf("%d more events", n)
		}
	})
}

// PostSendAll posts all or none, whatever is wrong with which request.
func TestPostSendAllPostsNoneIfOneIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(func(_ *rnic.Config, attr *rnic.QPAttr) { attr.MaxSendWR = 4 }), w.side()
		b.Recv(w, receives(1, 9)...)
		w.connect(a, b, rnic.ConnParam{}, rnic.ConnParam{})
		bad := empties(1, 3, 0)
		bad[2].Flags = 0x80
		var at *rnic.WRError
		if err := a.QP.PostSendAll(bad...); !errors.As(err, &at) || at.Index != 2 {
			t.Errorf("a request with unknown flags: %v", err)
		}
		if err := a.QP.PostSendAll(empties(1, 5, 0)...); !errors.Is(err, rnic.ErrQueueFull) || !errors.As(err, &at) || at.Index != 4 {
			t.Errorf("five requests for four places: %v", err)
		}
		synctest.Wait()
		var wcs [8]rnic.WC
		if n := b.RecvCQ.Poll(wcs[:]); n != 0 {
			t.Errorf("%d requests were posted", n)
		}
		if err := a.QP.PostSendAll(empties(1, 4, 0)...); err != nil {
			t.Fatal(err)
		}
		for id := range uint64(4) {
			rnictest.Want(w, a.SendCQ, 1+id)
		}
	})
}

// With HoldReceives, a place in the receive queue is free when its completion is polled.
func TestHeldReceivesDoNotOverflowTheirCQ(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side(func(_ *rnic.Config, attr *rnic.QPAttr) {
			attr.MaxRecvWR = 2
			door.SetPolicyOfQP(attr, policy.Lenient{Departures: policy.HoldReceives})
		})
		b.Recv(w, receives(1, 2)...)
		w.connect(a, b, rnic.ConnParam{}, rnic.ConnParam{})
		a.Send(w, empties(1, 2, 0)...)
		synctest.Wait() // both have completed, and nobody has polled
		if err := b.QP.PostRecv(receives(3, 1)...); !errors.Is(err, rnic.ErrQueueFull) {
			t.Errorf("a third receive: %v; want %v", err, rnic.ErrQueueFull)
		}
		rnictest.Want(w, b.RecvCQ, 1)
		if err := b.QP.PostRecv(receives(3, 1)...); err != nil {
			t.Error(err)
		}
		if err := b.QP.PostRecv(receives(4, 1)...); !errors.Is(err, rnic.ErrQueueFull) {
			t.Errorf("a fourth receive: %v; want %v", err, rnic.ErrQueueFull)
		}
		b.QP.Abort() // what is flushed holds its place too
		synctest.Wait()
		rnictest.Want(w, b.RecvCQ, 2)
	})
}
