package rnic_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// "MUST be able to detect if the Remote Peer is attempting to consume more than
// its fair share of resources": RFC 5040 §8.1.2 rule 8. A peer that breaks the
// order of messages loses its own stream, and an SRQ loses no more receives than
// for messages that the peer has begun in their turn.
func TestPeerOutOfTurnTakesNothingFromAnSRQ(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(h *peer, posted uint32)
		code  ddp.Code
		whole int // messages that have arrived
		begun int // and one that has not ended
		perQP int
	}{
		{name: "the last MSN there is", do: func(h *peer, n uint32) { h.send(sendSeg(""), withMSN(n)) }, code: ddp.CodeMSNRange},
		{name: "the next MSN but one", do: func(h *peer, _ uint32) { h.send(sendSeg("x"), withMSN(2)) }, code: ddp.CodeMSNRange},
		{name: "behind messages in their turn", do: func(h *peer, n uint32) {
			h.send(sendSeg("1"))
			h.send(sendSeg("2"))
			h.send(sendSeg("x"), withMSN(n))
		}, code: ddp.CodeMSNRange, whole: 2},
		{name: "inside a message, the next one", do: func(h *peer, _ uint32) {
			h.send(sendSeg("1"))
			h.send(sendSeg("1"), notLast)
			h.send(sendSeg("2"), notLast, withMSN(3))
		}, code: ddp.CodeMSNRange, whole: 1, begun: 1},
		{name: "inside a message, the last one", do: func(h *peer, n uint32) {
			h.send(sendSeg("1"), notLast)
			h.send(sendSeg("2"), notLast, withMSN(n))
		}, code: ddp.CodeMSNRange, begun: 1},
		{name: "the beginnings of all messages", do: func(h *peer, n uint32) {
			var b []byte
			for msn := range n {
				b = append(b, h.fpdu(sendSeg("x"), notLast, withMSN(msn+1))...)
			}
			h.write(b)
		}, code: ddp.CodeMSNRange, begun: 1},
		{name: "Immediate Data", do: func(h *peer, n uint32) {
			h.send(untaggedSeg(rdmap.OpImmediate, make([]byte, rdmap.ImmediateLen)), withMSN(n))
		}, code: ddp.CodeMSNRange},
		{name: "Immediate Data that are too long", do: func(h *peer, n uint32) {
			h.send(untaggedSeg(rdmap.OpImmediate, make([]byte, rdmap.ImmediateLen+1)), withMSN(n))
		}, code: ddp.CodeMessageTooLong},
		// The checks keep their order: RFC 5041 §7.1.
		{name: "one more than there are", do: func(h *peer, n uint32) { h.send(sendSeg(""), withMSN(n+1)) }, code: ddp.CodeMSNNoBuffer},
		{name: "one more, inside a message", do: func(h *peer, n uint32) {
			h.send(sendSeg("1"), notLast)
			h.send(sendSeg("x"), withMSN(n+1))
		}, code: ddp.CodeMSNNoBuffer, begun: 1},
		{name: "far away", do: func(h *peer, _ uint32) { h.send(sendSeg(""), withMSN(1<<31)) }, code: ddp.CodeMSNNoBuffer},
		{name: "with an MO outside", do: func(h *peer, n uint32) { h.send(sendSeg("x"), withMSN(n), withMO(11)) }, code: ddp.CodeInvalidMO},
		{name: "too long", do: func(h *peer, n uint32) { h.send(sendSeg("0123456789x"), withMSN(n)) }, code: ddp.CodeMessageTooLong},
		// And the share says how many there are for the stream.
		{name: "within the share", do: func(h *peer, _ uint32) { h.send(sendSeg(""), withMSN(3)) }, code: ddp.CodeMSNRange, perQP: 3},
		{name: "beyond the share", do: func(h *peer, _ uint32) { h.send(sendSeg(""), withMSN(4)) }, code: ddp.CodeMSNNoBuffer, perQP: 3},
		{name: "within the share, of which one is taken", do: func(h *peer, _ uint32) {
			h.send(sendSeg(""), notLast)
			h.send(sendSeg(""), withMSN(3))
		}, code: ddp.CodeMSNRange, begun: 1, perQP: 3},
		{name: "beyond the share, of which one is taken", do: func(h *peer, _ uint32) {
			h.send(sendSeg(""))
			h.send(sendSeg(""), withMSN(4))
		}, code: ddp.CodeMSNNoBuffer, whole: 1, perQP: 3},
	} {
		for _, posted := range []int{100, 1000} {
			t.Run(fmt.Sprintf("%s, %d receives", c.name, posted), func(t *testing.T) {
				inWorld(t, func(w *world) {
					s, friend := w.side(), w.side()
					srq := labOf(w, s).srq(s.PD, rnic.SRQAttr{MaxWR: posted, Limit: posted - c.whole - c.begun, PerQP: c.perQP})
					mr := s.Register(w, make([]byte, 10), rnic.LocalWrite)
					for id := range uint64(posted) {
						fill(w, srq, rnic.RecvWR{ID: id, SGL: []rnic.SGE{mr.SGE(0, 10)}})
					}
					good := newQP(w, s.Device, s.PD, rnic.QPAttr{SRQ: srq})
					evil := newQP(w, s.Device, s.PD, rnic.QPAttr{SRQ: srq})
					w.connect(friend, good)
					h := w.peerOf(evil, rnic.ConnParam{})

					c.do(h, uint32(posted))
					h.wantTerminate(ddpCode(c.code))
					h.close()
					wantEvents(w, s.Device, rnic.EventRemoteOperation) // and not that the SRQ runs dry
					wantState(w, evil.QP, rnic.Error)
					taken := c.whole + c.begun
					if n := srq.Len(); n != posted-taken {
						w.Errorf("%d receives are left; want %d", n, posted-taken)
					}
					want := make([]result, 0, taken)
					for i := range taken {
						want = append(want, result{uint64(i), ok})
						if i >= c.whole {
							want[i].status = flushed
						}
					}
					wantCompletions(w, evil.RecvCQ, want...)

					n := min(posted-taken, rnic.DefaultWR)
					if c.perQP > 0 {
						n = c.perQP
					}
					friend.Send(w, empties(0, n, 0)...)
					synctest.Wait()
					if got := len(drain(good.RecvCQ)); got != n {
						w.Errorf("%d messages of %d arrived on the other stream: %v", got, n, good.QP.Err())
					}
					wantState(w, good.QP, rnic.RTS)
				})
			})
		}
	}
}

