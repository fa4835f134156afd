package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The segments that the target makes of its program's messages (RFC 5041 §4.2,
// §4.3): headers, and what is the same in each segment of a message.
var ddpSending = []conformance.Case{
	{
		Clause: "rfc5041-4.2-1", Name: "write",
		Title: "The segment of a Write of 8 octets is 14 octets of header, as figure 4 draws it, and the data",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpWrite, Data: conformance.Pattern(8), Remote: theirs})
			u := s.Await(wire.Write).FPDU.ULPDU
			want := binary.BigEndian.AppendUint32(nil, uint32(theirs.STag))
			want = append(binary.BigEndian.AppendUint64(want, uint64(theirs.TO)), conformance.Pattern(8)...)
			t.Check(len(u) == 2+len(want), fmt.Sprintf("%d octets", 2+len(want)), "%d", len(u))
			t.Check(u[0]&0xC0 == 0xC0, "T=1 and L=1", "the octet %02x", u[0])
			t.Check(bytes.Equal(u[2:], want), fmt.Sprintf("%x behind the control fields", want), "%x", u[2:])
		},
	},
	{
		Clause: "rfc5041-4.3-1", Name: "send",
		Title: "The segment of the second Send, of 8 octets, is 18 octets of header, as figure 5 draws it, and the data",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend}, service.Post{Op: service.OpSend, Data: conformance.Pattern(8)})
			s.Await(wire.Send)
			u := s.Await(wire.Send).FPDU.ULPDU
			want := append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}, conformance.Pattern(8)...)
			t.Check(len(u) == 2+len(want), fmt.Sprintf("%d octets", 2+len(want)), "%d", len(u))
			t.Check(u[0]&0xC0 == 0x40, "T=0 and L=1", "the octet %02x", u[0])
			t.Check(bytes.Equal(u[2:], want), fmt.Sprintf("%x behind the control fields", want), "%x", u[2:])
		},
	},
	{
		Clause: "rfc5041-4.2-2", Name: "write",
		Title: "RsvdULP of a Write of several segments has RDMAP's version and opcode in each",
		Also:  []string{"rfc5041-4.2-4"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpWrite, Data: conformance.Pattern(longMessage), Remote: theirs})
			sameControl(t, message(s, wire.Write), 0x40)
		},
	},
	{
		Clause: "rfc5041-4.2-4", Name: "read-response",
		Title: "RsvdULP is the same in each segment of a Read Response of several",
		Also:  []string{"rfc5041-4.2-2"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			sameControl(t, longResponse(t, s), 0x42)
		},
	},
	{
		Clause: "rfc5041-4.3-2", Name: "send-with-invalidate",
		Title: "RsvdULP of a Send with SE and Invalidate of several segments has opcode and STag in each",
		Also:  []string{"rfc5041-4.3-4"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			need(t, features(t).Invalidate, "Send with Invalidate")
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSendSEInvalidate, Data: conformance.Pattern(longMessage), Invalidate: 0xA1B2C3D4})
			segments := message(s, wire.SendSEInvalidate)
			sameControl(t, segments, 0x46)
			for _, a := range segments {
				t.Check(a.Invalidate == 0xA1B2C3D4, "STag 0xa1b2c3d4 in RsvdULP", "0x%08x in %s", a.Invalidate, a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-4", Name: "send",
		Title: "RsvdULP is the same in each segment of a Send of several",
		Also:  []string{"rfc5041-4.3-2"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			segments := longSend(t, s)
			sameControl(t, segments, 0x43)
			for _, a := range segments {
				t.Check(a.Invalidate == 0, "zeros in the rest of RsvdULP", "0x%08x in %s", a.Invalidate, a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.2-6", Name: "write",
		Title: "A Write has the STag and the TO that the target's program has given, whatever they are",
		Also:  []string{"rfc5041-5.2-7"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			for _, r := range []service.Remote{{STag: 1, TO: 1}, {STag: 0xFEDCBA98, TO: 0xFEDCBA9876543210}, {STag: 0x00FF00FF, TO: 0}} {
				s.Posts(service.Post{Op: service.OpWrite, Data: conformance.Pattern(4), Remote: r})
				a := s.Await(wire.Write)
				t.Check(a.STag == uint32(r.STag) && a.TO == uint64(r.TO), fmt.Sprintf("STag %s TO %s", r.STag, r.TO), "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.2-6", Name: "read-response",
		Title: "A Read Response has the STag and the TO that the Read Request has named as its sink, whatever they are",
		Also:  []string{"rfc5041-5.2-7"},
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			for _, sink := range []service.Remote{{STag: 1, TO: 1}, {STag: 0xFEDCBA98, TO: 0xFEDCBA9876543210}, {STag: 0x00FF00FF, TO: 0}} {
				s.Post(conformance.ReadRequest(uint32(sink.STag), uint64(sink.TO), 0, 0, 0))
				s.AwaitResponse(uint32(sink.STag), uint64(sink.TO), 0)
			}
		},
	},
	{
		Clause: "rfc5041-4.2-8", Name: "write",
		Title: "Each segment of a Write of several has the STag that the target's program has given",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpWrite, Data: conformance.Pattern(longMessage), Remote: theirs})
			sameSTag(t, message(s, wire.Write), uint32(theirs.STag))
		},
	},
	{
		Clause: "rfc5041-4.2-8", Name: "read-response",
		Title: "Each segment of a Read Response of several has the STag of the sink that the Read Request has named",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			sameSTag(t, longResponse(t, s), conformance.SinkSTag)
		},
	},
	{
		Clause: "rfc5041-4.3-6", Name: "send",
		Title: "Each segment of a Send of several is on queue 0",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			for _, a := range longSend(t, s) {
				t.Check(a.QN == 0, "queue 0", "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-6", Name: "read-request",
		Title: "A Read Request of the target is on queue 1",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			sink := s.Buffer(8)
			s.Posts(service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: sink.MR, Length: 8}}, Remote: theirs})
			a := s.Await(wire.ReadRequest)
			t.Check(a.QN == 1, "queue 1", "%s", a.Segment)
		},
	},
	{
		Clause: "rfc5041-4.3-6", Name: "terminate",
		Title: "A Terminate of the target is on queue 2",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
			w.Wrong = "an STag that nobody gave"
			s.Post(w)
			a := answer(t, s, wire.Terminate)
			t.Check(a.QN == 2, "queue 2", "%s", a.Segment)
		},
	},
	{
		Clause: "rfc5041-4.4-1", Name: "sent",
		Title: "Each segment that the target sends holds its DDP header",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend}, service.Post{Op: service.OpWrite, Remote: theirs}, service.Post{Op: service.OpSend, Data: []byte{1}})
			for range 3 {
				a, err := s.Next(t.Timeout())
				t.Check(err == nil, "a segment", "%v", err)
				breaks(t, []wire.Arrival{a}, wire.FaultShort)
			}
		},
	},
}

