package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The DDP Control Field (RFC 5041 §4.1): reserved bits and DV, in what the target
// gets and in what it sends.
func ddpControl() []conformance.Case {
	cases := []conformance.Case{reservedInTheMiddle, versionInTheMiddle(true), versionInTheMiddle(false)}
	for _, bits := range []uint8{1, 2, 4, 8, 15} {
		cases = append(cases, reservedUntagged(bits), reservedTagged(bits))
	}
	for _, dv := range []uint8{0, 2, 3} {
		cases = append(cases, versionTagged(dv), versionEmpty(dv), versionUntagged(dv), versionSend(dv))
	}
	for _, sent := range []struct {
		clause string
		rule   wire.Rule
		what   string
	}{
		{"rfc5041-4.1-8", wire.FaultReserved, "DDP's reserved bits zero"},
		{"rfc5041-4.1-9", wire.FaultVersion, "DV 1"},
	} {
		cases = append(cases, controlOfResponse(sent.clause, sent.rule, sent.what),
			controlOfTerminate(sent.clause, sent.rule, sent.what), controlOfRequests(sent.clause, sent.rule, sent.what))
	}
	return cases
}

func reservedUntagged(bits uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.1-8", Name: fmt.Sprintf("read-request-with-reserved-bits-%04b", bits),
		Title: fmt.Sprintf("A Read Request whose four reserved DDP bits are %04b is answered", bits),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			r := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			r.Reserved, r.Wrong = bits, "reserved bits that are not zero, and must not be checked"
			s.Post(r)
			s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
		},
	}
}

func reservedTagged(bits uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.1-8", Name: fmt.Sprintf("write-with-reserved-bits-%04b", bits),
		Title: fmt.Sprintf("An RDMA Write whose four reserved DDP bits are %04b is placed", bits),
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(8)
			w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8))
			w.Reserved, w.Wrong = bits, "reserved bits that are not zero, and must not be checked"
			s.Post(w)
			s.AwaitAlive()
			s.AwaitContents(b, 0, w.Payload)
		},
	}
}

var reservedInTheMiddle = conformance.Case{
	Clause: "rfc5041-4.1-8", Name: "reserved-bits-that-change",
	Title: "A Write of three segments, each with other reserved DDP bits, is placed",
	Needs: conformance.NeedBuffer,
	Run: func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		b := s.Buffer(24)
		w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(24))
		for i, seg := range conformance.Segments(w, 8) {
			seg.Reserved, seg.Wrong = uint8(5*i+1), "reserved bits that are not zero, and must not be checked"
			s.Post(seg)
		}
		s.AwaitAlive()
		s.AwaitContents(b, 0, w.Payload)
	},
}

func versionTagged(dv uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.1-10", Name: fmt.Sprintf("write-with-version-%d", dv), Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("An RDMA Write with DV %d is refused, Terminate 0x1104, and not placed", dv),
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(8)
			w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8))
			w.Version, w.Wrong = dv, fmt.Sprintf("DV is %d", dv)
			s.Post(w)
			s.AwaitTerminate(wire.DDPTaggedVersion)
			s.AwaitUntouched(b)
		},
	}
}

func versionEmpty(dv uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.1-10", Name: fmt.Sprintf("empty-write-with-version-%d", dv), Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("An RDMA Write of no octets with DV %d is refused: Terminate 0x1104", dv),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			w := wire.Tagged(wire.Write, 0, 0, nil)
			w.Version, w.Wrong = dv, fmt.Sprintf("DV is %d", dv)
			s.Post(w)
			s.AwaitTerminate(wire.DDPTaggedVersion)
		},
	}
}

func versionUntagged(dv uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.1-10", Name: fmt.Sprintf("read-request-with-version-%d", dv), Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("A Read Request with DV %d is refused: Terminate 0x1206", dv),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			r := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			r.Version, r.Wrong = dv, fmt.Sprintf("DV is %d", dv)
			s.Post(r)
			s.AwaitTerminate(wire.DDPUntaggedVersion)
		},
	}
}

func versionSend(dv uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.1-10", Name: fmt.Sprintf("send-with-version-%d", dv), Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("A Send with DV %d, for which a receive is posted, is refused: Terminate 0x1206", dv),
		Needs: conformance.NeedRecv,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(conformance.RecvLen))
			m.Version, m.Wrong = dv, fmt.Sprintf("DV is %d", dv)
			s.Post(m)
			s.AwaitTerminate(wire.DDPUntaggedVersion)
		},
	}
}

// versionInTheMiddle changes DV in the second of two segments.
func versionInTheMiddle(tagged bool) conformance.Case {
	c := conformance.Case{
		Clause: "rfc5041-4.1-10", Name: "send-whose-version-changes", Also: []string{"rfc5041-7.2-1"},
		Title: "A Send whose second segment has DV 0 is refused, Terminate 0x1206, and not delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(16)), 8)
			segments[1].Version, segments[1].Wrong = 0, "DV changes to 0 within the message"
			s.Post(segments...)
			s.AwaitTerminate(wire.DDPUntaggedVersion)
			drain(t, s)
			deliversNothing(t, s)
		},
	}
	if tagged {
		c.Name = "write-whose-version-changes"
		c.Title = "A Write whose second segment has DV 0 is refused, Terminate 0x1104, and only the first is placed"
		c.Needs = conformance.NeedBuffer
		c.Run = func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(16)
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(16)), 8)
			segments[1].Version, segments[1].Wrong = 0, "DV changes to 0 within the message"
			s.Post(segments...)
			s.AwaitTerminate(wire.DDPTaggedVersion)
			holds(s, b, 0, conformance.Pattern(8))
		}
	}
	return c
}

func controlOfResponse(clause string, rule wire.Rule, what string) conformance.Case {
	return conformance.Case{
		Clause: clause, Name: "read-response",
		Title: "A Read Response of the target has " + what,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			breaks(t, []wire.Arrival{answer(t, s, wire.ReadResponse)}, rule)
		},
	}
}

func controlOfTerminate(clause string, rule wire.Rule, what string) conformance.Case {
	return conformance.Case{
		Clause: clause, Name: "terminate",
		Title: "A Terminate of the target has " + what,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
			w.Wrong = "an STag that nobody gave"
			s.Post(w)
			breaks(t, []wire.Arrival{answer(t, s, wire.Terminate)}, rule)
		},
	}
}

func controlOfRequests(clause string, rule wire.Rule, what string) conformance.Case {
	return conformance.Case{
		Clause: clause, Name: "requests",
		Title: "Each segment of the Sends, Writes and Reads that the target's program posts has " + what,
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			sink := s.Buffer(8)
			long := conformance.Pattern(longMessage)
			s.Posts(
				service.Post{Op: service.OpSend, Data: long},
				service.Post{Op: service.OpSendSE},
				service.Post{Op: service.OpWrite, Data: long, Remote: theirs},
				service.Post{Op: service.OpWrite, Remote: theirs},
				service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: sink.MR, Length: 8}}, Remote: theirs},
			)
			for _, op := range []wire.Opcode{wire.Send, wire.SendSE, wire.Write, wire.Write, wire.ReadRequest} {
				breaks(t, message(s, op), rule)
			}
		},
	}
}

// longMessage is the length of a message that no single segment can hold, as an
// FPDU's length has 16 bits.
const longMessage = 150_000

// theirs is where the target's requests put or find their data: it is the tester's,
// and nothing.
var theirs = service.Remote{STag: 0x0BADF00D, TO: 0x0123456789ABCD00}
