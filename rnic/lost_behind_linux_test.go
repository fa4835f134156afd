package rnic_test

import (
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// Requests in front of the one whose data are lost have done nothing wrong, though a
// Read that is not answered keeps them from completing.
func TestRequestsBeforeTheLossAreNotBlamed(t *testing.T) {
	const size = 20000
	var lose func()
	sent := 0
	s := openSide(t, nil, func(cfg *rnic.Config, _ *rnic.QPAttr) {
		cfg.Trace = func(m rnic.Trace) {
			if m.Sent && m.Length == size {
				if sent++; sent == 2 {
					lose()
				}
			}
		}
	})
	rawPeer(t, s)
	lost := protected(t, s, unix.PROT_NONE)
	lose = lost.lose
	good := s.Register(t, make([]byte, size), rnic.LocalWrite)
	write := func(id uint64, src *rnic.MR) rnic.SendWR {
		return rnic.SendWR{ID: id, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, size)}, Remote: rnic.Remote{STag: 1}}
	}
	s.Send(t, rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{good.SGE(0, 8)}}, write(2, good), write(3, lost.mr), write(4, good))
	wantStatus(t, s.SendCQ, 1, rnic.StatusFlushed)
	wantStatus(t, s.SendCQ, 2, rnic.StatusFlushed)
	wantStatus(t, s.SendCQ, 3, rnic.StatusLocalProtection)
	wantStatus(t, s.SendCQ, 4, rnic.StatusFlushed)
	nextEvent(t, s.Device, rnic.EventCatastrophic)
	if err := lost.mr.Close(); err != nil {
		t.Error(err)
	}
}

// The peer may have ended the stream meanwhile. No request completes any more then, and
// the one whose data are lost is found all the same.
func TestRequestIsBlamedForItsLossAfterTheTerminate(t *testing.T) {
	const size = 20000
	var atLast func()
	sent := 0
	s := openSide(t, nil, func(cfg *rnic.Config, _ *rnic.QPAttr) {
		cfg.Trace = func(m rnic.Trace) {
			if m.Sent && m.Length == size {
				if sent++; sent == 2 {
					atLast()
				}
			}
		}
	})
	h := rawPeer(t, s)
	lost := protected(t, s, unix.PROT_NONE)
	atLast = func() {
		lost.lose()
		h.write(h.fpdu(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic})))
		nextEvent(t, s.Device, rnic.EventTerminateReceived)
		for !rnic.Disputed(s.QP) {
			runtime.Gosched()
		}
	}
	good := s.Register(t, make([]byte, size), 0)
	var wrs [3]rnic.SendWR
	for id, mr := range []*rnic.MR{good, lost.mr, good} {
		wrs[id] = rnic.SendWR{ID: uint64(id), Op: rnic.OpWrite, SGL: []rnic.SGE{mr.SGE(0, size)}, Remote: rnic.Remote{STag: 1}}
	}
	s.Send(t, wrs[:]...)
	wantStatus(t, s.SendCQ, 0, rnic.StatusFlushed)
	wantStatus(t, s.SendCQ, 1, rnic.StatusLocalProtection)
	wantStatus(t, s.SendCQ, 2, rnic.StatusFlushed)
}

// rawPeer connects a side over TCP to a peer that reads and answers nothing.
func rawPeer(t *testing.T, s *rnictest.Side) *peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	connected := make(chan error, 1)
	go func() { connected <- s.QP.Connect(t.Context(), l.Addr().String(), rnic.ConnParam{}) }()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	h := newPeer(t, c)
	req := h.readFrame()
	reply := plainReply(&req)
	h.frame(&reply)
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	h.full(&reply, &req)
	return h
}
