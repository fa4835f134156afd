package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// How large the target makes segments, and that all data are in them (RFC 5041
// §5.2).
func ddpSizes() []conformance.Case {
	cases := slices.Clone(segmentSizes)
	for _, n := range []int{109, 110, 111, 220, 1000} { // 110 and the header of 18 are 128
		cases = append(cases, fits(wire.Send, n))
	}
	for _, n := range []int{113, 114, 115, 1000} { // 114 and the header of 14 are 128
		cases = append(cases, fits(wire.Write, n), fits(wire.ReadResponse, n))
	}
	for _, n := range []int{1, 2, 3, 4, 5, 63, 1500, 65535} {
		cases = append(cases, allData(n))
	}
	return cases
}

// smallMULPDU is the smallest one that MPA may have (RFC 5044 §3), and DDP at all (RFC 5041 §5.1).
const smallMULPDU = 128

// small opens a connection with the smallest MULPDU, on which the target may send.
func small(t *conformance.T) *conformance.Stream {
	need(t, features(t).MULPDU || t.OverRDP(), "to be told the MULPDU") // of RDP, the tester's size of segments tells
	s := t.Open(conformance.Setup{Start: service.Start{MULPDU: smallMULPDU}})
	s.Hello()
	return s
}

func fits(op wire.Opcode, n int) conformance.Case {
	names := map[wire.Opcode]string{wire.Send: "send", wire.Write: "write", wire.ReadResponse: "read-response"}
	return conformance.Case{
		Clause: "rfc5041-5.2-2", Name: fmt.Sprintf("%s-of-%d", names[op], n), Also: []string{"rfc5041-3-2"},
		Title: fmt.Sprintf("With a MULPDU of 128, each segment of a message of %d octets (%s) has 128 octets at most, header and all", n, op),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := small(t)
			data := conformance.Pattern(n)
			switch op {
			case wire.ReadResponse:
				b := s.Buffer(n)
				t.Try(t.Service().MemoryWrite(t.Context(), b.MR, 0, data), "writing into the target's memory")
				s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, uint32(n), b.STag, b.TO))
			case wire.Write:
				s.Posts(service.Post{Op: service.OpWrite, Data: data, Remote: theirs})
			default:
				s.Posts(service.Post{Op: service.OpSend, Data: data})
			}
			segments := message(s, op)
			for _, a := range segments {
				t.Check(len(a.FPDU.ULPDU) <= smallMULPDU, "segments of 128 octets at most", "one of %d", len(a.FPDU.ULPDU))
			}
			t.Check(bytes.Equal(payload(segments), data), fmt.Sprintf("all %d octets", n), "%d octets", len(payload(segments)))
		},
	}
}

func allData(n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-5.2-4", Name: fmt.Sprintf("send-of-%d", n),
		Title: fmt.Sprintf("A Send of %d octets has all of them, and no others", n),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			data := conformance.Pattern(n)
			s.Posts(service.Post{Op: service.OpSend, Data: data})
			got := payload(message(s, wire.Send))
			t.Check(bytes.Equal(got, data), fmt.Sprintf("the %d octets posted", n), "%d octets, %x", len(got), head(got))
		},
	}
}

var segmentSizes = []conformance.Case{
	{
		Clause: "rfc5041-5.2-1", Name: "send",
		Title: "The segments of a Send are made of header and payload: none is empty, and together they are the message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend, Data: counted()})
			pieces(t, message(s, wire.Send))
		},
	},
	{
		Clause: "rfc5041-5.2-1", Name: "write",
		Title: "The segments of a Write are made of header and payload: none is empty, and together they are the message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpWrite, Data: counted(), Remote: theirs})
			pieces(t, message(s, wire.Write))
		},
	},
	{
		Clause: "rfc5041-5.2-4", Name: "gathered",
		Title: "A Write of three pieces of the target's memory has all of them, in the order posted",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			b := s.Buffer(longMessage)
			data := counted()
			t.Try(t.Service().MemoryWrite(t.Context(), b.MR, 0, data), "writing into the target's memory")
			s.Posts(service.Post{Op: service.OpWrite, Remote: theirs, SGL: []service.Piece{
				{MR: b.MR, Offset: 100_000, Length: 50_000}, {MR: b.MR, Length: 1}, {MR: b.MR, Offset: 1, Length: 99_999},
			}})
			got := payload(message(s, wire.Write))
			want := slices.Concat(data[100_000:], data[:100_000])
			t.Check(bytes.Equal(got, want), "the pieces, one behind the other", "%d octets, %x", len(got), head(got))
		},
	},
	{
		Clause: "rfc5041-5.2-4", Name: "read-response",
		Title: "A Read Response has all the data that were asked for",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(longMessage)
			data := counted()
			t.Try(t.Service().MemoryWrite(t.Context(), b.MR, 0, data), "writing into the target's memory")
			got := s.Read(b.STag, b.TO+3, longMessage-5)
			t.Check(bytes.Equal(got, data[3:longMessage-2]), "the memory's octets", "%x", head(got))
		},
	},
}

// pieces makes sure that segments of counted data have payload, and all data.
func pieces(t *conformance.T, segments []wire.Arrival) {
	for _, a := range several(t, segments) {
		t.Check(len(a.Payload) > 0, "payload in each segment", "%s", a.Segment)
	}
	t.Check(bytes.Equal(payload(segments), counted()), "the message", "%d octets", len(payload(segments)))
}
