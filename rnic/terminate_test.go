package rnic_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"

	"urnic/ddp"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
	"urnic/stag"
)

func ddpCode(c ddp.Code) rdmap.TermCode { return rdmap.TermCode(c.TermWord()) }

func mpaCode(c mpa.Code) rdmap.TermCode { return rdmap.TermCode(c.TermWord()) }

// An offer is what B has to offer, and A to misuse.
type offer struct {
	*world
	a, b *rnictest.Side
	mr   *rnic.MR // of 100 bytes with all rights
	src  []rnic.SGE
}

func (x *offer) register(access rnic.Access) *rnic.MR {
	return x.b.Register(x, make([]byte, 100), access)
}

// write returns a Write of 50 bytes, read a Read.
func (x *offer) write(to rnic.Remote) rnic.SendWR {
	return rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: x.src, Remote: to}
}

func (x *offer) read(from rnic.Remote) rnic.SendWR {
	return rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: x.src, Remote: from}
}

// misuses are what a device terminates a stream for, with the code that its peer
// gets, and the event that its own program does.
var misuses = []struct {
	name  string
	code  rdmap.TermCode
	event rnic.EventType
	do    func(x *offer) rnic.SendWR
}{
	{"Write to no STag", ddpCode(ddp.CodeInvalidSTag), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(rnic.Remote{STag: x.mr.STag() ^ 0xFF, TO: x.mr.Base()})
	}},
	{"Write to a deregistered STag", ddpCode(ddp.CodeInvalidSTag), rnic.EventProtection, func(x *offer) rnic.SendWR {
		to := x.mr.Remote(0)
		if err := x.mr.Close(); err != nil {
			x.Fatal(err)
		}
		return x.write(to)
	}},
	{"Write beyond the region", ddpCode(ddp.CodeBaseBounds), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(x.mr.Remote(51))
	}},
	{"Write before the region", ddpCode(ddp.CodeBaseBounds), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(x.mr.Remote(-1))
	}},
	{"Write whose TO wraps", ddpCode(ddp.CodeTOWrap), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(x.atTheTop())
	}},
	{"Write without the right", ddpCode(ddp.CodeSTagNotAssociated), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(x.register(rnic.LocalWrite | rnic.RemoteRead).Remote(0))
	}},
	{"Write to another PD", ddpCode(ddp.CodeSTagNotAssociated), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(x.elsewhere().Remote(0))
	}},
	{"Write to another stream's", ddpCode(ddp.CodeSTagNotAssociated), rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.write(x.ofAnotherStream().Remote(0))
	}},
	{"Read of no STag", rdmap.CodeInvalidSTag, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.read(rnic.Remote{STag: x.mr.STag() ^ 0xFF, TO: x.mr.Base()})
	}},
	{"Read beyond the region", rdmap.CodeBaseBounds, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.read(x.mr.Remote(51))
	}},
	{"Read without the right", rdmap.CodeAccessRights, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.read(x.register(rnic.LocalWrite | rnic.RemoteWrite).Remote(0))
	}},
	{"Read of another PD", rdmap.CodeSTagNotAssociated, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.read(x.elsewhere().Remote(0))
	}},
	{"Read of another stream's", rdmap.CodeSTagNotAssociated, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.read(x.ofAnotherStream().Remote(0))
	}},
	{"Read whose TO wraps", rdmap.CodeTOWrap, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return x.read(x.atTheTop())
	}},
	{"atomic on no STag", rdmap.CodeInvalidSTag, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return rnic.SendWR{ID: 1, Op: rnic.OpFetchAdd, Remote: rnic.Remote{STag: x.mr.STag() ^ 0xFF}}
	}},
	{"atomic without the right", rdmap.CodeAccessRights, rnic.EventProtection, func(x *offer) rnic.SendWR {
		return rnic.SendWR{ID: 1, Op: rnic.OpCmpSwap, Remote: x.register(rnic.LocalWrite | rnic.RemoteWrite | rnic.RemoteRead).Remote(0)}
	}},
	{"atomic that is not aligned", rdmap.CodeStreamCatastrophic, rnic.EventRemoteOperation, func(x *offer) rnic.SendWR {
		return rnic.SendWR{ID: 1, Op: rnic.OpFetchAdd, Remote: x.mr.Remote(int(-x.mr.Base()&7) + 1)}
	}},
	{"Send without a receive", ddpCode(ddp.CodeMSNNoBuffer), rnic.EventRemoteOperation, func(*offer) rnic.SendWR {
		return rnic.SendWR{ID: 1, Op: rnic.OpSend}
	}},
	{"Immediate Data without a receive", ddpCode(ddp.CodeMSNNoBuffer), rnic.EventRemoteOperation, func(*offer) rnic.SendWR {
		return rnic.SendWR{ID: 1, Op: rnic.OpImmediate}
	}},
	{"Send that is too long", ddpCode(ddp.CodeMessageTooLong), rnic.EventRemoteOperation, func(x *offer) rnic.SendWR {
		x.b.Recv(x, rnic.RecvWR{ID: 9, SGL: []rnic.SGE{x.mr.SGE(0, 49)}})
		return rnic.SendWR{ID: 1, Op: rnic.OpSend, SGL: x.src}
	}},
	{"invalidation of no STag", rdmap.CodeInvalidSTag, rnic.EventProtection, func(x *offer) rnic.SendWR {
		x.b.Recv(x, rnic.RecvWR{ID: 9})
		return rnic.SendWR{ID: 1, Op: rnic.OpSendInvalidate, Invalidate: x.mr.STag() ^ 0xFF}
	}},
	{"invalidation of a shared STag", rdmap.CodeCannotInvalidate, rnic.EventProtection, func(x *offer) rnic.SendWR {
		x.b.Recv(x, rnic.RecvWR{ID: 9})
		return rnic.SendWR{ID: 1, Op: rnic.OpSendInvalidate, Invalidate: x.mr.STag()}
	}},
}

