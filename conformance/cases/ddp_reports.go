package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// A failing is something that DDP has to refuse: the segments, all but the last one
// of which are in order, and the code.
type failing struct {
	name, what string
	needs      conformance.Needs
	segments   func(s *conformance.Stream) []wire.Segment
}

// ddpReports is the cases on what a report of an error holds: the Terminate has the
// DDP header and the length of the segment that failed (RFC 5041 §7.1, RFC 5040
// §4.8).
func ddpReports() []conformance.Case {
	var cases []conformance.Case
	for _, f := range failings {
		cases = append(cases, conformance.Case{
			Clause: "rfc5041-7.1-15", Name: f.name,
			Title: fmt.Sprintf("The Terminate for %s has the DDP header and the length of that segment", f.what),
			Needs: f.needs,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				segments := f.segments(s)
				var failed wire.Segment
				for i, seg := range segments {
					failed = s.Due(seg)
					if i == len(segments)-1 {
						failed.Wrong = "this is what has to be reported"
					}
					s.PostExact(failed, wire.Flaw{})
				}
				reports(t, answer(t, s, wire.Terminate), failed)
			},
		})
	}
	return cases
}

// reports makes sure that a Terminate has the headers of a segment.
func reports(t *conformance.T, a wire.Arrival, failed wire.Segment) {
	h, err := wire.ParseTerminate(a.Payload)
	t.Check(err == nil, "a whole Terminate", "one of %d octets", len(a.Payload))
	t.Check(h.Control&(wire.TermM|wire.TermD) == wire.TermM|wire.TermD, "M=1 and D=1", "the octet %02x", h.Control)
	length, header, _, err := h.Headers()
	t.Check(err == nil, "the headers that the control bits announce", "%x: %v", h.Tail, err)
	t.Check(bytes.Equal(header, failed.Header()), fmt.Sprintf("the DDP header %x", failed.Header()), "%x", header)
	want := len(failed.Octets())
	t.Check(int(length) == want, fmt.Sprintf("a DDP Segment Length of %d", want), "%d", length)
}

var failings = []failing{
	{
		name: "stag", what: "a Write of 57 octets to an STag that nobody gave",
		segments: func(*conformance.Stream) []wire.Segment {
			return []wire.Segment{wire.Tagged(wire.Write, 0xDEADBE00, 0xFEDCBA9876543210, conformance.Pattern(57))}
		},
	},
	{
		name: "long-segment", what: "a Write of 40000 octets to an STag that nobody gave",
		segments: func(*conformance.Stream) []wire.Segment {
			return []wire.Segment{wire.Tagged(wire.Write, 0xDEADBE00, 0x1000, conformance.Pattern(40_000))}
		},
	},
	{
		name: "segment-without-l", what: "a first segment, with L=0, to an STag that nobody gave",
		segments: func(*conformance.Stream) []wire.Segment {
			return conformance.Segments(wire.Tagged(wire.Write, 0xDEADBE00, 0x1000, conformance.Pattern(40)), 23)[:1]
		},
	},
	{
		name: "queue", what: "a Send to a queue that there is not",
		segments: func(*conformance.Stream) []wire.Segment {
			m := wire.Untagged(wire.Send, conformance.Pattern(33))
			m.QN, m.MSN, m.MO = 0x89ABCDEF, 0x12345678, 0x1020304
			return []wire.Segment{m}
		},
	},
	{
		name: "untagged-version", what: "a Read Request with DV 3",
		segments: func(*conformance.Stream) []wire.Segment {
			r := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			r.Version = 3
			return []wire.Segment{r}
		},
	},
	{
		name: "empty-segment", what: "a Write of no octets with DV 2",
		segments: func(*conformance.Stream) []wire.Segment {
			w := wire.Tagged(wire.Write, 0x01020304, 5, nil)
			w.Version = 2
			return []wire.Segment{w}
		},
	},
	{
		name: "third-segment-of-a-write", what: "the third segment of a Write, that leaves the buffer,", needs: conformance.NeedBuffer,
		segments: func(s *conformance.Stream) []wire.Segment {
			b := s.BufferAtEnd(64)
			off := uint64(b.Length - 8*2 - 7)
			return conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO+off, conformance.Pattern(30)), 8)[:3]
		},
	},
	{
		name: "third-segment-of-a-send", what: "the third segment of a Send, that is too long for the receive,", needs: conformance.NeedRecv,
		segments: func(*conformance.Stream) []wire.Segment {
			return conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(3*7)), 7)
		},
	},
	{
		name: "msn", what: "a Send with an MSN for which there is no receive", needs: conformance.NeedService,
		segments: func(s *conformance.Stream) []wire.Segment {
			s.SetMSN(0, 1000)
			return []wire.Segment{wire.Untagged(wire.Send, conformance.Pattern(5))}
		},
	},
}
