package rnic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"urnic/internal/door/policy"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A cramped is a side with a completion queue of one entry, that a queue pair
// under test uses for its sends or its receives.
type cramped struct {
	*world
	s     *rnictest.Side
	small *rnic.CQ
	attr  rnic.QPAttr // with the small queue
	role  string      // "sends" or "receives"
}

// withSmallCQ runs f with a small queue in either role.
func withSmallCQ(t *testing.T, f func(c *cramped)) {
	for _, role := range []string{"sends", "receives"} {
		t.Run(role, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				c := &cramped{world: w, s: s, small: labOf(w, s).cq(rnic.CQAttr{Entries: 1}), role: role}
				c.attr = rnic.QPAttr{RecvCQ: c.small}
				if role == "sends" {
					c.attr = rnic.QPAttr{SendCQ: c.small}
				}
				f(c)
			})
		})
	}
}

// qp returns a queue pair that uses the small queue, with two receives posted,
// and, unless it is to connect without, two Sends.
func (c *cramped) qp(sends bool) *rnictest.Side {
	q := newQP(c, c.s.Device, c.s.PD, c.attr)
	q.Recv(c, receives(1, 2)...)
	if sends {
		q.Send(c, empties(1, 2, 0)...)
	}
	return q
}

// spoil makes the small queue overflow by a queue pair of its own.
func (c *cramped) spoil() {
	c.Helper()
	q := newQP(c, c.s.Device, c.s.PD, rnic.QPAttr{SendCQ: c.small, RecvCQ: c.small})
	q.Recv(c, receives(7, 2)...)
	q.QP.Abort()
}

// wantEnded checks that a queue pair has ended because of the overflow, and that
// those of its requests that complete elsewhere are flushed.
func (c *cramped) wantEnded(q *rnictest.Side, sends bool) {
	c.Helper()
	wantState(c, q.QP, rnic.Error)
	if !errors.Is(q.QP.Err(), rnic.ErrOverflow) {
		c.Errorf("the queue pair has ended with %v; want ErrOverflow", q.QP.Err())
	}
	wantCompletions(c, c.small, result{7, flushed})
	switch {
	case c.role == "sends":
		wantCompletions(c, q.RecvCQ, result{1, flushed}, result{2, flushed})
	case sends:
		wantCompletions(c, q.SendCQ, result{1, flushed}, result{2, flushed})
	default:
		wantCompletions(c, q.SendCQ)
	}
}

func TestCQOverflowEndsIdleQueuePairs(t *testing.T) {
	withSmallCQ(t, func(c *cramped) {
		q, other := c.qp(true), c.side()
		c.connect(other, c.s)
		c.spoil()
		c.wantEnded(q, true)
		wantEvents(c, c.s.Device, rnic.EventCQOverflow, rnic.EventCatastrophic)
		wantRefused(c, "post send", q.QP.PostSend(empties(3, 1, 0)...), rnic.ErrOverflow)
		wantRefused(c, "post receive", q.QP.PostRecv(receives(3, 1)...), rnic.ErrOverflow)
		wantState(c, c.s.QP, rnic.RTS)
		c.exchange(other, c.s)
	})
}

func TestQueuePairOnAnOverflowedCQDoesNotConnect(t *testing.T) {
	withSmallCQ(t, func(c *cramped) {
		q, other := c.qp(false), c.side()
		c.spoil()
		c.wantEnded(q, false)
		if err := q.QP.Reset(); err != nil {
			c.Fatal(err)
		}
		wantRefused(c, "connect", q.QP.Connect(context.Background(), "192.0.2.9:1", rnic.ConnParam{}), rnic.ErrOverflow)
		errOther, err := c.tryConnect(other, q)
		wantRefused(c, "accept", err, rnic.ErrOverflow)
		if errOther == nil {
			c.Error("the peer of a queue pair that did not accept is connected")
		}
		wantState(c, q.QP, rnic.Idle)
	})
}

func TestCQOverflowEndsQueuePairsInStartup(t *testing.T) {
	t.Run("while the peer does not answer", func(t *testing.T) {
		withSmallCQ(t, func(c *cramped) {
			q := c.qp(true)
			l, err := c.Listen(context.Background(), ":0")
			if err != nil {
				c.Fatal(err)
			}
			defer l.Close()
			connected := make(chan error, 1)
			go func() { connected <- q.QP.Connect(context.Background(), l.Addr().String(), rnic.ConnParam{}) }()
			synctest.Wait()
			c.spoil()
			wantRefused(c, "connect", <-connected, rnic.ErrOverflow)
			c.wantEnded(q, true)
			wantEvents(c, c.s.Device, rnic.EventCQOverflow, rnic.EventCatastrophic)
		})
	})
	// Full operation has begun for the peer, which learns that there is none.
	t.Run("when the Reply is in", func(t *testing.T) {
		withSmallCQ(t, func(c *cramped) {
			network := &hooks{Network: &c.Network}
			network.call = func(when string) {
				if when == "after reading the Reply" {
					c.spoil()
				}
			}
			c.s = c.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Network = network })
			c.small = labOf(c, c.s).cq(rnic.CQAttr{Entries: 1})
			if c.attr = (rnic.QPAttr{RecvCQ: c.small}); c.role == "sends" {
				c.attr = rnic.QPAttr{SendCQ: c.small}
			}
			q := c.qp(true)
			h, connected := c.responder(q, rnic.ConnParam{})
			h.terminate()
			h.close()
			wantRefused(c, "connect", <-connected, rnic.ErrOverflow)
			c.wantEnded(q, true)
			wantEvents(c, c.s.Device, rnic.EventCQOverflow, rnic.EventCatastrophic)
		})
	})
}

