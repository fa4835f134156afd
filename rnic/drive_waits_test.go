package rnic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// withoutReceive runs f with a program that receives for itself, and a message for which it has
// posted no receive.
func withoutReceive(t *testing.T, recvWait time.Duration, f func(t *testing.T, b *rnic.QP, w *waitingProgram)) {
	t.Helper()
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		l := labOf(t, p.B)
		cq := l.cq(rnic.CQAttr{})
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), l.qp(p.B.PD, rnic.QPAttr{SendCQ: cq, RecvCQ: cq, RecvWait: recvWait})
		p.Link(t, a, b)
		w := drives(t.Context(), t, b, cq)
		postSend(t, a, empties(1, 1, 0)...)
		w.stillWaits(t)
		f(t, b, w)
	}, polled)
}

// A message that waits for a receive continues with one, whoever has received
// it.
func TestMessageThatADriverHoldsBackGetsItsReceive(t *testing.T) {
	withoutReceive(t, time.Hour, func(t *testing.T, b *rnic.QP, w *waitingProgram) {
		if err := b.PostRecv(receives(4, 1)...); err != nil {
			t.Fatal(err)
		}
		w.want(t, 4)
	})
}

// It ends the stream in time, too, though the program only waits.
func TestMessageThatADriverHoldsBackEndsTheStreamInTime(t *testing.T) {
	withoutReceive(t, time.Second, func(t *testing.T, b *rnic.QP, _ *waitingProgram) {
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if got := b.State(); got != rnic.RTS {
			t.Errorf("state %v before its time", got)
		}
		time.Sleep(2 * time.Millisecond)
		wantState(t, b, rnic.Error)
	})
}

// A hookedContext calls a function whenever it is asked for its channel.
type hookedContext struct {
	context.Context
	hook func()
}

func (h hookedContext) Done() <-chan struct{} {
	h.hook()
	return h.Context.Done()
}

// The completion that wakes a program whose context ends at that moment goes to another
// one that waits, though a queue is armed and the goroutine receives again.
func TestWhoGivesUpLeavesItsCompletionToOthers(t *testing.T) {
	rnictest.Run(t, func(t *testing.T, p *rnictest.Pair) {
		l := labOf(t, p.B)
		cq := l.cq(rnic.CQAttr{})
		a, b := labOf(t, p.A).qp(p.A.PD, rnic.QPAttr{}), l.qpOn(p.B.PD, cq)
		idle := l.qpOn(p.B.PD, cq)
		if err := idle.PostRecv(receives(7, 1)...); err != nil {
			t.Fatal(err)
		}
		p.Link(t, a, b)
		freed(t, b, cq)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		var other *waitingProgram
		_, err := cq.Wait(hookedContext{over, func() {
			if other != nil {
				return
			}
			other = waits(t.Context(), cq)
			synctest.Wait()
			arm(t, cq, rnic.NextCompletion)
			idle.Abort()
		}}, make([]rnic.WC, 1))
		wantRefused(t, "wait", err, context.Canceled)
		if !other.isDone() || other.wc.ID != 7 {
			t.Errorf("the other program has got %+v, %v", other.wc, other.err)
		}
	}, polled)
}
