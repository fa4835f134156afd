package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// The MSNs that a target takes (RFC 5041 §4.3, §7.1).
func ddpMSN() []conformance.Case {
	cases := slices.Clone(msnChecks)
	for _, msn := range []uint32{0, 2, 3, 0x01000000, 0x10001, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF} {
		cases = append(cases, sendMSN(msn))
	}
	for _, msn := range []uint32{0, 1000, 0x01000000, 0x80000000, 0xFFFFFFFF} {
		cases = append(cases, requestMSN(msn))
	}
	return cases
}

// outOfRange is what an MSN without a buffer is called: it has none, and is not
// between those that have one.
var outOfRange = []wire.Code{wire.DDPNoBuffer, wire.DDPMSNRange}

func sendMSN(msn uint32) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-5", Name: fmt.Sprintf("first-send-with-msn-0x%x", msn), Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("A first Send with MSN 0x%x, where one receive is posted, is refused: Terminate 0x1203 or 0x1202", msn),
		Needs: conformance.NeedRecv,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.MSN, m.Wrong = msn, "the first MSN is one"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
		},
	}
}

func requestMSN(msn uint32) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-5", Name: fmt.Sprintf("first-read-request-with-msn-0x%x", msn),
		Title: fmt.Sprintf("A first Read Request with MSN 0x%x is refused: Terminate 0x1203 or 0x1202", msn),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.MSN, m.Wrong = msn, "the first MSN is one"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
		},
	}
}

var msnChecks = []conformance.Case{
	{
		Clause: "rfc5041-7.1-5", Name: "read-request-repeated",
		Title: "A Read Request with the MSN of one that was answered is refused: Terminate 0x1203 or 0x1202",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.MSN, m.Wrong = 1, "an MSN that has been"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "counted-by-queue",
		Title: "Behind three Read Requests, a Send with the MSN 4 that would be due on their queue is refused: Terminate 0x1203 or 0x1202",
		Needs: conformance.NeedRecv,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			for range 3 {
				s.AwaitAlive()
			}
			m := s.Due(wire.Untagged(wire.Send, conformance.Pattern(8)))
			m.MSN, m.Wrong = m.MSN+3, "an MSN that counts the messages of another queue"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
		},
	},
	{
		Clause: "rfc5041-5.3-3", Name: "send-repeated",
		Title: "A Send with the MSN of one that was delivered is refused, Terminate 0x1203 or 0x1202, and the next receive gets nothing",
		Also:  []string{"rfc5041-7.1-5"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8}})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			s.Post(m)
			delivers(t, s, m.Payload)
			m.MSN, m.Wrong = 1, "an MSN that has been"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "far-behind",
		Title: "After ten Sends, one with MSN 3 is refused, Terminate 0x1203 or 0x1202, and not delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{8}, 12)})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			for range 10 {
				s.Post(m)
				delivers(t, s, m.Payload)
			}
			m.MSN, m.Wrong = 3, "an MSN that has been"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "one-behind-the-last-receive",
		Title: "A Send whose MSN is one more than that of the last receive posted is refused, Terminate 0x1203 or 0x1202, and not delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8, 8}})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.MSN, m.Wrong = 4, "an MSN for which no receive is posted"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "range-moves-on",
		Title: "The range of MSNs moves with the receives: hundreds of Sends in turn are delivered, though never more than two receives are posted",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8}})
			for i := range 260 { // more than a byte counts
				data := conformance.Pattern(8 + i)[i:]
				s.Post(wire.Untagged(wire.Send, data))
				delivers(t, s, data)
				s.PostsRecv(8)
			}
		},
	},
	{
		Clause: "rfc5041-5.3-4", Name: "send-ahead-of-its-turn",
		Title: "A Send with MSN 2 that comes before that with MSN 1, with two receives posted, is refused, or delivered second",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16, 16}})
			first, second := wire.Untagged(wire.Send, conformance.Pattern(8)), wire.Untagged(wire.Send, conformance.Pattern(12))
			second.MSN, second.Wrong = 2, "MSN 1 is in turn"
			s.PostExact(second, wire.Flaw{})
			if refuses(t, s, outOfRange...) {
				drain(t, s)
				deliversNothing(t, s)
				return
			}
			s.AwaitNoCompletion("recv", "as MSN 1 has not come")
			first.MSN = 1
			s.PostExact(first, wire.Flaw{})
			delivers(t, s, first.Payload)
			delivers(t, s, second.Payload)
		},
	},
	{
		Clause: "rfc5041-5.3-4", Name: "read-request-ahead-of-its-turn",
		Title: "A Read Request with MSN 2 that comes before that with MSN 1 is refused, or answered second",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			if s.IRD < 2 {
				t.Skip("the target takes no more than %d Reads at a time", s.IRD)
			}
			first := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			second := conformance.ReadRequest(conformance.SinkSTag+1, conformance.SinkTO, 0, 0, 0)
			second.MSN, second.Wrong = 2, "MSN 1 is in turn"
			s.PostExact(second, wire.Flaw{})
			if refusesSoon(t, s, outOfRange...) {
				return
			}
			first.MSN = 1
			s.PostExact(first, wire.Flaw{})
			a, err := nextAnswer(s, t.Timeout())
			if err == nil && a.Opcode == wire.Terminate { // a refusal that has come late
				terminates(t, a, err, outOfRange...)
				return
			}
			expected := "the response to the first Read Request, or a Terminate"
			t.Check(err == nil, expected, "%v", err)
			t.Check(a.Opcode == wire.ReadResponse && a.STag == conformance.SinkSTag && len(a.Payload) == 0 && a.Last, expected, "%s", a.Segment)
			s.AwaitResponse(conformance.SinkSTag+1, conformance.SinkTO, 0)
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "msn-changes-within-the-message",
		Title: "A message whose second segment has the next MSN is not delivered as one",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16, 16}})
			for i, seg := range conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(16)), 8) {
				seg.MSN = uint32(1 + i)
				if i > 0 {
					seg.Wrong = "it has another MSN than the segment before"
				}
				s.PostExact(seg, wire.Flaw{})
			}
			if refusesSoon(t, s, wire.DDPNoBuffer, wire.DDPMSNRange, wire.DDPInvalidMO) {
				drain(t, s)
			}
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "next-message-before-the-last-segment",
		Title: "A message whose last segment has not come holds up the next one: that is refused, or delivered after it",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16, 16}})
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(16)), 8)
			next := wire.Untagged(wire.Send, conformance.Pattern(12))
			segments[0].MSN, segments[1].MSN, next.MSN = 1, 1, 2
			next.Wrong = "the message before is not over"
			s.PostExact(segments[0], wire.Flaw{})
			s.PostExact(next, wire.Flaw{})
			if refusesSoon(t, s, wire.DDPNoBuffer, wire.DDPMSNRange, wire.DDPInvalidMO) {
				drain(t, s)
				deliversNothing(t, s)
				return
			}
			s.AwaitNoCompletion("recv", "as the first message is not whole")
			s.PostExact(segments[1], wire.Flaw{})
			if deliversUnlessRefused(t, s, conformance.Pattern(16), wire.DDPNoBuffer, wire.DDPMSNRange, wire.DDPInvalidMO) {
				delivers(t, s, next.Payload)
			}
		},
	},
}
