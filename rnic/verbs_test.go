package rnic_test

import (
	"bytes"
	"testing"

	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestSendArrives(t *testing.T) {
	onBoth(t, func(t *testing.T, p *rnictest.Pair) {
		data := bytes.Repeat([]byte("urnic!"), 1000)
		buf := make([]byte, 8000)
		src, dst := p.A.Register(t, data, 0), p.B.Register(t, buf, rnic.LocalWrite)
		p.B.Recv(t, rnic.RecvWR{ID: 1, SGL: []rnic.SGE{dst.SGE(0, len(buf))}})
		p.A.Send(t, rnic.SendWR{ID: 2, Op: rnic.OpSend, SGL: []rnic.SGE{src.SGE(0, len(data))}})
		rnictest.Want(t, p.A.SendCQ, 2)
		wc := rnictest.Want(t, p.B.RecvCQ, 1)
		if int(wc.ByteLen) != len(data) || !bytes.Equal(buf[:len(data)], data) {
			t.Errorf("received %d octets", wc.ByteLen)
		}
		if err := p.A.QP.Disconnect(t.Context()); err != nil {
			t.Error(err)
		}
		if s := p.A.QP.State(); s != rnic.Idle {
			t.Errorf("A is in state %v", s)
		}
		ev, err := p.B.Device.WaitEvent(t.Context())
		if err != nil || ev.Type != rnic.EventCloseComplete {
			t.Errorf("B: %v, %v", ev, err)
		}
	})
}
