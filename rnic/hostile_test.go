package rnic_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"urnic/ddp"
	"urnic/internal/test/simnet"
	"urnic/mpa"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A victim is a device with two streams: one to a hostile peer, and one to a
// device that only wants to work.
type victim struct {
	*world
	*peer // the hostile one
	s     *rnictest.Side
	mem   []byte   // of which the peer may use the middle, see mr
	mr    *rnic.MR // mem[100:200], with all rights
	sink  *rnic.MR // of the Read that is outstanding
	req   rdmap.ReadRequest

	inside, outside *rnictest.Side // the two ends of the other stream
}

const (
	victimIRD   = 2
	victimRecvs = 4 // of 100 bytes, with the IDs 0 to 3
)

// underAttack runs f with a victim that is connected to the peer as initiator,
// has receives posted and a Read outstanding. After f, the peer closes.
func underAttack(t *testing.T, f func(v *victim)) {
	t.Helper()
	inWorld(t, func(w *world) {
		late := simnet.Faults{Latency: 10 * time.Microsecond}
		w.Options = func(int) simnet.Options { return simnet.Options{AB: late, BA: late, Buffer: 64 << 10} }
		v := &victim{world: w, s: w.side(), mem: bytes.Repeat([]byte{0xAA}, 300)}
		v.inside, v.outside = newQP(w, v.s.Device, v.s.PD, rnic.QPAttr{}), w.side()
		w.connect(v.outside, v.inside)
		for id := range uint64(victimRecvs) {
			v.s.Recv(w, rnic.RecvWR{ID: id, SGL: []rnic.SGE{v.s.Register(w, make([]byte, 100), rnic.LocalWrite).SGE(0, 100)}})
		}
		v.mr = v.s.Register(w, v.mem[100:200], allRights)
		v.sink = v.s.Register(w, make([]byte, 100), rnic.LocalWrite)
		h, connected := w.responder(v.s, rnic.ConnParam{IRD: victimIRD})
		if err := <-connected; err != nil {
			w.Fatal(err)
		}
		v.peer, h.pause = h, time.Millisecond
		before := held(v.s.Device)
		v.s.Send(w, rnic.SendWR{ID: 9, Op: rnic.OpRead, SGL: []rnic.SGE{v.sink.SGE(0, 100)}, Remote: rnic.Remote{STag: 0x100, TO: 1 << 32}})
		v.req, _ = rdmap.ParseReadRequest(h.want(rdmap.OpReadRequest).Payload)
		other := v.work()

		f(v)

		v.close()
		other()
		v.exchange(v.outside, v.inside)
		for i, b := range slices.Concat(v.mem[:100], v.mem[200:]) {
			if b != 0xAA {
				w.Fatalf("the peer has changed memory beside the region, at %d", i)
			}
		}
		if v.s.QP.State() == rnic.RTS || v.s.QP.State() == rnic.Terminating {
			w.Errorf("the stream of the hostile peer is in state %v", v.s.QP.State())
		}
		after := held(v.s.Device)
		before[pd.InboundReads] -= victimIRD
		before[pd.OutboundReads] -= rnic.DefaultDepth
		for r := range after {
			if r := pd.Resource(r); r != pd.Regions && r != pd.MemoryOctets && after[r] != before[r] {
				w.Errorf("the device holds %d %v; want %d", after[r], r, before[r])
			}
		}
	})
}

// work begins work on the other stream, and returns a function that checks that
// it was done.
func (v *victim) work() (wait func()) {
	const n = 50_000
	buf := make([]byte, n)
	to := v.inside.Register(v.world, buf, rnic.LocalWrite|rnic.RemoteWrite)
	from := v.outside.Register(v.world, pattern(n, 5), 0)
	for id := range uint64(3) {
		v.inside.Recv(v.world, rnic.RecvWR{ID: id, SGL: []rnic.SGE{to.SGE(0, n)}})
		v.outside.Send(v.world, rnic.SendWR{ID: id, Op: rnic.OpSend, SGL: []rnic.SGE{from.SGE(0, n)}})
	}
	return func() {
		v.world.Helper()
		for id := range uint64(3) {
			rnictest.Want(v.world, v.outside.SendCQ, id)
			rnictest.Want(v.world, v.inside.RecvCQ, id)
		}
		if !bytes.Equal(buf, pattern(n, 5)) {
			v.world.Error("the other stream's data differ")
		}
	}
}