func TestCQOverflowEndsStreamsThatDidNotCauseIt(t *testing.T) {
	withSmallCQ(t, func(c *cramped) {
		q := c.qp(false)
		h := c.peerOf(q, rnic.ConnParam{})
		h.send(writeSeg(rnic.Remote{}, nil)) // else the Responder may not send
		c.spoil()
		h.wantBare(rdmap.CodeStreamCatastrophic)
		h.close()
		c.wantEnded(q, false)
		wantEvents(c, c.s.Device, rnic.EventCQOverflow, rnic.EventCatastrophic)
	})
}

// A graceful close has no room for a Terminate.
func TestCQOverflowResetsAStreamThatIsClosing(t *testing.T) {
	withSmallCQ(t, func(c *cramped) {
		q := c.qp(false)
		h := c.peerOf(q, rnic.ConnParam{})
		h.send(writeSeg(rnic.Remote{}, nil))
		closed := make(chan error, 1)
		go func() { closed <- q.QP.Disconnect(context.Background()) }()
		wantState(c, q.QP, rnic.Closing)
		c.spoil()
		wantRefused(c, "disconnect", <-closed, rnic.ErrOverflow)
		h.close()
		c.wantEnded(q, false)
		wantEvents(c, c.s.Device, rnic.EventCQOverflow, rnic.EventCatastrophic)
	})
}

// A graceful close flushes the receives that are left. If that is what makes
// their queue overflow, the queue pair does not stay idle.
func TestCQThatOverflowsInAGracefulCloseEndsTheQueuePair(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		small := labOf(w, s).cq(rnic.CQAttr{Entries: 1})
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{RecvCQ: small})
		q.Recv(w, receives(1, 2)...)
		h := w.peerOf(q, rnic.ConnParam{})
		h.close()
		wantState(w, q.QP, rnic.Error)
		if !errors.Is(q.QP.Err(), rnic.ErrOverflow) {
			w.Errorf("the queue pair has ended with %v; want ErrOverflow", q.QP.Err())
		}
		wantCompletions(w, small, result{1, flushed})
		events := eventsOf(s.Device)
		slices.Sort(events)
		if want := []rnic.EventType{rnic.EventCloseComplete, rnic.EventCatastrophic, rnic.EventCQOverflow}; !slices.Equal(events, want) {
			w.Errorf("events %v; want %v in some order", events, want)
		}
	})
}

// Who posts the request whose completion finds no place knows when PostSend has
// returned: nothing is carried out behind it.
func TestSendWhoseCompletionFindsNoPlaceIsTheLast(t *testing.T) {
	for name, wr := range map[string]rnic.SendWR{
		"Send":             {Op: rnic.OpSend},
		"Local Invalidate": {Op: rnic.OpLocalInvalidate},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				small := labOf(w, s).cq(rnic.CQAttr{Entries: 1})
				q := newQP(w, s.Device, s.PD, rnic.QPAttr{SendCQ: small})
				h, connected := w.responder(q, rnic.ConnParam{})
				if err := <-connected; err != nil {
					w.Fatal(err)
				}
				q.Send(w, empties(1, 1, 0)...)
				h.want(rdmap.OpSend)
				last := s.Register(w, make([]byte, 8), rnic.LocalWrite)
				wr.ID, wr.Invalidate = 2, last.STag()
				q.Send(w, wr)
				wantRefused(w, "post send", q.QP.PostSend(empties(3, 1, 0)...), rnic.ErrOverflow)
				if wr.Op == rnic.OpSend {
					h.want(rdmap.OpSend)
				}
				h.wantBare(rdmap.CodeStreamCatastrophic)
				h.close()
				wantState(w, q.QP, rnic.Error)
				wantCompletions(w, small, result{1, ok})
				events := eventsOf(s.Device)
				slices.Sort(events)
				if want := []rnic.EventType{rnic.EventCatastrophic, rnic.EventCQOverflow}; !slices.Equal(events, want) {
					w.Errorf("events %v; want %v in some order", events, want)
				}
			})
		})
	}
}

