package rdmap

import (
	"errors"
	"fmt"
	"testing"

	"urnic/ddp"
	"urnic/ddp/ddptest"
	"urnic/mpa"
	"urnic/stag"
)

// A failure is something that makes a side send a Terminate.
type failure struct {
	name    string
	provoke func(s *side, p *peer)
	want    TermCode
}

// failures are those that one incoming message causes, by the codes of RFC 5040
// Figure 9 and RFC 5041 §7.2. The side has IRD and ORD 2, two receive buffers
// of 64 bytes, and the region r of 64 bytes at base with all rights.
func failures(r func(s *side) region) []failure {
	tag := func(s *side) stag.STag { return r(s).tag }
	return []failure{
		// RDMAP: remote protection errors, of Sends with Invalidate
		{"0100 invalid STag", func(s *side, p *peer) { p.send(untagged(OpSendInvalidate, nil), invalidating(tag(s)^1)) }, 0x0100},
		{"0109 STag cannot be invalidated", func(s *side, p *peer) {
			tag := s.memory(8, stag.LocalWrite).tag
			p.send(untagged(OpSendSEInvalidate, nil), invalidating(tag))
		}, 0x0109},
		// RDMAP: remote operation errors
		{"0205 version of a Send", func(s *side, p *peer) { p.send(untagged(OpSend, nil), rdmapVersion(2)) }, 0x0205},
		{"0205 version of a Write", func(s *side, p *peer) { p.send(tagged(OpWrite, tag(s), base, []byte{1}), rdmapVersion(3)) }, 0x0205},
		{"0205 version of an empty Write", func(s *side, p *peer) { p.send(tagged(OpWrite, 0, 0, nil), rdmapVersion(2)) }, 0x0205},
		{"0205 version of a Read Request", func(s *side, p *peer) { p.send(readRequest(ReadRequest{}), rdmapVersion(2)) }, 0x0205},
		{"0205 version of a Terminate", func(s *side, p *peer) { p.send(terminateOf(Terminate{}), rdmapVersion(2)) }, 0x0205},
		{"0206 reserved opcode", func(s *side, p *peer) { p.send(untagged(OpSend, nil), opcode(12)) }, 0x0206},
		{"0206 reserved tagged opcode", func(s *side, p *peer) { p.send(tagged(OpWrite, tag(s), base, []byte{1}), opcode(15)) }, 0x0206},
		{"0206 no Read outstanding", func(s *side, p *peer) { p.send(tagged(OpReadResponse, 0, 0, nil)) }, 0x0206},
		{"0206 atomic code 1", func(s *side, p *peer) { p.send(atomicRequest(AtomicRequest{Op: 1})) }, 0x0206},
		{"0207 unaligned atomic", func(s *side, p *peer) { p.send(atomicRequest(AtomicRequest{STag: tag(s), TO: base + 1})) }, 0x0207},
		{"0207 Read Response too short", func(s *side, p *peer) {
			s.submit(readOf(1, 2, tag(s), base, 2))
			p.settle()
			p.next(OpReadRequest)
			p.send(tagged(OpReadResponse, tag(s), base, []byte{1}))
		}, 0x0207},
		{"0207 error of the ULP without a code", func(s *side, p *peer) {
			s.refuse = errors.New("no")
			p.send(untagged(OpSend, []byte("some")))
		}, 0x0207},
		{"0207 error of the ULP's buffer", func(s *side, p *peer) {
			s.unplaceable = errors.New("no")
			p.send(untagged(OpSend, []byte("some")))
		}, 0x0207},
		{"0208 error of the ULP with a code", func(s *side, p *peer) {
			s.refuse = fmt.Errorf("no: %w", &Error{Code: CodeGlobalCatastrophic})
			p.send(untagged(OpSend, []byte("some")))
		}, 0x0208},
		{"0207 error of the ULP as a Read completes", func(s *side, p *peer) {
			s.refuse = errors.New("no")
			s.submit(readOf(1, 2, tag(s), base, 0))
			p.settle()
			p.next(OpReadRequest)
			p.send(tagged(OpReadResponse, tag(s), base, nil))
		}, 0x0207},
		{"02FF length of a Read Request", func(s *side, p *peer) { p.send(untagged(OpReadRequest, make([]byte, 29))) }, 0x02FF},
		{"02FF length of an Atomic Request", func(s *side, p *peer) { p.send(untagged(OpAtomicRequest, make([]byte, 51))) }, 0x02FF},
		{"02FF length of Immediate Data", func(s *side, p *peer) { p.send(untagged(OpImmediate, make([]byte, 7))) }, 0x02FF},
		{"02FF Terminate too short", func(s *side, p *peer) { p.send(untagged(OpTerminate, []byte{2, 7, 0xC0})) }, 0x02FF},
		{"02FF Terminate without its headers", func(s *side, p *peer) { p.send(untagged(OpTerminate, []byte{2, 7, 0xC0, 0})) }, 0x02FF},
		// DDP: tagged buffer errors
		{"1100 invalid STag", func(s *side, p *peer) { p.send(tagged(OpWrite, tag(s)^1, base, []byte{1})) }, 0x1100},
		{"1101 TO out of bounds", func(s *side, p *peer) { p.send(tagged(OpWrite, tag(s), base-1, []byte{1})) }, 0x1101},
		{"1101 end out of bounds", func(s *side, p *peer) { p.send(tagged(OpWrite, tag(s), base+63, []byte{1, 2})) }, 0x1101},
		{"1102 STag of another stream", func(s *side, p *peer) {
			r := s.register(stag.Memory{Mem: make([]byte, 8), Base: base, Access: stag.LocalWrite | stag.RemoteWrite, Stream: 99})
			p.send(tagged(OpWrite, r.tag, base, []byte{1}))
		}, 0x1102},
		{"1102 missing right", func(s *side, p *peer) {
			p.send(tagged(OpWrite, s.memory(8, stag.LocalWrite|stag.RemoteRead).tag, base, []byte{1}))
		}, 0x1102},
		{"1103 TO wraps", func(s *side, p *peer) {
			r := s.register(stag.Memory{Mem: make([]byte, 64), Base: 1<<64 - 65, Access: stag.LocalWrite | stag.RemoteWrite})
			p.send(tagged(OpWrite, r.tag, 1<<64-2, []byte{1, 2, 3}))
		}, 0x1103},
		{"1104 DDP version of a tagged segment", func(s *side, p *peer) { p.send(tagged(OpWrite, 0, 0, nil), ddpVersion(0)) }, 0x1104},
		// DDP: untagged buffer errors
		{"1201 invalid QN", func(s *side, p *peer) { p.send(untagged(OpSend, nil), queue(4)) }, 0x1201},
		{"1202 no receive buffer", func(s *side, p *peer) {
			s.post()
			p.send(untagged(OpSend, nil))
			p.send(untagged(OpSend, nil))
			p.send(untagged(OpSend, nil))
		}, 0x1202},
		{"1202 too many Read Requests", func(s *side, p *peer) {
			p.push(readRequest(ReadRequest{}))
			p.push(readRequest(ReadRequest{}))
			p.push(readRequest(ReadRequest{}))
			s.receiveAll()
			p.settle()
		}, 0x1202},
		{"1202 no atomic outstanding", func(s *side, p *peer) { p.send(atomicResponse(1, 0)) }, 0x1202},
		{"1203 MSN of a message that was delivered", func(s *side, p *peer) {
			p.send(untagged(OpSend, nil))
			p.send(untagged(OpSend, nil), msn(1))
		}, 0x1203},
		{"1203 MSN ahead", func(s *side, p *peer) { p.send(untagged(OpSend, nil), msn(2)) }, 0x1203},
		{"1204 MO outside the buffer", func(s *side, p *peer) { p.send(untagged(OpSend, []byte{1}), mo(65)) }, 0x1204},
		{"1204 a gap", func(s *side, p *peer) { p.send(untagged(OpSend, []byte{1}), mo(5)) }, 0x1204},
		{"1205 message too long", func(s *side, p *peer) { p.send(untagged(OpSend, make([]byte, 65))) }, 0x1205},
		{"1206 DDP version of an untagged segment", func(s *side, p *peer) { p.send(untagged(OpSend, nil), ddpVersion(2)) }, 0x1206},
	}
}