// received checks that so many receives have succeeded, that the next one is told if
// its message was too long, and that the others and the
// Read were flushed.
func (v *victim) received(n int, tooLong bool) {
	v.world.Helper()
	var want []result
	for id := range victimRecvs {
		status := flushed
		switch {
		case id < n:
			status = ok
		case id == n && tooLong:
			status = rnic.StatusLocalLength
		}
		want = append(want, result{uint64(id), status})
	}
	wantCompletions(v.world, v.s.RecvCQ, want...)
	wantCompletions(v.world, v.s.SendCQ, result{9, flushed})
}

// response returns a Response to the Read that is outstanding.
func (v *victim) response(n int) ddp.Segment {
	return taggedSeg(rdmap.OpReadResponse, v.req.SinkSTag, v.req.SinkTO, make([]byte, n))
}

func (v *victim) readOfMR(n uint32) ddp.Segment {
	return readSeg(rdmap.ReadRequest{Size: n, SrcSTag: v.mr.STag(), SrcTO: v.mr.Base()})
}

func (v *victim) atomicOfMR() rdmap.AtomicRequest {
	return rdmap.AtomicRequest{STag: v.mr.STag(), TO: (v.mr.Base() + 7) &^ 7}
}

// An attack is a segment with something wrong, behind others that are right.
var attacks = []struct {
	name string
	code rdmap.TermCode
	bare bool // the Terminate captures nothing
	good int  // Sends that succeed before
	do   func(v *victim)
}{
	// DDP, RFC 5041 §7.1.
	{"DDP version 0, untagged", ddpCode(ddp.CodeUntaggedVersion), false, 0, func(v *victim) { v.send(sendSeg(""), withDDPVersion(0)) }},
	{"DDP version 3, untagged", ddpCode(ddp.CodeUntaggedVersion), false, 1, func(v *victim) { v.send(sendSeg("")); v.send(sendSeg(""), withDDPVersion(3)) }},
	{"DDP version 2, tagged", ddpCode(ddp.CodeTaggedVersion), false, 0, func(v *victim) { v.send(v.response(100), withDDPVersion(2)) }},
	{"QN 4", ddpCode(ddp.CodeInvalidQN), false, 0, func(v *victim) { v.send(sendSeg(""), withQN(4)) }},
	{"QN 2^32-1", ddpCode(ddp.CodeInvalidQN), false, 0, func(v *victim) { v.send(sendSeg(""), notLast, withQN(1<<32-1)) }},
	{"MSN skipped", ddpCode(ddp.CodeMSNRange), false, 0, func(v *victim) { v.send(sendSeg(""), withMSN(2)) }},
	{"MSN repeated", ddpCode(ddp.CodeMSNRange), false, 1, func(v *victim) { v.send(sendSeg("")); v.send(sendSeg(""), withMSN(1)) }},
	{"MSN 0", ddpCode(ddp.CodeMSNRange), false, 0, func(v *victim) { v.send(sendSeg(""), withMSN(0)) }},
	{"MSN beyond the receives", ddpCode(ddp.CodeMSNNoBuffer), false, 0, func(v *victim) { v.send(sendSeg(""), withMSN(victimRecvs+1)) }},
	{"MSN far away", ddpCode(ddp.CodeMSNNoBuffer), false, 0, func(v *victim) { v.send(sendSeg(""), withMSN(1<<31)) }},
	{"next message inside the first", ddpCode(ddp.CodeMSNRange), false, 0, func(v *victim) {
		v.send(sendSeg("half"), notLast)
		v.send(sendSeg("whole"), withMSN(2))
	}},
	{"more messages than receives", ddpCode(ddp.CodeMSNNoBuffer), false, victimRecvs, func(v *victim) {
		for range victimRecvs + 1 {
			v.send(sendSeg("x"))
		}
	}},
	{"MO outside the buffer", ddpCode(ddp.CodeInvalidMO), false, 0, func(v *victim) { v.send(sendSeg("x"), withMO(101)) }},
	{"MO that wraps", ddpCode(ddp.CodeInvalidMO), false, 0, func(v *victim) { v.send(sendSeg("xyz"), withMO(1<<32-1)) }},
	{"gap before the first octet", ddpCode(ddp.CodeInvalidMO), false, 0, func(v *victim) { v.send(sendSeg("x"), withMO(10)) }},
	{"gap in the middle", ddpCode(ddp.CodeInvalidMO), false, 0, func(v *victim) {
		v.send(sendSeg("0123456789"), notLast)
		v.send(sendSeg("x"), withMO(11))
	}},
	{"too long by one", ddpCode(ddp.CodeMessageTooLong), false, 0, func(v *victim) { v.send(sendSeg(string(make([]byte, 101)))) }},
	{"too long in pieces", ddpCode(ddp.CodeMessageTooLong), false, 0, func(v *victim) {
		v.send(sendSeg(string(make([]byte, 60))), notLast)
		v.send(sendSeg(string(make([]byte, 60))), withMO(60))
	}},
	{"Write to no STag", ddpCode(ddp.CodeInvalidSTag), false, 0, func(v *victim) { v.send(writeSeg(rnic.Remote{STag: 0x1234}, []byte("x"))) }},
	{"Write to STag 0", ddpCode(ddp.CodeInvalidSTag), false, 0, func(v *victim) { v.send(writeSeg(rnic.Remote{TO: v.mr.Base()}, []byte("x"))) }},
	{"Write with another key", ddpCode(ddp.CodeInvalidSTag), false, 0, func(v *victim) {
		v.send(writeSeg(rnic.Remote{STag: v.mr.STag() ^ 1, TO: v.mr.Base()}, []byte("x")))
	}},
	{"Write behind the region", ddpCode(ddp.CodeBaseBounds), false, 0, func(v *victim) { v.send(writeSeg(v.mr.Remote(99), []byte("xx"))) }},
	{"Write before the region", ddpCode(ddp.CodeBaseBounds), false, 0, func(v *victim) { v.send(writeSeg(v.mr.Remote(-1), []byte("x"))) }},
	{"Write into a receive's buffer", ddpCode(ddp.CodeSTagNotAssociated), false, 0, func(v *victim) { v.send(writeSeg(v.sink.Remote(0), []byte("x"))) }},
	{"Write into the sink of a Read", ddpCode(ddp.CodeSTagNotAssociated), false, 0, func(v *victim) {
		v.send(v.response(100), withControl(0x40))
	}},

	// RDMAP, RFC 5040 §7.2.
	{"RDMAP version 2", rdmap.CodeInvalidVersion, false, 0, func(v *victim) { v.send(sendSeg(""), withControl(0x83)) }},
	{"RDMAP version 3, tagged", rdmap.CodeInvalidVersion, false, 0, func(v *victim) { v.send(v.response(10), withControl(0xC2)) }},
	{"opcode 12", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(sendSeg(""), withControl(0x4C)) }},
	{"opcode 15", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(sendSeg(""), withControl(0x4F)) }},
	{"untagged Write", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(sendSeg(""), withControl(0x40)) }},
	{"tagged Send", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(writeSeg(v.mr.Remote(0), []byte("x")), withControl(0x43)) }},
	{"Send on the queue of Reads", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(sendSeg(""), withQN(1)) }},
	{"Send on the queue of Terminates", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(sendSeg(""), withQN(2)) }},
	{"Read Request on the queue of Sends", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) { v.send(v.readOfMR(1), withQN(0)) }},
	{"Terminate on the queue of Sends", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) {
		v.send(terminateSeg(rdmap.Terminate{}), withQN(0))
	}},
	{"Write that becomes a Read Response", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) {
		v.send(writeSeg(rnic.Remote{}, nil), notLast)
		v.send(v.response(100))
	}},
	{"Read Request that is too long", ddpCode(ddp.CodeMessageTooLong), false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpReadRequest, make([]byte, rdmap.AtomicRequestLen+1)))
	}},
	{"Read Request that is one octet short", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpReadRequest, make([]byte, rdmap.ReadRequestLen-1)))
	}},
	{"Read Request that is empty", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) { v.send(untaggedSeg(rdmap.OpReadRequest, nil)) }},
	{"Read of no STag", rdmap.CodeInvalidSTag, false, 0, func(v *victim) { v.send(readSeg(rdmap.ReadRequest{Size: 1, SrcSTag: 0x1234})) }},
	{"Read behind the region", rdmap.CodeBaseBounds, false, 0, func(v *victim) { v.send(v.readOfMR(101)) }},
	{"Read of 4 GB", rdmap.CodeBaseBounds, false, 0, func(v *victim) { v.send(v.readOfMR(1<<32 - 1)) }},
	{"Read without the right", rdmap.CodeAccessRights, false, 0, func(v *victim) {
		v.send(readSeg(rdmap.ReadRequest{Size: 1, SrcSTag: v.sink.STag(), SrcTO: v.sink.Base()}))
	}},
	{"Terminate that is too short", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) { v.send(untaggedSeg(rdmap.OpTerminate, []byte{1, 2, 3})) }},
	{"Terminate that is too long", ddpCode(ddp.CodeMessageTooLong), false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpTerminate, make([]byte, rdmap.MaxTerminateLen+1)))
	}},
	{"invalidation of no STag", rdmap.CodeInvalidSTag, false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpSendInvalidate, nil), invalidating(0x1234))
	}},
	{"invalidation of a shared STag", rdmap.CodeCannotInvalidate, false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpSendSEInvalidate, nil), invalidating(v.mr.STag()))
	}},
	{"invalidation of the sink of a Read", rdmap.CodeCannotInvalidate, false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpSendInvalidate, nil), invalidating(v.sink.STag()))
	}},

	// Responses that nobody asked for, RFC 5040 §5.2.
	{"Response elsewhere", ddpCode(ddp.CodeBaseBounds), false, 0, func(v *victim) {
		v.send(taggedSeg(rdmap.OpReadResponse, v.mr.STag(), v.mr.Base(), []byte("x")))
	}},
	{"Response that skips octets", ddpCode(ddp.CodeBaseBounds), false, 0, func(v *victim) {
		v.send(taggedSeg(rdmap.OpReadResponse, v.req.SinkSTag, v.req.SinkTO+1, []byte("x")), notLast)
	}},
	{"Response that repeats octets", ddpCode(ddp.CodeBaseBounds), false, 0, func(v *victim) {
		v.send(v.response(50), notLast)
		v.send(v.response(50))
	}},
	{"Response that is too long", ddpCode(ddp.CodeBaseBounds), false, 0, func(v *victim) { v.send(v.response(101)) }},
	{"Response that ends early", rdmap.CodeStreamCatastrophic, false, 0, func(v *victim) { v.send(v.response(99)) }},
	{"Response that is empty", rdmap.CodeStreamCatastrophic, false, 0, func(v *victim) { v.send(v.response(0)) }},
	{"Atomic Response", ddpCode(ddp.CodeMSNNoBuffer), false, 0, func(v *victim) { v.send(untaggedSeg(rdmap.OpAtomicResponse, make([]byte, 12))) }},

	// RFC 7306.
	{"Immediate Data of 7 octets", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) { v.send(untaggedSeg(rdmap.OpImmediate, make([]byte, 7))) }},
	{"Immediate Data of 9 octets", ddpCode(ddp.CodeMessageTooLong), false, 0, func(v *victim) { v.send(untaggedSeg(rdmap.OpImmediateSE, make([]byte, 9))) }},
	{"Immediate Data of 3 and 4 octets", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpImmediate, make([]byte, 3)), notLast)
		v.send(untaggedSeg(rdmap.OpImmediate, make([]byte, 4)), withMO(3))
	}},
	{"Send that ends as Immediate Data", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) {
		v.send(sendSeg("0123"), notLast)
		v.send(untaggedSeg(rdmap.OpImmediate, make([]byte, 4)), withMO(4))
	}},
	{"atomic operation 1", rdmap.CodeUnexpectedOpcode, false, 0, func(v *victim) {
		r := v.atomicOfMR()
		r.Op = 1
		v.send(atomicSeg(r))
	}},
	{"atomic that is not aligned", rdmap.CodeStreamCatastrophic, false, 0, func(v *victim) {
		r := v.atomicOfMR()
		r.TO++
		v.send(atomicSeg(r))
	}},
	{"atomic behind the region", rdmap.CodeBaseBounds, false, 0, func(v *victim) {
		r := v.atomicOfMR()
		r.TO += 96
		v.send(atomicSeg(r))
	}},
	{"atomic that is one octet short", rdmap.CodeOperationUnspecified, false, 0, func(v *victim) {
		v.send(untaggedSeg(rdmap.OpAtomicRequest, make([]byte, rdmap.AtomicRequestLen-1)))
	}},

	// MPA, RFC 5044 §8.
	{"bad CRC", mpaCode(mpa.CodeCRC), true, 1, func(v *victim) {
		b := v.fpdu(sendSeg("good"))
		bad := v.fpdu(sendSeg("bad"))
		bad[len(bad)-1] ^= 0x80
		v.write(append(b, bad...))
	}},
	{"a flipped bit", mpaCode(mpa.CodeCRC), true, 0, func(v *victim) {
		b := v.fpdu(sendSeg("0123456789"))
		b[25] ^= 1
		v.write(b)
	}},
	{"garbage", mpaCode(mpa.CodeCRC), true, 0, func(v *victim) { v.write(bytes.Repeat([]byte{0, 40, 0xFF}, 40)) }},
	{"FPDU without ULPDU", ddpCode(ddp.CodeLocalCatastrophic), true, 0, func(v *victim) { v.ulpdu(nil) }},
	{"DDP header cut off, untagged", ddpCode(ddp.CodeLocalCatastrophic), true, 0, func(v *victim) { v.ulpdu([]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}) }},
	{"DDP header cut off, tagged", ddpCode(ddp.CodeLocalCatastrophic), true, 0, func(v *victim) { v.ulpdu([]byte{0xC1, 0x40, 0, 0}) }},
}