// atTheTop returns a place less than 50 bytes before the last possible TO.
func (x *offer) atTheTop() rnic.Remote {
	x.Helper()
	mr, err := x.b.PD.RegisterMemory(rnic.Memory{Slice: make([]byte, 100), Base: ^uint64(0) - 100}, allRights, nil)
	if err != nil {
		x.Fatal(err)
	}
	return mr.Remote(70)
}

// elsewhere returns memory of another domain of B, with all rights.
func (x *offer) elsewhere() *rnic.MR {
	p, err := x.b.Device.AllocPD()
	if err != nil {
		x.Fatal(err)
	}
	mr, err := p.Register(make([]byte, 100), allRights)
	if err != nil {
		x.Fatal(err)
	}
	return mr
}

// ofAnotherStream returns memory of B's domain that is another queue pair's.
func (x *offer) ofAnotherStream() *rnic.MR {
	other := newQP(x, x.b.Device, x.b.PD, rnic.QPAttr{})
	mr, err := x.b.PD.RegisterMemory(rnic.Memory{Slice: make([]byte, 100)}, allRights, other.QP)
	if err != nil {
		x.Fatal(err)
	}
	return mr
}

const allRights = rnic.LocalWrite | rnic.RemoteRead | rnic.RemoteWrite | rnic.RemoteAtomic