// bareFailures are those whose Terminate has no header: nothing of an incoming
// message, or nothing that could be told, is to blame.
var bareFailures = []failure{
	{"0000 payload that can't be had", func(s *side, p *peer) {
		s.submit(&Operation{Op: OpSend, Length: 10, Payload: brokenPayload{}})
	}, 0x0000},
	{"0000 payload missing", func(s *side, p *peer) { s.submit(&Operation{Op: OpWrite, Length: 10}) }, 0x0000},
	{"0000 message too long", func(s *side, p *peer) { s.submit(&Operation{Op: OpWrite, Length: 1 << 32, Payload: payload(nil)}) }, 0x0000},
	{"0000 Read too long", func(s *side, p *peer) { s.submit(readOf(1, 2, 3, 4, 1<<32)) }, 0x0000},
	{"0000 Terminate as an operation", func(s *side, p *peer) { s.submit(&Operation{Op: OpTerminate}) }, 0x0000},
	{"0000 Read Response as an operation", func(s *side, p *peer) { s.submit(&Operation{Op: OpReadResponse}) }, 0x0000},
	{"0000 Atomic Response as an operation", func(s *side, p *peer) { s.submit(&Operation{Op: OpAtomicResponse}) }, 0x0000},
	{"0000 an opcode that there is not", func(s *side, p *peer) { s.submit(&Operation{Op: 200}) }, 0x0000},
	{"0000 more Reads than ORD", func(s *side, p *peer) {
		s.unready = true
		s.submit(readOf(1, 2, 3, 4, 0), readOf(1, 2, 3, 4, 0), addOf(1, 8, 1))
		p.settle()
		p.next(OpReadRequest)
		p.next(OpReadRequest)
	}, 0x0000},
	{"0207 the ULP gives up", func(s *side, p *peer) { s.stream.Fail(&Error{Code: CodeStreamCatastrophic}) }, 0x0207},
	{"0208 the device gives up", func(s *side, p *peer) { s.stream.Fail(&Error{Code: CodeGlobalCatastrophic}) }, 0x0208},
	{"1000 a segment shorter than its header", func(s *side, p *peer) { p.raw([]byte{0x41, 0x43, 0}) }, 0x1000},
	{"1000 a segment far ahead of its turn", func(s *side, p *peer) { p.inject(ddp.DefaultWindow+1, untagged(OpSend, nil)) }, 0x1000},
	{"2002 CRC", func(s *side, p *peer) {
		s.llp.cantReceive = &mpa.Error{Code: mpa.CodeCRC}
		s.receive()
	}, 0x2002},
	{"2003 marker", func(s *side, p *peer) {
		s.llp.cantReceive = fmt.Errorf("receive: %w", &mpa.Error{Code: mpa.CodeMarker})
		s.receive()
	}, 0x2003},
}