// Of messages that arrive together, the one whose completion finds no place is the
// last that is placed.
func TestMessageWhoseCompletionFindsNoPlaceIsTheLast(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared %v", shared), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const messages = 500
				s := w.side()
				attr := rnic.QPAttr{RecvCQ: labOf(w, s).cq(rnic.CQAttr{Entries: 1}), MaxRecvWR: messages}
				mem := make([]byte, messages)
				mr := s.Register(w, mem, rnic.LocalWrite)
				wrs := receives(1, messages)
				for i := range wrs {
					wrs[i].SGL = []rnic.SGE{mr.SGE(i, 1)}
				}
				if shared {
					attr.SRQ, attr.MaxRecvWR = labOf(w, s).srq(s.PD, rnic.SRQAttr{MaxWR: messages}), 0
					fill(w, attr.SRQ, wrs...)
				}
				q := newQP(w, s.Device, s.PD, attr)
				if !shared {
					q.Recv(w, wrs...)
				}
				h := w.peerOf(q, rnic.ConnParam{})
				var all []byte
				for range messages {
					all = append(all, h.fpdu(sendSeg("x"))...)
				}
				h.write(all)
				h.terminate()
				h.close()
				wantState(w, q.QP, rnic.Error)
				if n := bytes.Count(mem, []byte("x")); n != 2 || string(mem[:2]) != "xx" {
					w.Errorf("%d messages were placed; want 2", n)
				}
				if shared && attr.SRQ.Len() != messages-2 {
					w.Errorf("%d receives are left in the SRQ; want %d", attr.SRQ.Len(), messages-2)
				}
				wantCompletions(w, q.RecvCQ, result{1, ok})
			})
		})
	}
}

// With HoldReceives, a receive whose completion finds no place in the completion queue
// holds none in the receive queue.
func TestReceiveThatIsNotCompletedHoldsNoPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		small := labOf(w, s).cq(rnic.CQAttr{Entries: 1})
		q := newQP(w, s.Device, s.PD, departing(rnic.QPAttr{RecvCQ: small, MaxRecvWR: 3}, policy.HoldReceives))
		q.Recv(w, receives(1, 3)...)
		q.QP.Abort()
		wantState(w, q.QP, rnic.Error)
		if err := q.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		q.Recv(w, receives(4, 2)...)
		wantRefused(w, "while a completion is not polled", q.QP.PostRecv(receives(6, 1)...), rnic.ErrQueueFull)
		wantCompletions(w, small, result{1, flushed})
		q.Recv(w, receives(6, 1)...)
		wantRefused(w, "one more", q.QP.PostRecv(receives(7, 1)...), rnic.ErrQueueFull)
	})
}

// With HoldSends, a place in the send queue is free when its completion is polled:
// the completion queue of that size never overflows.
func TestHeldSendsDoNotOverflowTheirCQ(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		small := labOf(w, a).cq(rnic.CQAttr{Entries: 4})
		from := newQP(w, a.Device, a.PD, departing(rnic.QPAttr{SendCQ: small, MaxSendWR: 4}, policy.HoldSends))
		to := newQP(w, b.Device, b.PD, rnic.QPAttr{})
		to.Recv(w, receives(1, 9)...)
		w.connect(from, to, rnic.ConnParam{}, rnic.ConnParam{})
		from.Send(w, empties(1, 4, 0)...)
		synctest.Wait() // all have completed, and nobody has polled
		if err := from.QP.PostSend(empties(5, 1, 0)[0]); !errors.Is(err, rnic.ErrQueueFull) {
			t.Fatalf("a fifth Send: %v; want %v", err, rnic.ErrQueueFull)
		}
		rnictest.Want(w, small, 1)
		from.Send(w, empties(5, 1, 0)...)
		for id := range uint64(4) {
			rnictest.Want(w, small, 2+id)
		}
	})
}

// Completions that have found no place hold none in the receive queue either.
func TestLostCompletionsHoldNoPlaces(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		small := labOf(w, s).cq(rnic.CQAttr{Entries: 1})
		q := newQP(w, s.Device, s.PD, departing(rnic.QPAttr{RecvCQ: small, MaxRecvWR: 3}, policy.HoldReceives))
		q.Recv(w, receives(1, 3)...)
		q.QP.Abort()
		wantCompletions(w, small, result{1, flushed})
		if err := q.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		q.Recv(w, receives(4, 3)...)
	})
}

// A completion that finds no place holds none in the send queue.
func TestCompletionThatIsLostHoldsNoPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		small := labOf(w, s).cq(rnic.CQAttr{Entries: 2})
		attr := departing(rnic.QPAttr{SendCQ: small, MaxSendWR: 4}, policy.HoldSends)
		other, q := newQP(w, s.Device, s.PD, attr), newQP(w, s.Device, s.PD, attr)
		other.Send(w, empties(1, 2, 0)...)
		other.QP.Abort() // fills the queue
		q.Send(w, empties(3, 4, 0)...)
		q.QP.Abort()
		wantCompletions(w, small, result{1, flushed}, result{2, flushed})
		if err := q.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		if err := q.QP.PostSend(empties(7, 4, 0)...); err != nil {
			w.Errorf("nothing is queued or waits to be polled: %v", err)
		}
	})
}
