package cases

import (
	"slices"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// The end of the 64 bits of TO (RFC 5041 §7.1). The list has the bounds before the
// wrap, and what wraps is out of bounds as well: either code will do.
var wrapCodes = []wire.Code{wire.DDPBounds, wire.DDPWrap}

func ddpTaggedWrap() []conformance.Case {
	cases := slices.Clone(taggedWrap)
	for at, which := range positions {
		cases = append(cases, wrapAt(at, which))
	}
	return cases
}

var taggedWrap = []conformance.Case{
	{
		Clause: "rfc5041-7.1-10", Name: "to-wraps",
		Title: "A Write to a buffer's STag that begins 8 octets before the highest TO, and has 16, is refused, Terminate 0x1103 or 0x1101, and not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			w := wire.Tagged(wire.Write, b.STag, 1<<64-8, conformance.Pattern(16))
			w.Wrong = "its TO wraps"
			s.Post(w)
			s.AwaitTerminate(wrapCodes...)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-10", Name: "wraps-into-the-buffer",
		Title: "A Write to a buffer whose first TO is 0, that begins at the highest TOs and by its wrap would end in it, is refused, and not placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			need(t, features(t).ZeroBased, "memory whose TO begins at 0")
			b := s.BufferOf(conformance.BufferSpec{Length: 64, ZeroBased: true})
			w := wire.Tagged(wire.Write, b.STag, 1<<64-8, conformance.Pattern(16))
			w.Wrong = "its TO wraps, and so would end in the buffer"
			s.Post(w)
			s.AwaitTerminate(wrapCodes...)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-10", Name: "highest-offset",
		Title: "A Write that begins behind a buffer on the highest TO, and has one octet, is refused, and not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			w := wire.Tagged(wire.Write, b.STag, 1<<64-1, conformance.Pattern(1))
			w.Wrong = "its TO plus its length is 2 to the 64"
			s.Post(w)
			s.AwaitTerminate(wrapCodes...)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-10", Name: "up-to-the-top",
		Title: "A Write that fills a buffer whose end is TO 2^64-1 is placed: it does not wrap",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := topBuffer(t, s)
			data := conformance.Pattern(b.Length)
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO, data))
			s.AwaitAlive()
			s.AwaitContents(b, 0, data)
		},
	},
}

// topBuffer opens memory of the target that ends with TO 2^64-2, the last byte
// whose end is a TO.
func topBuffer(t *conformance.T, s *conformance.Stream) *conformance.Buffer {
	need(t, features(t).Base, "memory whose TO begins where it is told")
	const n = 64
	return s.BufferOf(conformance.BufferSpec{Length: n, Base: 1<<64 - 1 - n})
}

func wrapAt(at int, which string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-10", Name: "wraps-in-the-" + which + "-segment",
		Title: "A Write of three segments whose TO wraps in the " + which + " one, in a buffer that ends with TO 2^64-1, is refused there; what came before is placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := topBuffer(t, s)
			off := b.Length - 8*at - 4
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO+uint64(off), conformance.Pattern(24)), 8)
			segments[at].Wrong = "its TO wraps"
			s.Post(segments...)
			s.AwaitTerminate(wrapCodes...)
			holds(s, b, off, conformance.Pattern(24)[:8*at])
		},
	}
}
