package rnic_test

import (
	"bytes"
	"testing"

	"urnic/internal/door"
	"urnic/internal/door/policy"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func pairs(_ string, a *rnic.QPAttr) {
	door.SetPolicyOfQP(a, policy.Lenient{Departures: policy.PairImmediate})
}

// Sends with immediate data of all kinds between other messages complete one
// receive each.
func TestSendWithImmediateCompletesOneReceive(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		buf := make([]byte, 600)
		dst := p.B.Register(t, buf, rnic.LocalWrite|rnic.RemoteWrite)
		data := pattern(100, 3)
		src := p.A.Register(t, data, 0)
		for i := range 6 {
			p.B.Recv(t, rnic.RecvWR{ID: uint64(i), SGL: []rnic.SGE{dst.SGE(100*i, 100)}})
		}
		imm := [8]byte{1, 2, 3, 4, 9, 9, 9, 9}
		sgl := []rnic.SGE{src.SGE(0, 100)}
		p.A.Send(t,
			rnic.SendWR{ID: 0, Op: door.OpSendImmediate, SGL: sgl, Immediate: imm},
			rnic.SendWR{ID: 1, Op: rnic.OpSend, SGL: sgl},
			rnic.SendWR{ID: 2, Op: door.OpSendImmediate, Flags: rnic.FlagInline | rnic.FlagSolicited, Inline: data[:7], Immediate: imm},
			rnic.SendWR{ID: 3, Op: door.OpSendImmediate},
			rnic.SendWR{ID: 4, Op: rnic.OpWriteImmediate, Immediate: [8]byte{5}},
			rnic.SendWR{ID: 5, Op: rnic.OpImmediate, Immediate: [8]byte{6}, Flags: rnic.FlagUnsignaled},
		)
		for i, want := range []rnic.WC{
			rnic.WithPaired(rnic.WC{Op: rnic.OpRecv, ByteLen: 100, Immediate: [8]byte{1, 2, 3, 4}}),
			{Op: rnic.OpRecv, ByteLen: 100},
			rnic.WithPaired(rnic.WC{Op: rnic.OpRecv, ByteLen: 7, Solicited: true, Immediate: [8]byte{1, 2, 3, 4}}),
			rnic.WithPaired(rnic.WC{Op: rnic.OpRecv}),
			{Op: rnic.OpRecvImmediate, ByteLen: 8, Immediate: [8]byte{5}},
			{Op: rnic.OpRecvImmediate, ByteLen: 8, Immediate: [8]byte{6}},
		} {
			want.ID, want.QPN = uint64(i), p.B.QP.Num()
			if wc := rnictest.Next(t, p.B.RecvCQ); wc != want {
				t.Errorf("receive %d: %+v; want %+v", i, wc, want)
			}
			if !bytes.Equal(buf[100*i:100*i+int(want.ByteLen)], data[:want.ByteLen]) && want.Op == rnic.OpRecv {
				t.Errorf("receive %d: its data differ", i)
			}
		}
		for i := range uint64(5) {
			if wc := rnictest.Want(t, p.A.SendCQ, i); i == 0 && (wc.Op != door.OpSendImmediate || wc.ByteLen != 100) {
				t.Errorf("%+v", wc)
			}
		}
	}, rnictest.Options{QP: pairs})
}

// A peer that knows no such pairs completes two receives.
func TestSendWithImmediateToAPeerThatDoesNotPair(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, receives(1, 2)...)
		p.A.Send(t, rnic.SendWR{ID: 1, Op: door.OpSendImmediate, Immediate: [8]byte{7}})
		if wc := rnictest.Want(t, p.B.RecvCQ, 1); wc.Op != rnic.OpRecvImmediate || string(wc.Immediate[:]) != "\x07\x00\x00\x00"+policy.PairMark {
			t.Errorf("%+v", wc)
		}
		if wc := rnictest.Want(t, p.B.RecvCQ, 2); wc.Op != rnic.OpRecv || door.Paired(&wc) {
			t.Errorf("%+v", wc)
		}
	})
}

// The receive that immediate data have been placed into stays in the SRQ's order,
// and is flushed if no Send follows.
func TestSendWithImmediateOverAnSRQ(t *testing.T) {
	inWorld(t, func(w *world) {
		a, host := w.side(), w.side()
		srq, err := host.PD.CreateSRQ(rnic.SRQAttr{})
		if err != nil {
			w.Fatal(err)
		}
		b := newQP(w, host.Device, host.PD, departing(rnic.QPAttr{SRQ: srq}, policy.PairImmediate))
		if err := srq.PostRecv(receives(1, 3)...); err != nil {
			w.Fatal(err)
		}
		w.connect(a, b)
		mark := [8]byte{8}
		copy(mark[4:], policy.PairMark)
		a.Send(w, rnic.SendWR{Op: door.OpSendImmediate, Immediate: [8]byte{7}}, rnic.SendWR{Op: rnic.OpSend}, rnic.SendWR{Op: rnic.OpImmediate, Immediate: mark})
		if wc := rnictest.Want(w, b.RecvCQ, 1); !door.Paired(&wc) || wc.Immediate[0] != 7 {
			w.Errorf("%+v", wc)
		}
		if wc := rnictest.Want(w, b.RecvCQ, 2); door.Paired(&wc) {
			w.Errorf("%+v", wc)
		}
		for srq.Len() > 0 { // the last one is begun
			drain(b.RecvCQ)
		}
		b.QP.Abort()
		wantCompletions(w, b.RecvCQ, result{3, flushed})
	})
}

// Immediate data of a stream that has ended don't belong to the next one's Send.
func TestPairedImmediateEndsWithItsStream(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side(func(_ *rnic.Config, a *rnic.QPAttr) {
			door.SetPolicyOfQP(a, policy.Lenient{Departures: policy.PairImmediate})
		})
		mark := [8]byte{8}
		copy(mark[4:], policy.PairMark)
		w.connect(a, b)
		b.Recv(w, receives(1, 1)...)
		a.Send(w, rnic.SendWR{Op: rnic.OpImmediate, Immediate: mark})
		rnictest.Want(w, a.SendCQ, 0)
		drain(b.RecvCQ)
		for _, s := range []*rnictest.Side{a, b} {
			s.QP.Abort()
			if err := s.QP.Reset(); err != nil {
				w.Fatal(err)
			}
		}
		drain(b.RecvCQ)
		w.connect(a, b)
		b.Recv(w, receives(2, 1)...)
		a.Send(w, rnic.SendWR{Op: rnic.OpSend})
		if wc := rnictest.Want(w, b.RecvCQ, 2); door.Paired(&wc) {
			w.Errorf("%+v", wc)
		}
	})
}

func TestSendWithImmediateIsFencedAsOne(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		p.B.Recv(t, receives(0, 40)...)
		for i := range 20 {
			p.A.Send(t, rnic.SendWR{ID: uint64(i), Op: door.OpSendImmediate, Flags: rnic.FlagLocalFence, Immediate: [8]byte{byte(i)}})
		}
		for i := range uint64(20) {
			rnictest.Want(t, p.A.SendCQ, i)
			if wc := rnictest.Want(t, p.B.RecvCQ, i); !door.Paired(&wc) || wc.Immediate[0] != byte(i) {
				t.Errorf("%+v", wc)
			}
		}
	}, rnictest.Options{QP: pairs})
}
