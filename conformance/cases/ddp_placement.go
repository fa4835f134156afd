package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// Segments that are valid, and have to be placed (RFC 5041 §4.1, §5.2).
func ddpPlacement() []conformance.Case {
	cases := slices.Clone(placements)
	for _, p := range []struct {
		name   string
		off, n int
	}{{"first-octet", 0, 1}, {"last-octet", 63, 1}, {"all-octets", 0, 64}, {"some-octets", 13, 29}} {
		cases = append(cases, writePart(p.name, p.off, p.n))
	}
	for _, n := range []int{1, 2, 3, 7, 8, 31, 63} {
		cases = append(cases, writeInSegments(n))
	}
	for _, n := range []int{1, 3, 4, 99, 199} {
		cases = append(cases, sendInSegments(n))
	}
	return cases
}

func writePart(name string, off, n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-5.2-5", Name: "write-to-the-" + name, Also: []string{"rfc5041-7.1-8", "rfc5041-7.1-9"},
		Title: fmt.Sprintf("A Write of %d octets at octet %d of a buffer of 64 is placed there", n, off),
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			data := conformance.Pattern(n)
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO+uint64(off), data))
			s.AwaitAlive()
			s.AwaitContents(b, off, data)
			if b.MR != 0 {
				holds(s, b, off, data)
			}
		},
	}
}

func writeInSegments(n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-5.2-5", Name: fmt.Sprintf("write-in-segments-of-%d", n),
		Title: fmt.Sprintf("A Write of 64 octets in segments of %d at most is placed, each at its TO", n),
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			data := conformance.Pattern(64)
			s.Post(conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), n)...)
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	}
}

func sendInSegments(n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-5.2-5", Name: fmt.Sprintf("send-in-segments-of-%d", n), Also: []string{"rfc5041-5.4-2"},
		Title: fmt.Sprintf("A Send of 200 octets in segments of %d at most is delivered whole", n),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{300}})
			data := conformance.Pattern(200)
			s.Post(conformance.Segments(wire.Untagged(wire.Send, data), n)...)
			delivers(t, s, data)
		},
	}
}

// uneven cuts a message into segments of these lengths; the last one takes the rest.
func uneven(message wire.Segment, lengths ...int) []wire.Segment {
	var out []wire.Segment
	rest := message
	for _, n := range lengths {
		two := conformance.Segments(rest, n)
		seg := two[0]
		out = append(out, seg)
		rest.Payload = rest.Payload[n:]
		if rest.Tagged {
			rest.TO += uint64(n)
		} else {
			rest.MO += uint32(n)
		}
	}
	return append(out, rest)
}

var placements = []conformance.Case{
	{
		Clause: "rfc5041-5.2-5", Name: "write-in-uneven-segments",
		Title: "A Write in segments of 1, 30, 2, 20 and 11 octets is placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			data := conformance.Pattern(64)
			s.Post(uneven(wire.Tagged(wire.Write, b.STag, b.TO, data), 1, 30, 2, 20)...)
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5041-5.2-5", Name: "long-write",
		Title: "A Write of 300000 octets in segments as long as there can be is placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(300_000)
			data := conformance.Pattern(b.Length)
			w := wire.Tagged(wire.Write, b.STag, b.TO, data)
			s.Post(conformance.Segments(w, wire.MaxULPDU-len(w.Header()))...)
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5041-5.2-5", Name: "long-send",
		Title: "A Send of 300000 octets in segments as long as there can be is delivered whole",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{300_000}})
			m := wire.Untagged(wire.Send, conformance.Pattern(300_000))
			s.Post(conformance.Segments(m, wire.MaxULPDU-len(m.Header()))...)
			delivers(t, s, m.Payload)
		},
	},
	{
		Clause: "rfc5041-5.2-5", Name: "segments-in-falling-to-order",
		Title: "A Write whose segments come in falling order of their TO, which a source should not do, is placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(24)
			data := conformance.Pattern(24)
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), 8)
			slices.Reverse(segments)
			for i := range segments {
				segments[i].Last = i == len(segments)-1
			}
			s.Post(segments...)
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5041-5.2-5", Name: "segments-in-mixed-mo-order",
		Title: "A Send whose second segment comes before its first, which a source should not do, is delivered whole",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{24}})
			data := conformance.Pattern(24)
			segments := conformance.Segments(wire.Untagged(wire.Send, data), 8)
			segments[0], segments[1] = segments[1], segments[0]
			s.Post(segments...)
			delivers(t, s, data)
		},
	},
	{
		Clause: "rfc5041-4.1-1", Name: "write-then-send",
		Title: "A Write with a receive posted is placed into the buffer of its STag, and the receive is left to the Send behind it",
		Also:  []string{"rfc5041-4.1-2"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8}})
			b := s.Buffer(16)
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8)))
			sent := conformance.Pattern(12)[4:]
			s.Post(wire.Untagged(wire.Send, sent))
			delivers(t, s, sent)
			holds(s, b, 0, conformance.Pattern(8))
		},
	},
	{
		Clause: "rfc5041-4.1-2", Name: "send-that-names-an-stag",
		Title: "A Send that has a buffer's STag where that of a Write stands is delivered, and the buffer stays as it is",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64}})
			b := s.Buffer(64)
			m := wire.Untagged(wire.Send, conformance.Pattern(16))
			m.Invalidate, m.Wrong = b.STag, "the Invalidate STag of a plain Send, which is ignored, names a buffer"
			s.Post(m)
			delivers(t, s, m.Payload)
			s.AwaitUntouched(b)
		},
	},
}