// ulpdu sends any bytes as the ULPDU of a good FPDU.
func (h *peer) ulpdu(b []byte) {
	h.Helper()
	fpdu, err := h.framer.AppendFPDU(nil, b)
	if err != nil {
		h.Fatal(err)
	}
	h.write(fpdu)
}

func TestAttackCostsThatStreamOnly(t *testing.T) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			underAttack(t, func(v *victim) {
				a.do(v)
				switch {
				case a.bare:
					v.wantBare(a.code)
				default:
					op := rdmap.Control(v.last[1]).Opcode()
					// Figure 10: the RDMA header goes with protection errors of Reads.
					rdma := op == rdmap.OpReadRequest && a.code.Layer() == rdmap.LayerRDMAP && a.code.EType() == 1
					v.wantCapture(a.code, v.last, rdma)
				}
				v.close()
				sent := len(v.last) > 1 && rdmap.Control(v.last[1]).Opcode() == rdmap.OpSend
				v.received(a.good, sent && a.code == ddpCode(ddp.CodeMessageTooLong))
				if events := eventsOf(v.s.Device); len(events) != 1 {
					v.world.Errorf("events %v; want one", events)
				}
			})
		})
	}
}

func TestReadsBeyondTheIRDTerminate(t *testing.T) {
	underAttack(t, func(v *victim) {
		big := v.s.Register(v.world, make([]byte, 1<<20), rnic.RemoteRead)
		for range victimIRD + 1 { // the peer takes no Response
			v.send(readSeg(rdmap.ReadRequest{Size: 1 << 20, SrcSTag: big.STag(), SrcTO: big.Base()}))
		}
		v.wantCapture(ddpCode(ddp.CodeMSNNoBuffer), v.last, false)
	})
}