// A stream holds one receive for the message in turn, however many segments it
// comes in, and gets the next one when it has ended.
func TestMessageInPiecesTakesOneReceiveOfAnSRQ(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		srq := labOf(w, s).srq(s.PD, rnic.SRQAttr{})
		buf := make([]byte, 20)
		mr := s.Register(w, buf, rnic.LocalWrite)
		for id := range uint64(2) {
			fill(w, srq, rnic.RecvWR{ID: id, SGL: []rnic.SGE{mr.SGE(10*int(id), 10)}})
		}
		q := newQP(w, s.Device, s.PD, rnic.QPAttr{SRQ: srq})
		h := w.peerOf(q, rnic.ConnParam{})
		for i, msg := range []string{"abc", "defg"} {
			for j := range msg {
				h.send(sendSeg(msg[j:j+1]), withMSN(uint32(i+1)), withMO(uint32(j)), func(seg *ddp.Segment) {
					if j+1 < len(msg) {
						notLast(seg)
					}
				})
				if n := srq.Len(); n != 1-i {
					w.Fatalf("%d receives are left inside message %d; want %d", n, i+1, 1-i)
				}
			}
			if wc := rnictest.Want(w, q.RecvCQ, uint64(i)); int(wc.ByteLen) != len(msg) || string(buf[10*i:10*i+len(msg)]) != msg {
				w.Errorf("message %d: %d octets, %q", i+1, wc.ByteLen, buf)
			}
		}
	})
}