func TestTerminateTellsTheSenderWhatItDidWrong(t *testing.T) {
	for _, m := range misuses {
		t.Run(m.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				late := simnet.Faults{Latency: time.Millisecond} // so that the Terminate can't be in before a request is known to be out
				w.Options = func(int) simnet.Options { return simnet.Options{BA: late} }
				a, b := w.side(), w.side()
				w.connect(a, b)
				x := &offer{world: w, a: a, b: b, src: []rnic.SGE{a.Register(w, make([]byte, 50), rnic.LocalWrite).SGE(0, 50)}}
				x.mr = x.register(allRights)
				wr := m.do(x)
				if err := a.QP.PostSend(wr); err != nil {
					w.Fatal(err)
				}
				time.Sleep(10 * late.Latency)
				wantState(w, a.QP, rnic.Error)
				wantState(w, b.QP, rnic.Error)
				if code, byPeer := termCode(a.QP.Err()); code != m.code || !byPeer {
					w.Errorf("A: %v; want %v of the peer", a.QP.Err(), m.code)
				}
				if code, byPeer := termCode(b.QP.Err()); code != m.code || byPeer {
					w.Errorf("B: %v; want %v", b.QP.Err(), m.code)
				}
				wantEvents(w, b.Device, m.event)
				e, _ := a.Device.PollEvent()
				if e.Type != rnic.EventTerminateReceived || e.QP != a.QP || e.Terminate == nil || e.Terminate.Code != m.code || !errors.Is(e.Err, a.QP.Err()) {
					w.Fatalf("A's event is %+v", e)
				}
				wantEvents(w, a.Device)
				checkCapture(w, e.Terminate, wr)
				// A Send or Write is complete as soon as it is out; only a Read or an
				// atomic can be blamed. Without latency, the Terminate may be in before
				// a request is known to be out.
				want := rnic.StatusRemoteTermination
				if wr.Op != rnic.OpRead && wr.Op != rnic.OpFetchAdd && wr.Op != rnic.OpCmpSwap {
					want = ok
				}
				got := drain(a.SendCQ)
				if len(got) == 1 && w.lower != nil && want == ok && got[0].Status == flushed {
					want = flushed
				}
				if len(got) != 1 || got[0].ID != 1 || got[0].Status != want || (got[0].Cause != nil) != (want == rnic.StatusRemoteTermination) {
					w.Errorf("completions %+v; want one that is %v", got, want)
				}
			})
		})
	}
}

// checkCapture checks that a Terminate captures the message of a request.
func checkCapture(t testing.TB, term *rdmap.Terminate, wr rnic.SendWR) {
	t.Helper()
	seg, err := ddp.ParseSegment(term.DDPHeader)
	if err != nil || !term.M() || !term.D() {
		t.Fatalf("Terminate %v has no DDP header: %v", term, err)
	}
	isRead := wr.Op == rnic.OpRead
	if term.R() != isRead {
		t.Errorf("Terminate %v: R is %v", term, term.R())
	}
	switch {
	case seg.Control.Tagged():
		if h := seg.Tagged; h.STag != wr.Remote.STag || h.TO != wr.Remote.TO || int(term.SegmentLen) != ddp.TaggedHeaderLen+50 {
			t.Errorf("Terminate %v does not capture %+v", term, wr)
		}
	case seg.Untagged.MSN != 1:
		t.Errorf("Terminate %v does not capture the first message", term)
	}
	if isRead {
		r, err := rdmap.ParseReadRequest(term.RDMAHeader)
		if want := (rdmap.ReadRequest{SinkSTag: wr.SGL[0].LKey, SinkTO: wr.SGL[0].Addr, Size: 50, SrcSTag: wr.Remote.STag, SrcTO: wr.Remote.TO}); err != nil || r != want {
			t.Errorf("Terminate has the RDMA header %v, %v; want %v", r, err, want)
		}
	}
}

func TestErrorClosesTheLLPConnection(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.CloseTimeout = 2 * time.Second })
		// In an orderly way, if the peer lets it,
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(sendSeg(""))
		h.wantCapture(ddpCode(ddp.CodeMSNNoBuffer), h.last, false) // which includes the end of the stream
		wantState(w, s.QP, rnic.Terminating)
		h.close()
		wantState(w, s.QP, rnic.Error)
		// and else by a reset.
		if err := s.QP.Reset(); err != nil {
			w.Fatal(err)
		}
		h = w.peerOf(s, rnic.ConnParam{})
		h.send(sendSeg(""))
		h.wantTerminate(ddpCode(ddp.CodeMSNNoBuffer))
		h.write([]byte("more")) // is dropped
		time.Sleep(2*time.Second - 1)
		wantState(w, s.QP, rnic.Terminating)
		time.Sleep(time.Nanosecond)
		wantState(w, s.QP, rnic.Error)
		h.wantReset()
		wantEvents(w, s.Device, rnic.EventRemoteOperation, rnic.EventRemoteOperation)
	})
}