// opened opens a connection on which the target may send.
func opened(t *conformance.T) *conformance.Stream {
	s := t.Open(conformance.Setup{})
	s.Hello()
	return s
}

// longSend has the target send a message of several segments, and returns them.
func longSend(t *conformance.T, s *conformance.Stream) []wire.Arrival {
	s.Posts(service.Post{Op: service.OpSend, Data: conformance.Pattern(longMessage)})
	return several(t, message(s, wire.Send))
}

// longResponse reads so much of the target that its response has several segments,
// and returns them.
func longResponse(t *conformance.T, s *conformance.Stream) []wire.Arrival {
	b := s.Buffer(longMessage)
	s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, longMessage, b.STag, b.TO))
	return several(t, message(s, wire.ReadResponse))
}

// several makes sure that there are several segments.
func several(t *conformance.T, segments []wire.Arrival) []wire.Arrival {
	t.Check(len(segments) > 1, fmt.Sprintf("several segments, as none can hold %d octets", longMessage), "one of %d", len(segments[0].Payload))
	return segments
}

// sameControl makes sure that the second byte, with which RsvdULP begins, is
// the same in all segments.
func sameControl(t *conformance.T, segments []wire.Arrival, want byte) {
	for _, a := range several(t, segments) {
		t.Check(a.FPDU.ULPDU[1] == want, fmt.Sprintf("0x%02x at the beginning of RsvdULP", want), "0x%02x in %s", a.FPDU.ULPDU[1], a.Segment)
	}
}

func sameSTag(t *conformance.T, segments []wire.Arrival, want uint32) {
	for _, a := range several(t, segments) {
		t.Check(a.STag == want, fmt.Sprintf("STag 0x%08x in each segment", want), "%s", a.Segment)
	}
}
