package rnic_test

import (
	"testing"
	"testing/synctest"

	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

// An invalidation waits for the peer's Writes that are being placed, and holds no lock of
// the queue pair meanwhile: its program posts, and asks how the queue pair stands.
func TestInvalidationWaitsForPlacementWithoutTheSendQueue(t *testing.T) {
	for _, fence := range []rnic.Flags{0, rnic.FlagLocalFence} {
		onBoth(t, func(t *testing.T, p *rnictest.Pair) {
			mr := p.A.Register(t, make([]byte, 8), everyRight)
			release := rnic.PinRegion(t, mr)
			p.B.Recv(t, receives(2, 1)...)
			go p.A.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpLocalInvalidate, Flags: fence, Invalidate: mr.STag()})
			synctest.Wait()
			if mr.Valid() || rnic.SendQueueLocked(p.A.QP) {
				t.Errorf("valid: %v; the send queue is locked: %v", mr.Valid(), rnic.SendQueueLocked(p.A.QP))
				release()
				return
			}
			p.A.Send(t, empties(2, 1, 0)...)
			synctest.Wait()
			wantEmpty(t, p.A.SendCQ) // requests are carried out in their order
			release()
			rnictest.Want(t, p.A.SendCQ, 1)
			rnictest.Want(t, p.A.SendCQ, 2)
			rnictest.Want(t, p.B.RecvCQ, 2)
		})
	}
}

// A request that sends nothing completes without a length: WC.ByteLen counts what was sent.
func TestRequestsThatSendNothingHaveNoLength(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		l := labOf(t, p.A)
		mr, fast, window := p.A.Register(t, make([]byte, 8), everyRight), l.allocated(p.A.PD), l.window(p.A.PD, rnic.Type1)
		key := fast.STag().Key() + 1
		for i, wr := range []rnic.SendWR{
			{Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: fast, Memory: rnic.Memory{Slice: make([]byte, 8)}, Access: everyRight, Key: key}},
			{Op: rnic.OpBindWindow, Bind: rnic.Bind{MW: window, MR: mr, Addr: mr.Base(), Length: 8, Access: rnic.RemoteRead}},
			{Op: rnic.OpLocalInvalidate, Invalidate: stag.Make(fast.STag().Index(), key)},
		} {
			wr.ID = uint64(i)
			p.A.Send(t, wr)
			if wc := rnictest.Want(t, p.A.SendCQ, wr.ID); wc.Op != wr.Op || wc.ByteLen != 0 {
				t.Errorf("%+v; want a completion of %v of 0 bytes", wc, wr.Op)
			}
		}
	})
}