func TestFloodOfReadsIsAnsweredOneByOne(t *testing.T) {
	underAttack(t, func(v *victim) {
		for range 50 {
			v.send(v.readOfMR(100))
			if seg := v.want(rdmap.OpReadResponse); len(seg.Payload) != 100 {
				v.world.Errorf("%d octets", len(seg.Payload))
			}
		}
		v.send(v.response(100))
		wantCompletions(v.world, v.s.SendCQ, result{9, ok})
	})
}

func TestResponseBeforeItsRequestHasLeftIsOneThatWasAskedFor(t *testing.T) {
	// A Responder must not send yet: its Read waits. A peer that can tell the
	// sink, which it can't know, gets nowhere that the Read does not allow.
	inWorld(t, func(w *world) {
		s := w.side()
		mem := bytes.Repeat([]byte{0xAA}, 100)
		sink := s.Register(w, mem, rnic.LocalWrite)
		h := w.peerOf(s, rnic.ConnParam{})
		s.Send(w, rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{sink.SGE(10, 10)}})
		h.quiet()
		h.send(taggedSeg(rdmap.OpReadResponse, sink.STag(), sink.Base()+9, make([]byte, 10)))
		h.want(rdmap.OpReadRequest) // it leaves with the first FPDU that came
		h.wantCapture(ddpCode(ddp.CodeBaseBounds), h.last, false)
		h.close()
		wantCompletions(w, s.SendCQ, result{1, flushed})
		if !bytes.Equal(mem, bytes.Repeat([]byte{0xAA}, 100)) {
			w.Error("the sink was changed")
		}
	})
}

