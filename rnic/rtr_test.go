package rnic_test

import (
	"errors"
	"testing"

	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

func TestNoCommonRTRSendsTerminate(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		h, connected := w.responder(s, rnic.ConnParam{MPA: &mpa.Config{PeerToPeer: true, RTR: mpa.RTRWrite}}, func(f *mpa.Frame) {
			f.PrivateData, _ = mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRSend | mpa.RTRRead, IRD: 3, ORD: 3}.AppendBinary(nil)
		})
		h.wantBare(mpaCode(mpa.CodeNoMatchingRTR))
		h.close()
		var e *mpa.Error
		if err := <-connected; !errors.As(err, &e) || e.Code != mpa.CodeNoMatchingRTR {
			w.Errorf("Connect: %v", err)
		}
		wantState(w, s.QP, rnic.Idle)
	})
}

// The kinds of ready-to-receive indication, and the messages that they are.
var rtrs = map[mpa.RTR]rdmap.Opcode{mpa.RTRSend: rdmap.OpSend, mpa.RTRWrite: rdmap.OpWrite, mpa.RTRRead: rdmap.OpReadRequest}

func TestRTRIsTheFirstFPDU(t *testing.T) {
	for kind, op := range rtrs {
		t.Run("as initiator, "+kind.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpImmediate}) // before there is a connection
				h, connected := w.responder(s, rnic.ConnParam{MPA: &mpa.Config{PeerToPeer: true}}, func(f *mpa.Frame) {
					f.PrivateData, _ = mpa.Enhanced{PeerToPeer: true, RTR: kind, IRD: 1, ORD: 1}.AppendBinary(nil)
				})
				if err := <-connected; err != nil {
					w.Fatal(err)
				}
				rtr := h.want(op)
				if op == rdmap.OpReadRequest {
					if r, err := rdmap.ParseReadRequest(rtr.Payload); err != nil || r.Size != 0 {
						w.Errorf("the RTR is %v, %v; want an empty Read", r, err)
					}
				} else if len(rtr.Payload) != 0 {
					w.Errorf("the RTR has %d octets", len(rtr.Payload))
				}
				h.want(rdmap.OpImmediate)
				wantCompletions(w, s.SendCQ, result{1, ok}) // and none of the RTR
				if op == rdmap.OpReadRequest {
					h.send(taggedSeg(rdmap.OpReadResponse, 0, 0, nil))
				}
				wantState(w, s.QP, rnic.RTS)
				wantCompletions(w, s.SendCQ)
			})
		})
		t.Run("as responder, "+kind.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				s.Recv(w, rnic.RecvWR{ID: 1})
				s.Send(w, rnic.SendWR{ID: 2, Op: rnic.OpSend})
				h := w.peerOf(s, rnic.ConnParam{}, enhanced(mpa.Enhanced{PeerToPeer: true, RTR: kind, IRD: 1, ORD: 1}))
				h.quiet() // until the RTR is there
				switch kind {
				case mpa.RTRSend:
					h.send(sendSeg(""))
				case mpa.RTRWrite:
					h.send(writeSeg(rnic.Remote{}, nil))
				default:
					h.send(readSeg(rdmap.ReadRequest{SinkSTag: 0x42, SinkTO: 43}))
					if seg := h.want2(rdmap.OpSend, rdmap.OpReadResponse)[1]; len(seg.Payload) != 0 || seg.Tagged.STag != 0x42 || seg.Tagged.TO != 43 {
						w.Errorf("the Response to the RTR is %v with %d octets", seg, len(seg.Payload))
					}
				}
				if kind != mpa.RTRRead {
					h.want(rdmap.OpSend)
				}
				wantCompletions(w, s.SendCQ, result{2, ok})
				wantCompletions(w, s.RecvCQ) // the RTR consumes no receive
				h.send(sendSeg(""))
				wantCompletions(w, s.RecvCQ, result{1, ok})
			})
		})
	}
}