func TestEachErrorSendsItsTerminate(t *testing.T) {
	all := stag.LocalWrite | stag.RemoteWrite | stag.RemoteRead | stag.RemoteAtomic | stag.RemoteInvalidate
	t.Run("incoming message", func(t *testing.T) {
		var r region
		for _, tt := range failures(func(*side) region { return r }) {
			t.Run(tt.name, func(t *testing.T) {
				s, p := withPeer(t, Config{IRD: 2, ORD: 2})
				r = s.memory(64, all)
				s.post(64, 64)
				tt.provoke(s, p)
				p.settle()
				p.wantTerminate(tt.want)
				wantSurfaced(t, s, tt.want)
			})
		}
	})
	t.Run("Read Request", func(t *testing.T) {
		for _, tt := range wrongSources {
			t.Run(tt.name, func(t *testing.T) {
				s, p := withPeer(t, Config{IRD: 1})
				r := ReadRequest{SinkSTag: 1, SinkTO: 2, Size: 16}
				r.SrcSTag, r.SrcTO = tt.source(s)
				p.send(readRequest(r))
				p.wantTerminateOfRead(tt.want, r)
				wantSurfaced(t, s, tt.want)
			})
		}
	})
	t.Run("local error", func(t *testing.T) {
		for _, tt := range bareFailures {
			t.Run(tt.name, func(t *testing.T) {
				s, p := withPeer(t, Config{IRD: 2, ORD: 2})
				s.post(64)
				tt.provoke(s, p)
				p.settle()
				p.wantBareTerminate(tt.want)
			})
		}
	})
}

