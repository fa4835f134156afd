package rnic_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"urnic/ddp"
	"urnic/rdmap"
	"urnic/rnic"
)

func sendInPieces(v *victim) {
	for mo := range uint32(99) {
		v.send(sendSeg("x"), notLast, withMO(mo))
	}
	v.send(sendSeg("x"), withMO(99))
}

func responseInPieces(v *victim) {
	for at := range uint64(99) {
		v.send(taggedSeg(rdmap.OpReadResponse, v.req.SinkSTag, v.req.SinkTO+at, []byte{1}), notLast)
	}
	v.send(taggedSeg(rdmap.OpReadResponse, v.req.SinkSTag, v.req.SinkTO+99, []byte{1}))
	wantCompletions(v.world, v.s.SendCQ, result{9, ok})
}

// script is what a good peer might send, FPDU by FPDU. With the third, nothing
// is outstanding any more.
func (v *victim) script() (fpdus [][]byte) {
	for _, seg := range []ddp.Segment{sendSeg("first"), writeSeg(v.mr.Remote(0), []byte("written")), v.response(100), v.readOfMR(10), sendSeg("last")} {
		fpdus = append(fpdus, v.fpdu(seg))
	}
	return fpdus
}

func TestPeerThatDiesAtAnyOctetCostsThatStreamOnly(t *testing.T) {
	var length, third int
	underAttack(t, func(v *victim) {
		fpdus := v.script()
		length, third = len(slices.Concat(fpdus...)), len(slices.Concat(fpdus[:3]...))
	})
	for name, die := range map[string]func(h *peer){"FIN": (*peer).closeWrite, "close": (*peer).close, "reset": (*peer).reset} {
		t.Run(name, func(t *testing.T) {
			for n := 0; n < length; n += 3 {
				underAttack(t, func(v *victim) {
					v.write(slices.Concat(v.script()...)[:n])
					v.settle()
					die(v.peer)
					time.Sleep(time.Minute)
					want := rnic.Error
					if n == third && name != "reset" { // not outstanding work, not inside an FPDU
						want = rnic.Idle
					}
					if got := v.s.QP.State(); got != want {
						v.world.Errorf("%d octets: state %v; want %v", n, got, want)
					}
					recvs, sends := drain(v.s.RecvCQ), drain(v.s.SendCQ)
					if len(recvs) != victimRecvs || len(sends) != 1 || (sends[0].Status == ok) != (n >= third) {
						v.world.Errorf("%d octets: %d receives completed, and %+v", n, len(recvs), sends)
					}
				})
			}
		})
	}
}

func TestPeerThatStallsHoldsUpThatStreamOnly(t *testing.T) {
	var length int
	underAttack(t, func(v *victim) { length = len(slices.Concat(v.script()...)) })
	for n := 0; n < length; n += 5 {
		underAttack(t, func(v *victim) {
			v.write(slices.Concat(v.script()...)[:n])
			time.Sleep(time.Hour)
			wantState(v.world, v.s.QP, rnic.RTS)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			start := time.Now()
			_ = v.s.QP.Disconnect(ctx) // which works only if nothing is outstanding
			if d := time.Since(start); d > time.Second || v.s.QP.State() == rnic.RTS {
				v.world.Errorf("%d octets: Disconnect took %v, the state is %v", n, d, v.s.QP.State())
			}
		})
	}
}

func TestPeerThatTakesNothingHoldsUpThatStreamOnly(t *testing.T) {
	underAttack(t, func(v *victim) {
		src := v.s.Register(v.world, make([]byte, 1<<20), 0)
		for id := range uint64(10) {
			v.s.Send(v.world, rnic.SendWR{ID: 100 + id, Op: rnic.OpWrite, SGL: []rnic.SGE{src.SGE(0, 1<<20)}})
		}
		time.Sleep(time.Hour)
		wantState(v.world, v.s.QP, rnic.RTS)
		start := time.Now()
		v.s.QP.Abort()
		if d := time.Since(start); d != 0 {
			v.world.Errorf("Abort took %v", d)
		}
		if wcs := drain(v.s.SendCQ); len(wcs) != 11 {
			v.world.Errorf("%d of 11 requests completed", len(wcs))
		}
	})
}

func TestEachFieldOfASegmentMayBeAnything(t *testing.T) {
	// Every byte of the headers of good segments, with each bit flipped: the
	// stream goes on or ends, and nothing else happens.
	kinds := map[string]func(v *victim) ddp.Segment{
		"Send":         func(*victim) ddp.Segment { return sendSeg("0123456789") },
		"Write":        func(v *victim) ddp.Segment { return writeSeg(v.mr.Remote(10), []byte("0123456789")) },
		"Read Request": func(v *victim) ddp.Segment { return v.readOfMR(10) },
		"Response":     func(v *victim) ddp.Segment { return v.response(100) },
		"Atomic":       func(v *victim) ddp.Segment { return atomicSeg(v.atomicOfMR()) },
		"Terminate": func(*victim) ddp.Segment {
			return terminateSeg(ofRead(rdmap.CodeInvalidSTag, 1, rdmap.ReadRequest{}))
		},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			var bits int
			underAttack(t, func(v *victim) {
				v.fpdu(kind(v))
				bits = 8 * min(len(v.last), ddp.UntaggedHeaderLen+rdmap.ReadRequestLen)
			})
			for bit := 0; bit < bits; bit += 1 + bit%3 {
				underAttack(t, func(v *victim) {
					v.send(sendSeg("first"))
					v.fpdu(kind(v))
					b := slices.Clone(v.last)
					b[bit/8] ^= 0x80 >> (bit % 8)
					v.ulpdu(b)
					time.Sleep(time.Second)
					if s := v.s.QP.State(); s != rnic.RTS && s != rnic.Terminating {
						v.world.Errorf("bit %d: state %v", bit, s)
					}
				})
			}
		})
	}
}

func TestHostilePeersOfManyQueuePairsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		s := w.side()
		good, other := newQP(w, s.Device, s.PD, rnic.QPAttr{}), w.side()
		w.connect(other, good)
		for i := range 40 {
			q := newQP(w, s.Device, s.PD, rnic.QPAttr{})
			h := w.peerOf(q, rnic.ConnParam{})
			switch i % 4 {
			case 0:
				h.send(sendSeg("none is posted"))
			case 1:
				h.send(writeSeg(rnic.Remote{STag: 0x1234}, []byte("x")))
			case 2:
				h.write(make([]byte, 100))
			default:
				h.reset()
			}
		}
		w.exchange(other, good)
		time.Sleep(time.Minute)
		w.exchange(other, good)
		lost := 0
		for _, e := range eventsOf(s.Device) {
			lost++
			if e == rnic.EventCloseComplete {
				w.Error("a hostile peer's stream was closed gracefully")
			}
		}
		if lost != 40 || fmt.Sprint(s.Device.Counters().Lost) != "40" {
			w.Errorf("%d events, and %d streams were lost; want 40", lost, s.Device.Counters().Lost)
		}
	})
}