func TestTerminateReceivedRaisesAnAsyncEvent(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		s.Recv(w, rnic.RecvWR{ID: 1})
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		wantState(w, s.QP, rnic.Terminating)
		e, _ := s.Device.PollEvent()
		if e.Type != rnic.EventTerminateReceived || e.QP != s.QP || e.Terminate == nil || e.Terminate.Code != rdmap.CodeGlobalCatastrophic {
			w.Errorf("event %+v", e)
		}
		h.wantEnd(io.EOF) // no Terminate in answer
		h.close()
		wantState(w, s.QP, rnic.Error)
		wantCompletions(w, s.RecvCQ, result{1, flushed})
		wantEvents(w, s.Device)
	})
}

func TestLocalErrorReachesTheULP(t *testing.T) {
	// By the completion of the request that failed, by an event, by the state of
	// the queue pair, and by what it says of its end.
	inWorld(t, func(w *world) {
		a, b := w.side(), w.side()
		w.connect(a, b)
		gone := a.Register(w, make([]byte, 10), 0)
		sge := gone.SGE(0, 10)
		// Closing the region between the post and the send takes luck, an
		// invalidation in the queue does not.
		fast, err := a.PD.AllocMR(10)
		if err != nil {
			w.Fatal(err)
		}
		key := fast.STag().Key() + 1
		a.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpFastRegister, Register: rnic.FastRegister{MR: fast, Memory: rnic.Memory{Slice: make([]byte, 10), ZeroBased: true}, Key: key}})
		tag := fast.STag().WithKey(key)
		a.Send(w,
			rnic.SendWR{ID: 2, Op: rnic.OpLocalInvalidate, Invalidate: tag},
			rnic.SendWR{ID: 3, Op: rnic.OpSend, SGL: []rnic.SGE{{LKey: tag, Length: 10}}},
			rnic.SendWR{ID: 4, Op: rnic.OpSend, SGL: []rnic.SGE{sge}},
		)
		wantState(w, a.QP, rnic.Error)
		wcs := drain(a.SendCQ)
		if len(wcs) != 4 || wcs[2].Status != rnic.StatusLocalProtection || wcs[3].Status != flushed {
			w.Fatalf("completions %+v", wcs)
		}
		var access *stag.AccessError
		for what, err := range map[string]error{"the completion": wcs[2].Err(), "the queue pair": a.QP.Err()} {
			if !errors.As(err, &access) || access.STag != tag {
				w.Errorf("%s says %v; want an AccessError of %v", what, err, tag)
			}
		}
		wantEvents(w, a.Device, rnic.EventCatastrophic)
		wantEvents(w, b.Device, rnic.EventTerminateReceived)
		if code, _ := termCode(b.QP.Err()); code != rdmap.CodeLocalCatastrophic {
			w.Errorf("the peer learns %v", b.QP.Err())
		}
	})
}

func TestCRCErrorTerminatesWithoutHeaders(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		s.Recv(w, rnic.RecvWR{ID: 1})
		h := w.peerOf(s, rnic.ConnParam{})
		h.send(writeSeg(rnic.Remote{}, nil))
		b := h.fpdu(sendSeg(""))
		b[len(b)-1] ^= 1
		h.write(b)
		h.wantBare(mpaCode(mpa.CodeCRC))
		h.close()
		wantEvents(w, s.Device, rnic.EventIntegrity)
		wantCompletions(w, s.RecvCQ, result{1, flushed})
	})
}