// wantSurfaced wants that the owner was told, with the clause that was broken.
func wantSurfaced(t *testing.T, s *side, want TermCode) {
	t.Helper()
	var e *Error
	if !errors.As(s.err, &e) || e.Code != want || e.Clause == "" && s.refuse == nil || e.Error() == "" {
		t.Errorf("Receive failed with %v; want %v and the clause", s.err, want)
	}
}

func TestTerminateCodesAreThoseOfFigure9(t *testing.T) {
	for code, name := range map[TermCode]string{
		0x0000: "RDMAP: local catastrophic error (0x0000)",
		0x0042: "RDMAP: local catastrophic error (0x0042)", // "Any value in this field is acceptable"
		0x0100: "RDMAP: invalid STag (0x0100)",
		0x0101: "RDMAP: base or bounds violation (0x0101)",
		0x0102: "RDMAP: access rights violation (0x0102)",
		0x0103: "RDMAP: STag not associated with RDMAP stream (0x0103)",
		0x0104: "RDMAP: TO wrap (0x0104)",
		0x0109: "RDMAP: STag cannot be invalidated (0x0109)",
		0x01FF: "RDMAP: unspecified remote protection error (0x01ff)",
		0x0205: "RDMAP: invalid RDMAP version (0x0205)",
		0x0206: "RDMAP: unexpected opcode (0x0206)",
		0x0207: "RDMAP: catastrophic error, localized to RDMAP stream (0x0207)",
		0x0208: "RDMAP: catastrophic error, global (0x0208)",
		0x0209: "RDMAP: STag cannot be invalidated (0x0209)",
		0x02FF: "RDMAP: unspecified remote operation error (0x02ff)",
		0x1101: "DDP: base or bounds violation (0x1101)",
		0x2002: "MPA: CRC error (0x2002)",
		0x0105: "layer 0 error type 1 code 0x05 (0x0105)", // Figure 9 has it under another type
		0x3000: "layer 3 error type 0 code 0x00 (0x3000)",
	} {
		if code.String() != name {
			t.Errorf("%#04x is %q; want %q", uint16(code), code.String(), name)
		}
	}
	for name, code := range map[string]struct{ got, want TermCode }{
		"LocalCatastrophic":           {CodeLocalCatastrophic, 0x0000},
		"InvalidSTag":                 {CodeInvalidSTag, 0x0100},
		"BaseBounds":                  {CodeBaseBounds, 0x0101},
		"AccessRights":                {CodeAccessRights, 0x0102},
		"STagNotAssociated":           {CodeSTagNotAssociated, 0x0103},
		"TOWrap":                      {CodeTOWrap, 0x0104},
		"CannotInvalidate":            {CodeCannotInvalidate, 0x0109},
		"ProtectionUnspecified":       {CodeProtectionUnspecified, 0x01FF},
		"InvalidVersion":              {CodeInvalidVersion, 0x0205},
		"UnexpectedOpcode":            {CodeUnexpectedOpcode, 0x0206},
		"StreamCatastrophic":          {CodeStreamCatastrophic, 0x0207},
		"GlobalCatastrophic":          {CodeGlobalCatastrophic, 0x0208},
		"OperationCannotInvalidate":   {CodeOperationCannotInvalidate, 0x0209},
		"OperationUnspecified":        {CodeOperationUnspecified, 0x02FF},
		"DDP's through its TermWord":  {TermCode(ddp.CodeInvalidMO.TermWord()), 0x1204},
		"MPA's through its TermWords": {TermCode(mpa.CodeMarker.TermWord()), 0x2003},
	} {
		if code.got != code.want {
			t.Errorf("%s is %#04x; want %#04x", name, uint16(code.got), uint16(code.want))
		}
	}
}

