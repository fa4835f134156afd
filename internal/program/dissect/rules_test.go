package dissect

import (
	"encoding/binary"
	"math"
	"testing"

	"urnic/ddp"
	"urnic/mpa"
	"urnic/rdmap"
)

// atomicRequest returns the header of a FetchAdd.
func atomicRequest(id uint32, edit func(*rdmap.AtomicRequest)) []byte {
	r := rdmap.AtomicRequest{Op: rdmap.AtomicFetchAdd, RequestID: id, STag: 0x300, CompareMask: math.MaxUint64}
	if edit != nil {
		edit(&r)
	}
	b, _ := r.AppendBinary(nil)
	return b
}

func atomicResponse(id uint32) []byte {
	b, _ := rdmap.AtomicResponse{RequestID: id}.AppendBinary(nil)
	return b
}

func terminate(t rdmap.Terminate) []byte {
	b, _ := t.AppendBinary(nil)
	return b
}

// Each rule of Full Operation, broken; and, where it is near, what is allowed.
// The client has sent a Send of 64 bytes before, so that both sides may send.
var ruleCases = []struct {
	name string
	play func(sc *script)
	want []string
}{
	{"nothing is wrong", func(sc *script) {
		sc.send(Server, 100)
		sc.message(Client, rdmap.OpSendSE, nil)
		sc.message(Server, rdmap.OpSendInvalidate, []byte("x"), rsvd(1, 0, 7))
		sc.message(Server, rdmap.OpSendSEInvalidate, []byte("x"), rsvd(4, 0, 9))
		sc.message(Client, rdmap.OpWrite, make([]byte, 1000))
		sc.message(Client, rdmap.OpWrite, nil)
		sc.read(Client, 5, 6, 70)
		sc.read(Client, 7, 8, 0)
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(3, nil))
		sc.segment(Server, rdmap.OpReadResponse, false, make([]byte, 50), at(5, 6))
		sc.segment(Server, rdmap.OpReadResponse, true, make([]byte, 20), at(5, 56))
		sc.respond(Server, 99, 99, 0)
		sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(3))
		sc.message(Server, rdmap.OpImmediate, make([]byte, 8))
		sc.message(Client, rdmap.OpImmediateSE, make([]byte, 8))
	}, nil},
	{"messages of several segments", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, make([]byte, 10))
		sc.segment(Client, rdmap.OpSend, false, make([]byte, 10), msn(2), mo(10))
		sc.segment(Client, rdmap.OpSend, true, make([]byte, 10), msn(2), mo(20))
		sc.segment(Server, rdmap.OpWrite, false, make([]byte, 10), at(3, math.MaxUint64-9))
		sc.segment(Server, rdmap.OpWrite, true, make([]byte, 10), at(3, 0))
	}, nil},
	{"a Write between the segments of a Read Response", func(sc *script) {
		sc.read(Client, 5, 6, 20)
		sc.segment(Server, rdmap.OpReadResponse, false, make([]byte, 10), at(5, 6))
		sc.message(Server, rdmap.OpWrite, make([]byte, 10))
		sc.segment(Server, rdmap.OpReadResponse, true, make([]byte, 10), at(5, 16))
	}, nil},

	{"pad", func(sc *script) {
		b := sc.fpdu(Client, make([]byte, 18+1)) // not a segment; that is judged as well
		b[2] = byte(ddp.NewControl(false, true))
		b[3] = byte(rdmap.NewControl(rdmap.OpSend))
		binary.BigEndian.PutUint32(b[12:], 2)
		b[len(b)-5] = 1
		sc.raw(Client, b)
	}, []string{"pad RFC 5044 §4.1 by client"}},
	{"ULPDU of the greatest length", func(sc *script) {
		sc.send(Client, mpa.MaxMULPDU-ddp.UntaggedHeaderLen)
	}, nil},
	{"ULPDU too long", func(sc *script) {
		sc.send(Client, mpa.MaxMULPDU-ddp.UntaggedHeaderLen+1)
	}, []string{"ulpdu-length RFC 5044 §3 by client"}},
	{"empty ULPDU", func(sc *script) {
		sc.ulpdu(Server, nil)
	}, []string{"ddp-header RFC 5041 §4.4 by server"}},
	{"half a DDP header", func(sc *script) {
		sc.ulpdu(Server, []byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	}, []string{"ddp-header RFC 5041 §4.4 by server"}},

	{"reserved DDP bits", func(sc *script) {
		sc.message(Client, rdmap.OpWrite, nil, control(0xFF, 0x20))
	}, []string{"ddp-reserved RFC 5041 §4.1 by client"}},
	{"DDP version", func(sc *script) {
		sc.message(Client, rdmap.OpWrite, nil, control(0xFC, 2))
		sc.message(Client, rdmap.OpSend, nil, control(0xFC, 0))
	}, []string{"ddp-version RFC 5041 §4.1 by client", "ddp-version RFC 5041 §4.1 by client"}},
	{"reserved RDMAP bits", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, rsvd(0, 0xFF, 0x10))
	}, []string{"rdmap-reserved RFC 5040 §4.1 by client"}},
	{"RDMAP version of the RDMA Consortium", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, rsvd(0, 0x3F, 0))
	}, nil},
	{"RDMAP version", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, rsvd(0, 0x3F, 0x80))
	}, []string{"rdmap-version RFC 5040 §4.1 by client"}},
	{"RDMAP version of an extension", func(sc *script) {
		sc.message(Client, rdmap.OpImmediate, make([]byte, 8), rsvd(0, 0x3F, 0))
	}, []string{"rdmap-version RFC 7306 §4.1 by client"}},
	{"reserved opcode", func(sc *script) {
		sc.message(Client, 12, nil, msn(2))
	}, []string{"opcode RFC 5040 §4.1 by client"}},
	{"tagged Send", func(sc *script) {
		sc.message(Client, rdmap.OpSend, []byte("x"), control(0xFF, 0x80))
	}, []string{"tagged-flag RFC 5040 §4.1 by client"}},
	{"untagged Write", func(sc *script) {
		sc.message(Client, rdmap.OpWrite, []byte("x"), control(0x7F, 0), msn(2))
	}, []string{"tagged-flag RFC 5040 §4.1 by client"}},
	{"tagged Immediate", func(sc *script) {
		sc.message(Client, rdmap.OpImmediate, make([]byte, 8), control(0xFF, 0x80))
	}, []string{"tagged-flag RFC 7306 §4.1 by client"}},
	{"queue of a Send", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, qn(1), msn(1))
	}, []string{"queue-number RFC 5040 §4.1 by client"}},
	{"queue that does not exist", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, qn(99), msn(77))
	}, []string{"queue-number RFC 5040 §4.1 by client"}},
	{"queue of an Atomic Response", func(sc *script) {
		sc.message(Server, rdmap.OpAtomicRequest, atomicRequest(1, nil))
		sc.message(Client, rdmap.OpAtomicResponse, atomicResponse(1), qn(1), msn(1))
	}, []string{"queue-number RFC 7306 §4.1 by client"}},
	{"Invalidate STag in a Send", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, rsvd(4, 0, 1))
	}, []string{"invalidate-stag RFC 5040 §4.1 by client"}},
	{"Invalidate STag in Immediate Data", func(sc *script) {
		sc.message(Client, rdmap.OpImmediate, make([]byte, 8), rsvd(2, 0, 1))
	}, []string{"invalidate-stag RFC 7306 §4.1 by client"}},
	{"TO wraps", func(sc *script) {
		sc.message(Client, rdmap.OpWrite, []byte("ab"), at(1, math.MaxUint64))
	}, []string{"to-wrap RFC 5041 §7.1 by client"}},
	{"TO at the end of its range", func(sc *script) {
		sc.message(Client, rdmap.OpWrite, []byte("a"), at(1, math.MaxUint64))
		sc.message(Client, rdmap.OpWrite, nil, at(1, math.MaxUint64))
	}, nil},

	{"first MSN", func(sc *script) {
		sc.message(Server, rdmap.OpSend, nil, msn(0))
		sc.message(Server, rdmap.OpSend, nil, msn(1))
	}, []string{"msn RFC 5041 §4.3 by server"}},
	{"MSN not increased by one", func(sc *script) {
		sc.message(Client, rdmap.OpSend, nil, msn(3))
		sc.message(Client, rdmap.OpSend, nil, msn(4))
	}, []string{"msn RFC 5041 §4.3 by client"}},
	{"MSN of a second queue", func(sc *script) {
		sc.read(Client, 1, 1, 1)
		sc.msn[Client][1] = 0
		sc.read(Client, 1, 1, 1)
	}, []string{"msn RFC 5041 §4.3 by client"}},
	{"message without a last segment", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, []byte("x"))
		sc.send(Client, 1)
	}, []string{"last-flag RFC 5041 §4.1 by client"}},
	{"segment behind the last", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, true, []byte("x"))
		sc.segment(Client, rdmap.OpSend, true, []byte("x"), msn(2), mo(1))
	}, []string{"last-flag RFC 5041 §4.1 by client"}},
	{"tagged message without a last segment", func(sc *script) {
		sc.segment(Client, rdmap.OpWrite, false, []byte("x"))
		sc.message(Client, rdmap.OpWrite, []byte("x"), at(9, 9))
	}, []string{"last-flag RFC 5041 §4.1 by client"}},
	{"Read Request without its last flag", func(sc *script) {
		sc.segment(Client, rdmap.OpReadRequest, false, make([]byte, rdmap.ReadRequestLen))
	}, []string{"last-flag RFC 5041 §4.1 by client"}},
	{"RsvdULP changes in an untagged message", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, []byte("x"))
		sc.segment(Client, rdmap.OpSendSE, true, []byte("x"), msn(2), mo(1))
	}, []string{"rsvdulp RFC 5041 §4.3 by client"}},
	{"Invalidate STag changes in a message", func(sc *script) {
		sc.segment(Client, rdmap.OpSendInvalidate, false, []byte("x"), rsvd(4, 0, 1))
		sc.segment(Client, rdmap.OpSendInvalidate, true, []byte("x"), rsvd(4, 0, 2), msn(2), mo(1))
	}, []string{"rsvdulp RFC 5041 §4.3 by client"}},
	{"RsvdULP changes in a tagged message", func(sc *script) {
		sc.segment(Client, rdmap.OpWrite, false, []byte("x"), at(1, 1))
		sc.segment(Client, rdmap.OpReadResponse, true, []byte("x"), at(1, 2))
	}, []string{"rsvdulp RFC 5041 §4.2 by client"}},
	{"RDMAP version changes in a tagged message", func(sc *script) {
		sc.segment(Client, rdmap.OpWrite, false, []byte("x"), at(1, 1))
		sc.segment(Client, rdmap.OpWrite, true, []byte("x"), at(1, 2), rsvd(0, 0x3F, 0))
	}, []string{"rsvdulp RFC 5041 §4.2 by client"}},
	{"MO of a first segment", func(sc *script) {
		sc.message(Client, rdmap.OpSend, []byte("x"), mo(4))
	}, []string{"mo RFC 5041 §5.2 by client"}},
	{"MO leaves a gap", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, []byte("x"))
		sc.segment(Client, rdmap.OpSend, true, []byte("x"), msn(2), mo(2))
	}, []string{"mo RFC 5041 §5.2 by client"}},
	{"MO repeats bytes", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, []byte("xy"))
		sc.segment(Client, rdmap.OpSend, true, []byte("x"), msn(2), mo(1))
	}, []string{"mo RFC 5041 §5.2 by client"}},
	{"TO leaves a gap", func(sc *script) {
		sc.segment(Client, rdmap.OpWrite, false, []byte("x"), at(1, 1))
		sc.segment(Client, rdmap.OpWrite, true, []byte("x"), at(1, 3))
	}, []string{"to RFC 5041 §5.2 by client"}},
	{"empty message of two segments", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, nil)
		sc.segment(Client, rdmap.OpSend, true, nil, msn(2))
	}, []string{"zero-length RFC 5041 §5.2 by client"}},
	{"message of 4 GiB", func(sc *script) {
		sc.segment(Client, rdmap.OpSend, false, []byte("x"))
		sc.segment(Client, rdmap.OpSend, true, []byte("x"), msn(2), mo(math.MaxUint32))
	}, []string{"mo RFC 5041 §5.2 by client", "message-length RFC 5041 §5.2 by client"}},

	{"Read Request too short", func(sc *script) {
		sc.message(Client, rdmap.OpReadRequest, make([]byte, 27))
		sc.respond(Server, 0, 0, 3) // it can't be told whether that fits
	}, []string{"rdmap-header RFC 5040 §4.2 by client"}},
	{"Read Request too long", func(sc *script) {
		sc.message(Client, rdmap.OpReadRequest, make([]byte, 29))
		sc.respond(Server, 0, 0, 0)
	}, []string{"rdmap-header RFC 5040 §4.2 by client"}},
	{"Read Request in two segments", func(sc *script) {
		b, _ := rdmap.ReadRequest{SinkSTag: 4, SinkTO: 5, Size: 6}.AppendBinary(nil)
		sc.segment(Client, rdmap.OpReadRequest, false, b[:20])
		sc.segment(Client, rdmap.OpReadRequest, true, b[20:], msn(1), mo(20))
		sc.respond(Server, 4, 5, 6)
	}, nil},
	{"more Reads than IRD", func(sc *script) {
		for range 6 {
			sc.read(Client, 1, 1, 1)
		}
		for range 6 {
			sc.respond(Server, 1, 1, 1)
		}
		for range 4 {
			sc.read(Client, 1, 1, 1)
		}
	}, []string{"outstanding-reads RFC 5040 §6.1 by client"}},
	{"more Reads and Atomics than ORD", func(sc *script) {
		for range 3 {
			sc.read(Server, 1, 1, 1)
		}
		sc.message(Server, rdmap.OpAtomicRequest, atomicRequest(1, nil))
		sc.message(Server, rdmap.OpAtomicRequest, atomicRequest(2, nil))
	}, []string{"outstanding-reads RFC 5040 §6.1 by server"}},
	{"Read Response without a Read", func(sc *script) {
		sc.respond(Server, 1, 1, 1)
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"Read Response to another STag", func(sc *script) {
		sc.read(Client, 1, 1, 1)
		sc.respond(Server, 2, 1, 1)
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"Read Response to another TO", func(sc *script) {
		sc.read(Client, 1, 1, 1)
		sc.respond(Server, 1, 2, 1)
		sc.read(Client, 1, 1, 1)
		sc.respond(Server, 1, 1, 1)
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"Read Response too short", func(sc *script) {
		sc.read(Client, 1, 1, 2)
		sc.respond(Server, 1, 1, 1)
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"Read Response too long", func(sc *script) {
		sc.read(Client, 1, 1, 2)
		sc.segment(Server, rdmap.OpReadResponse, false, make([]byte, 3), at(1, 1))
		sc.segment(Server, rdmap.OpReadResponse, true, make([]byte, 3), at(1, 4))
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"empty Read Response to a Read", func(sc *script) {
		sc.read(Client, 1, 1, 2)
		sc.respond(Server, 1, 1, 0)
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"Read Responses out of order", func(sc *script) {
		sc.read(Client, 1, 1, 2)
		sc.read(Client, 2, 2, 2)
		sc.respond(Server, 2, 2, 2)
		sc.respond(Server, 1, 1, 2)
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},
	{"Read Response in place of an Atomic Response", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, nil))
		sc.respond(Server, 1, 1, 1)
		sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(1))
	}, []string{"read-response RFC 5040 §5.2.2 by server"}},

	{"Immediate Data of seven bytes", func(sc *script) {
		sc.message(Client, rdmap.OpImmediate, make([]byte, 7))
	}, []string{"immediate-length RFC 7306 §6.3 by client"}},
	{"Immediate Data of nine bytes", func(sc *script) {
		sc.message(Client, rdmap.OpImmediateSE, make([]byte, 9))
	}, []string{"immediate-length RFC 7306 §6.3 by client"}},
	{"long Immediate Data", func(sc *script) {
		sc.message(Client, rdmap.OpImmediate, make([]byte, 900))
	}, []string{"immediate-length RFC 7306 §6.3 by client"}},
	{"atomic operation", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, func(r *rdmap.AtomicRequest) { r.Op = 1 }))
	}, []string{"atomic-operation RFC 7306 §5.2.1 by client"}},
	{"reserved bits of an Atomic Request", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, func(r *rdmap.AtomicRequest) { r.Reserved = 1 }))
	}, []string{"atomic-request RFC 7306 §5.2.1 by client"}},
	{"FetchAdd with something to compare", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, func(r *rdmap.AtomicRequest) { r.Compare = 1 }))
	}, []string{"atomic-request RFC 7306 §5.2.1 by client"}},
	{"Atomic Request too short", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, make([]byte, 51))
		sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(1))
	}, []string{"atomic-request RFC 7306 §5.2.1 by client"}},
	{"Atomic Response without a request", func(sc *script) {
		sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(1))
	}, []string{"atomic-response RFC 7306 §5.2.2 by server"}},
	{"Atomic Response of another request", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, nil))
		sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(2))
	}, []string{"atomic-response RFC 7306 §5.2.2 by server"}},
	{"Atomic Response out of order", func(sc *script) {
		sc.read(Client, 1, 1, 1)
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, nil))
		sc.message(Server, rdmap.OpAtomicResponse, atomicResponse(1))
		sc.respond(Server, 1, 1, 1)
	}, []string{"atomic-response RFC 7306 §5.2.2 by server"}},
	{"Atomic Response too long", func(sc *script) {
		sc.message(Client, rdmap.OpAtomicRequest, atomicRequest(1, nil))
		sc.message(Server, rdmap.OpAtomicResponse, make([]byte, 32))
	}, []string{"atomic-response RFC 7306 §5.2.2 by server"}},

	{"Terminate as it ought to be", func(sc *script) {
		bad := sc.make(Client, rdmap.OpSend, true, []byte("abc"))
		b, _ := bad.AppendBinary(nil)
		sc.ulpdu(Client, b)
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{
			Code: 0x1202, HdrCt: 0xC0, SegmentLen: uint16(len(b)), DDPHeader: b[:ddp.UntaggedHeaderLen],
		}))
		sc.send(Client, 4) // which the client may
	}, nil},
	{"something follows a Terminate", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{Code: 0x0000}))
		sc.send(Server, 4)
		sc.send(Server, 4)
	}, []string{"after-terminate RFC 5040 §5.4 by server"}},
	{"a second Terminate", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{Code: 0x2002}))
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{Code: 0x2002}))
	}, []string{"after-terminate RFC 5040 §5.4 by server"}},
	{"Terminate cut short", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, []byte{0x10, 0x02, 0xC0, 0, 0, 9})
	}, []string{"terminate RFC 5040 §4.8 by server"}},
	{"Terminate in siw's layout", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, append([]byte{0x12, 0x02, 0x03, 0, 0, 9}, make([]byte, 18)...))
	}, []string{"terminate RFC 5040 §4.8 by server"}},
	{"reserved bits of a Terminate", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, []byte{0x12, 0x02, 0, 1})
	}, []string{"terminate RFC 5040 §4.8 by server"}},
	{"Terminate code", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, []byte{0x21, 0x02, 0, 0})
	}, []string{"terminate-code RFC 5040 §4.8 by server"}},
	{"header in a Terminate that was not sent", func(sc *script) {
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{
			Code: 0x1202, HdrCt: 0xC0, SegmentLen: 82, DDPHeader: make([]byte, ddp.UntaggedHeaderLen),
		}))
	}, []string{"terminate-header RFC 5040 §4.8 by server"}},
	{"length in a Terminate", func(sc *script) {
		b, _ := sc.make(Client, rdmap.OpSend, true, []byte("abc")).AppendBinary(nil)
		sc.ulpdu(Client, b)
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{
			Code: 0x1202, HdrCt: 0xC0, SegmentLen: 3, DDPHeader: b[:ddp.UntaggedHeaderLen],
		}))
	}, []string{"terminate-length RFC 5040 §4.8 by server"}},
	{"Terminate of a segment long ago", func(sc *script) {
		b, _ := sc.make(Client, rdmap.OpSend, true, []byte("abc")).AppendBinary(nil)
		sc.ulpdu(Client, b)
		for range historyLen {
			sc.message(Client, rdmap.OpWrite, nil)
		}
		sc.message(Server, rdmap.OpTerminate, terminate(rdmap.Terminate{
			Code: 0x1202, HdrCt: 0xC0, SegmentLen: 3, DDPHeader: b[:ddp.UntaggedHeaderLen],
		}))
	}, nil},
	{"FPDU cut by the end of its stream", func(sc *script) {
		b := sc.fpdu(Client, make([]byte, 100))
		sc.raw(Client, b[:50])
	}, []string{"cut-fpdu RFC 5044 §4.1 by client"}},
}

func TestRuleOfFullOperation(t *testing.T) {
	for _, tc := range ruleCases {
		t.Run(tc.name, func(t *testing.T) {
			sc := newScript(t).start(false, false)
			sc.send(Client, 64)
			tc.play(sc)
			sc.close()
			sc.end().want(t, tc.want...)
		})
	}
}

// The same with CRCs and markers, which must change nothing. Pads are not
// judged where markers may lie between them.
func TestRuleOfFullOperationWithMarkers(t *testing.T) {
	for _, tc := range ruleCases {
		if tc.name == "pad" {
			continue // it edits an FPDU by hand
		}
		t.Run(tc.name, func(t *testing.T) {
			sc := newScript(t).start(true, true)
			sc.send(Client, 64)
			tc.play(sc)
			sc.close()
			sc.end().want(t, tc.want...)
		})
	}
}