func TestResponderWhoseFirstFPDUIsBadMayNotSendATerminate(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		b := h.fpdu(sendSeg(""))
		b[len(b)-1] ^= 1
		start := time.Now()
		h.write(b)
		h.wantReset()
		wantState(w, s.QP, rnic.Error)
		wantEvents(w, s.Device, rnic.EventIntegrity)
		if d := time.Since(start); d != 0 {
			w.Errorf("it took %v", d)
		}
	})
}

func TestMarkerErrorTerminatesWithoutHeaders(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		s.Recv(w, rnic.RecvWR{ID: 1})
		h := w.peerOf(s, rnic.ConnParam{MPA: &mpa.Config{Markers: true}})
		h.send(writeSeg(rnic.Remote{}, nil))
		// A marker that points elsewhere, with a CRC that is right.
		b := h.fpdu(writeSeg(rnic.Remote{}, make([]byte, 600)))
		at := 512 - 4 - 20 // behind the marker and the FPDU that came before
		b[at+3] ^= 4
		b = binary.LittleEndian.AppendUint32(b[:len(b)-4], mpa.UpdateCRC(0, b[:len(b)-4]))
		h.write(b)
		h.wantBare(mpaCode(mpa.CodeMarker))
		h.close()
		wantEvents(w, s.Device, rnic.EventIntegrity)
	})
}

func TestCQOverflowTerminatesTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		receives bool // which of the two completion queues is too small
		step     func(w *world, s *rnictest.Side, h *peer)
	}{
		"of receives": {true, func(_ *world, _ *rnictest.Side, h *peer) { h.send(sendSeg("")) }},
		"of sends": {false, func(w *world, s *rnictest.Side, h *peer) {
			h.send(sendSeg(""))
			s.Send(w, rnic.SendWR{ID: 3, Op: rnic.OpSend})
			h.want(rdmap.OpSend)
		}},
		"of Reads": {false, func(w *world, s *rnictest.Side, h *peer) {
			h.send(sendSeg(""))
			s.Send(w, rnic.SendWR{ID: 3, Op: rnic.OpRead})
			h.want(rdmap.OpReadRequest)
			h.send(taggedSeg(rdmap.OpReadResponse, 0, 0, nil))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				first := w.side()
				small, err := first.Device.CreateCQ(rnic.CQAttr{Entries: 1})
				if err != nil {
					w.Fatal(err)
				}
				attr := rnic.QPAttr{RecvCQ: small}
				if !c.receives {
					attr = rnic.QPAttr{SendCQ: small}
				}
				s := newQP(w, first.Device, first.PD, attr)
				h := w.peerOf(s, rnic.ConnParam{})
				s.Recv(w, rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2})
				for range 2 {
					c.step(w, s, h)
				}
				if term := h.wantTerminate(rdmap.CodeStreamCatastrophic); !errors.Is(s.QP.Err(), rnic.ErrOverflow) {
					w.Errorf("Terminate %v; the stream ended with %v", &term, s.QP.Err())
				}
				h.close()
				wantState(w, s.QP, rnic.Error)
				if small.Poll(make([]rnic.WC, 2)) != 1 {
					w.Error("the completion that found a place is not there")
				}
				counts := map[rnic.EventType]int{}
				for _, e := range eventsOf(s.Device) {
					counts[e]++
				}
				if counts[rnic.EventCQOverflow] != 1 || counts[rnic.EventCatastrophic] != 1 || len(counts) != 2 {
					w.Errorf("events %v", counts)
				}
			})
		})
	}
}

func TestFirstErrorIsTheOneThatIsTold(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h := w.peerOf(s, rnic.ConnParam{})
		b := h.fpdu(writeSeg(rnic.Remote{STag: 0x100}, []byte("first")))
		first := h.last
		b = append(b, h.fpdu(writeSeg(rnic.Remote{STag: 0x200}, []byte("second")))...)
		h.write(append(b, h.fpdu(sendSeg("third"))...))
		h.wantCapture(ddpCode(ddp.CodeInvalidSTag), first, false)
	})
}