func TestUnexpectedOpcodeTerminates(t *testing.T) {
	for op := range uint8(16) {
		o := Opcode(op)
		for qn := range uint32(NumQueues) {
			if o.Valid() && !o.Tagged() && o.Queue() == qn {
				continue
			}
			t.Run(fmt.Sprintf("opcode %d on queue %d", op, qn), func(t *testing.T) {
				s, p := withPeer(t, Config{IRD: 1, ORD: 1})
				s.post(64)
				s.submit(addOf(1, 8, 1)) // so that queue 3 has a buffer
				p.settle()
				p.next(OpAtomicRequest)
				p.send(untagged(OpSend, make([]byte, 8)), queue(qn), opcode(op))
				p.wantTerminate(CodeUnexpectedOpcode)
				if len(s.delivered)+len(s.completed) != 0 || s.term != nil {
					t.Error("the ULP was told of a message")
				}
			})
		}
		if o.Tagged() {
			continue
		}
		for _, n := range []int{0, 8} {
			t.Run(fmt.Sprintf("tagged opcode %d of %d octets", op, n), func(t *testing.T) {
				s, p := withPeer(t, Config{})
				r := s.memory(8, stag.LocalWrite|stag.RemoteWrite)
				p.send(tagged(OpWrite, r.tag, base, []byte("not this")[:n]), opcode(op))
				p.wantTerminate(CodeUnexpectedOpcode)
				if *r.cell(0) != 0 {
					t.Error("it was placed")
				}
			})
		}
	}
}

func TestUnexpectedVersionTerminates(t *testing.T) {
	messages := func(r region) []ddp.Segment {
		return []ddp.Segment{
			tagged(OpWrite, r.tag, base, []byte("new data")), tagged(OpWrite, 0, 0, nil), tagged(OpReadResponse, r.tag, base, []byte("new data")),
			untagged(OpSend, nil), untagged(OpSendSE, []byte("x")), untagged(OpSendInvalidate, nil), untagged(OpSendSEInvalidate, nil),
			untagged(OpImmediate, make([]byte, 8)), untagged(OpImmediateSE, make([]byte, 8)),
			readRequest(ReadRequest{}), atomicRequest(AtomicRequest{STag: r.tag, TO: base}), atomicResponse(2, 0), terminateOf(Terminate{}),
		}
	}
	for i := range messages(region{}) {
		for version := range uint8(4) {
			s, p := withPeer(t, Config{IRD: 1, ORD: 2})
			r := s.memory(8, stag.LocalWrite|stag.RemoteWrite|stag.RemoteAtomic|stag.RemoteInvalidate)
			s.post(8)
			seg := messages(r)[i]
			op := Control(seg.Tagged.RsvdULP | seg.Untagged.RsvdULP[0]).Opcode()
			switch op { // what is a response needs a request
			case OpReadResponse:
				s.submit(readOf(1, 2, r.tag, base, 8))
			case OpAtomicResponse:
				s.submit(addOf(1, 8, 1))
			}
			p.settle()
			if op == OpAtomicResponse {
				seg = atomicResponse(p.nextAtomic().RequestID, 0)
			}
			p.seen = len(p.ref.messages)
			p.send(seg, rdmapVersion(version), invalidating(r.tag))
			if version < 2 { // that of RFC 5040, and that of the RDMA Consortium: both are valid
				if s.err != nil {
					t.Errorf("%v of version %d: %v", op, version, s.err)
				}
				continue
			}
			p.wantTerminate(CodeInvalidVersion)
			if len(s.delivered)+len(s.completed) != 0 || s.term != nil || *r.cell(0) != 0 || !r.entry.Valid() {
				t.Errorf("%v of version %d had an effect", op, version)
			}
		}
	}
}

func TestLostConnectionSendsNoTerminate(t *testing.T) {
	s, p := withPeer(t, Config{}, ddptest.Options{})
	for _, err := range []error{&mpa.Error{Code: mpa.CodeConnectionLost}, errors.New("reset")} {
		s.llp.cantReceive = err
		if got := s.stream.Receive(); !errors.Is(got, err) {
			t.Errorf("Receive failed with %v; want %v as it is", got, err)
		}
	}
	s.transmit()
	p.wantNothing()
}