func TestSecondResponseToTheSameReadTerminates(t *testing.T) {
	underAttack(t, func(v *victim) {
		v.send(v.response(100))
		wantCompletions(v.world, v.s.SendCQ, result{9, ok})
		v.send(v.response(100))
		v.wantCapture(rdmap.CodeUnexpectedOpcode, v.last, false)
	})
}

func TestNothingCountsAfterTheFirstError(t *testing.T) {
	underAttack(t, func(v *victim) {
		b := v.fpdu(sendSeg("bad"), withMSN(9))
		bad := v.last
		v.msn[0] = 0
		b = append(b, v.fpdu(sendSeg("good"))...)
		b = append(b, v.fpdu(writeSeg(v.mr.Remote(0), []byte("good")))...)
		v.write(append(b, v.fpdu(v.response(100))...))
		v.wantCapture(ddpCode(ddp.CodeMSNNoBuffer), bad, false)
		v.close()
		v.received(0, false)
		if v.mem[100] != 0xAA {
			v.world.Error("a Write behind the error was placed")
		}
	})
}

func TestMessagesAfterATerminateAreDropped(t *testing.T) {
	underAttack(t, func(v *victim) {
		b := v.fpdu(terminateSeg(rdmap.Terminate{Code: rdmap.CodeGlobalCatastrophic}))
		b = append(b, v.fpdu(sendSeg("late"))...)
		v.write(append(b, v.fpdu(writeSeg(v.mr.Remote(0), []byte("late")))...))
		v.close()
		v.received(0, false)
		if v.mem[100] != 0xAA {
			v.world.Error("a Write behind the Terminate was placed")
		}
	})
}