// A Read as RTR wants a place in the queue, even of a side that takes no Reads.
func TestReadRTRIsTakenWithoutInboundReads(t *testing.T) {
	for _, ord := range []uint16{0, 1, mpa.DepthNotNegotiated} {
		inWorld(t, func(w *world) {
			s := w.side(func(cfg *rnic.Config, _ *rnic.QPAttr) { cfg.Limits = pd.Limits{pd.InboundReads: 1} })
			s.Recv(w, rnic.RecvWR{ID: 1})
			none := rnic.ConnParam{IRD: -1, ORD: -1}
			request := enhanced(mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRRead, IRD: 1, ORD: ord})
			h := w.peerOf(s, none, request)
			if n := s.Device.Held(pd.InboundReads); n != 1 {
				w.Errorf("ORD %d: %d inbound reads are held; want 1, for the RTR", ord, n)
			}
			var limit *pd.LimitError
			poor := newQP(w, s.Device, s.PD, rnic.QPAttr{})
			l, accepted := w.accept(poor, none)
			f := plainRequest
			request(&f)
			w.dial(l.Addr().String()).frame(&f)
			if err := <-accepted; !errors.As(err, &limit) || limit.Resource != pd.InboundReads {
				w.Errorf("ORD %d: another connection where the limit is reached: %v; want a LimitError", ord, err)
			}
			wantState(w, poor.QP, rnic.Idle)
			_ = l.Close()
			h.send(readSeg(rdmap.ReadRequest{SinkSTag: 0x42, SinkTO: 43}))
			h.want(rdmap.OpReadResponse)
			h.send(sendSeg(""))
			wantCompletions(w, s.RecvCQ, result{1, ok})
			h.close()
			wantState(w, s.QP, rnic.Idle)
			if n := s.Device.Held(pd.InboundReads); n != 0 {
				w.Errorf("ORD %d: %d inbound reads are held after the end", ord, n)
			}
		})
	}
}

func TestOtherMessageInPlaceOfTheRTRTerminates(t *testing.T) {
	for name, seg := range map[string]func(h *peer) []byte{
		"Send with data":  func(h *peer) []byte { return h.fpdu(sendSeg("data")) },
		"other RTR":       func(h *peer) []byte { return h.fpdu(writeSeg(rnic.Remote{}, nil)) },
		"Read with data":  func(h *peer) []byte { return h.fpdu(readSeg(rdmap.ReadRequest{Size: 1})) },
		"Send with event": func(h *peer) []byte { return h.fpdu(untaggedSeg(rdmap.OpSendSE, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := w.side()
				s.Recv(w, rnic.RecvWR{ID: 1})
				h := w.peerOf(s, rnic.ConnParam{IRD: 1}, enhanced(mpa.Enhanced{PeerToPeer: true, RTR: mpa.RTRSend, ORD: 1}))
				h.write(seg(h))
				term := h.terminate()
				if term.Code != mpaCode(mpa.CodeLocalCatastrophic) && term.Code.Layer() != rdmap.LayerDDP {
					w.Errorf("Terminate %v", &term)
				}
				h.close()
				wantState(w, s.QP, rnic.Error)
				wantCompletions(w, s.RecvCQ, result{1, flushed})
			})
		})
	}
}

func TestRTRKindsBetweenTwoDevices(t *testing.T) {
	for kindA := range mpa.RTRAll + 1 {
		for kindB := range mpa.RTRAll + 1 {
			inWorld(t, func(w *world) {
				a, b := w.side(), w.side()
				b.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpSend}) // either side may send first
				a.Recv(w, rnic.RecvWR{ID: 2})
				errA, errB := w.tryConnect(a, b,
					rnic.ConnParam{MPA: &mpa.Config{PeerToPeer: true, RTR: kindA}, IRD: -1, ORD: -1},
					rnic.ConnParam{MPA: &mpa.Config{RTR: kindB}, IRD: -1, ORD: -1})
				common := kindA & kindB
				if kindA == 0 || kindB == 0 { // all
					common = kindA | kindB
				}
				if kindA|kindB == 0 {
					common = mpa.RTRAll
				}
				if errB != nil || (errA == nil) != (common != 0) {
					w.Fatalf("%v and %v: %v, %v", kindA, kindB, errA, errB)
				}
				if common == 0 {
					wantState(w, b.QP, rnic.Error)
					if code, byPeer := termCode(b.QP.Err()); code != mpaCode(mpa.CodeNoMatchingRTR) || !byPeer {
						w.Errorf("%v and %v: the responder learns %v", kindA, kindB, b.QP.Err())
					}
					return
				}
				p, _ := a.QP.Params()
				if !p.PeerToPeer || p.RTR&common == 0 {
					w.Errorf("%v and %v: %v was chosen", kindA, kindB, p.RTR)
				}
				rnictest.Want(w, b.SendCQ, 1)
				rnictest.Want(w, a.RecvCQ, 2)
				w.exchange(a, b)
				if err := a.QP.Disconnect(w.Context()); err != nil {
					w.Errorf("%v and %v: %v", kindA, kindB, err)
				}
			})
		}
	}
}