func TestWhatIsLegalIsTaken(t *testing.T) {
	// Odd, but within the rules: nothing here may end the stream.
	for name, do := range map[string]func(v *victim){
		"RDMAP version 0":         func(v *victim) { v.send(sendSeg(""), withControl(0x03)) },
		"reserved bits of RDMAP":  func(v *victim) { v.send(sendSeg(""), withControl(0x73)) },
		"reserved bits of DDP":    func(v *victim) { v.send(sendSeg(""), func(s *ddp.Segment) { s.Control |= 0x3C }) },
		"empty Write to nowhere":  func(v *victim) { v.send(writeSeg(rnic.Remote{STag: 0xDEAD, TO: 1 << 63}, nil)) },
		"empty Read of nowhere":   func(v *victim) { v.send(readSeg(rdmap.ReadRequest{SrcSTag: 0xDEAD})); v.want(rdmap.OpReadResponse) },
		"Send in many pieces":     sendInPieces,
		"Send in empty pieces":    func(v *victim) { v.send(sendSeg(""), notLast); v.send(sendSeg(""), notLast); v.send(sendSeg("")) },
		"Response in pieces":      responseInPieces,
		"RsvdULP of a plain Send": func(v *victim) { v.send(sendSeg(""), invalidating(0x1234)) },
		"padding that is not zero": func(v *victim) {
			b := v.fpdu(sendSeg("x")) // 2 + 19 bytes, and 3 of padding
			copy(b[21:24], "pad")
			binary.LittleEndian.PutUint32(b[24:], mpa.UpdateCRC(0, b[:24]))
			v.write(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			underAttack(t, func(v *victim) {
				do(v)
				v.send(sendSeg("and on"))
				wantState(v.world, v.s.QP, rnic.RTS)
				wcs := drain(v.s.RecvCQ)
				if len(wcs) == 0 || wcs[len(wcs)-1].Status != ok || wcs[len(wcs)-1].ByteLen != 6 {
					v.world.Errorf("completions %+v", wcs)
				}
			})
		})
	}
}
