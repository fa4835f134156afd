package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The checks of a tagged segment before it is placed (RFC 5041 §7.1).
var taggedChecks = []conformance.Case{
	{
		Clause: "rfc5041-7.1-6", Name: "stag-nobody-gave", Also: []string{"rfc5041-4.2-5", "rfc5041-7.2-1"},
		Title: "A Write to an STag that the target never gave is refused: Terminate 0x1100",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
			w.Wrong = "an STag that nobody gave"
			s.Post(w)
			s.AwaitTerminate(wire.DDPInvalidSTag)
		},
	},
	{
		Clause: "rfc5041-7.1-6", Name: "stag-with-another-key",
		Title: "A Write to an STag whose last bit alone differs from a buffer's is refused, Terminate 0x1100, and not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(8)
			w := wire.Tagged(wire.Write, b.STag^1, b.TO, conformance.Pattern(8))
			w.Wrong = "an STag that differs in its last bit from the buffer's"
			s.Post(w)
			s.AwaitTerminate(wire.DDPInvalidSTag)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-6", Name: "stag-with-another-index",
		Title: "A Write to an STag whose first bit alone differs from a buffer's is refused, Terminate 0x1100 or 0x1102, and not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(8)
			w := wire.Tagged(wire.Write, b.STag^0x80000000, b.TO, conformance.Pattern(8))
			w.Wrong = "an STag that differs in its first bit from the buffer's"
			s.Post(w)
			s.AwaitTerminate(wire.DDPInvalidSTag, wire.DDPNotAssociated) // it may be another stream's
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-6", Name: "stag-before-bounds",
		Title: "A Write to an STag that nobody gave, at the highest TO, is refused for its STag, or for the wrap of its TO",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			w := wire.Tagged(wire.Write, 0xDEADBE00, 1<<64-4, conformance.Pattern(8))
			w.Wrong = "an STag that nobody gave, and a TO that wraps"
			s.Post(w)
			s.AwaitTerminate(wire.DDPInvalidSTag, wire.DDPWrap)
		},
	},
	{
		Clause: "rfc5041-7.1-6", Name: "read-response-to-an-stag-nobody-gave",
		Title: "A Read Response with another STag than the target's Read named, which nobody gave, is refused: Terminate 0x1100",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			h, b := awaitRead(t, s, 8)
			r := wire.Tagged(wire.ReadResponse, h.SinkSTag^1, h.SinkTO, conformance.Pattern(8))
			r.Wrong = "an STag that nobody gave"
			s.Post(r)
			s.AwaitTerminate(wire.DDPInvalidSTag)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-9", Name: "read-response-beyond",
		Title: "A Read Response that ends one octet beyond the sink's memory is refused, Terminate 0x1101, and not placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			h, b := awaitRead(t, s, 8)
			r := wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(9))
			r.Wrong = "it ends one octet beyond the memory"
			s.Post(r)
			s.AwaitTerminate(wire.DDPBounds)
			s.AwaitUntouched(b)
		},
	},
}

// awaitRead has the target's program read n bytes into memory of that size, and
// takes its request.
func awaitRead(t *conformance.T, s *conformance.Stream, n int) (wire.ReadHeader, *conformance.Buffer) {
	s.Hello()
	b := s.Buffer(max(n, 1))
	s.Posts(service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: b.MR, Length: uint32(n)}}, Remote: theirs})
	h, err := wire.ParseReadHeader(s.AwaitMessage(wire.ReadRequest).Payload)
	t.Check(err == nil, "a whole header of a Read Request", "%v", err)
	return h, b
}

// ddpTagged is the checks, with those that vary: where a segment lies, and which
// one of its message it is.
func ddpTagged() []conformance.Case {
	cases := slices.Clone(taggedChecks)
	for _, stag := range []uint32{0, 0xFFFFFFFF} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5041-7.1-6", Name: fmt.Sprintf("stag-%08x", stag),
			Title: fmt.Sprintf("A Write to STag 0x%08x, which nobody gave, is refused: Terminate 0x1100 or 0x1102", stag),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				w := wire.Tagged(wire.Write, stag, 0x1000, conformance.Pattern(8))
				w.Wrong = "an STag that nobody gave"
				s.Post(w)
				s.AwaitTerminate(wire.DDPInvalidSTag, wire.DDPNotAssociated)
			},
		})
	}
	for _, access := range []string{service.RemoteRead, service.LocalWrite} {
		cases = append(cases, notWritable(access))
	}
	for _, o := range outliers {
		cases = append(cases, o.conform())
	}
	for at, which := range positions {
		cases = append(cases, stagAt(at, which), boundsAt(at, which))
	}
	return cases
}

// notWritable is memory that may not be written to. The RFC has no code for that:
// what a target takes for the nearest one will do.
func notWritable(access string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-7", Name: "memory-with-" + access + "-only",
		Title: "A Write to memory that is open for " + access + " only is refused, and not placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 8, Access: []string{access}})
			w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8))
			w.Wrong = "an STag that does not allow it"
			s.Post(w)
			s.AwaitTerminate(wire.DDPInvalidSTag, wire.DDPBounds, wire.DDPNotAssociated, wire.RDMAPRights, wire.RDMAPProtectionOther)
			s.AwaitUntouched(b)
		},
	}
}

// An outlier is a Write that lies outside a buffer of 64 bytes.
type outlier struct {
	clause, name, what string
	to                 func(b *conformance.Buffer) uint64
	n                  int
	atEnd              bool // it is the buffer's end that it goes beyond
}

func (o outlier) conform() conformance.Case {
	return conformance.Case{
		Clause: o.clause, Name: o.name, Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("A Write of %d octets that %s is refused, Terminate 0x1101, and nothing of it is placed", o.n, o.what),
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 64, AtEnd: o.atEnd})
			w := wire.Tagged(wire.Write, b.STag, o.to(b), conformance.Pattern(o.n))
			w.Wrong = "it " + o.what
			s.Post(w)
			codes := []wire.Code{wire.DDPBounds}
			if w.TO+uint64(o.n) < w.TO { // the buffer's first TO is 0
				codes = wrapCodes
			}
			s.AwaitTerminate(codes...)
			s.AwaitUntouched(b)
		},
	}
}

// fromBegin returns a TO that many bytes from the buffer's beginning, fromEnd from its end.
func fromBegin(off uint64) func(b *conformance.Buffer) uint64 {
	return func(b *conformance.Buffer) uint64 { return b.TO + off }
}

func fromEnd(off uint64) func(b *conformance.Buffer) uint64 {
	return func(b *conformance.Buffer) uint64 { return b.TO + uint64(b.Length) + off }
}

const minusOne = ^uint64(0)

var outliers = []outlier{
	{"rfc5041-7.1-8", "the-octet-before", "lies one octet before the buffer", fromBegin(minusOne), 1, false},
	{"rfc5041-7.1-8", "begin-one-octet-before", "begins one octet before the buffer, and ends in it", fromBegin(minusOne), 9, false},
	{"rfc5041-7.1-8", "around-the-buffer", "begins one octet before the buffer, and reaches beyond its 64th", fromBegin(minusOne), 66, false},
	{"rfc5041-7.1-8", "the-octet-behind", "lies on the first octet behind the buffer", fromEnd(0), 1, true},
	{"rfc5041-7.1-8", "two-octets-behind", "begins one octet behind the buffer's end", fromEnd(1), 1, true},
	{"rfc5041-7.1-8", "to-with-a-higher-word", "has the buffer's TO but for the upper 32 bits", fromBegin(1 << 32), 8, false},
	{"rfc5041-7.1-8", "to-with-the-top-bit-changed", "has the buffer's TO but for its top bit", func(b *conformance.Buffer) uint64 { return b.TO ^ 1<<63 }, 8, false},
	{"rfc5041-7.1-9", "end-one-octet-beyond", "ends one octet beyond the buffer", fromBegin(1), 64, true},
	{"rfc5041-7.1-9", "last-octet-and-one-more", "begins on the buffer's last octet, and ends one beyond", fromEnd(minusOne), 2, true},
	{"rfc5041-7.1-9", "one-octet-too-long", "begins with the buffer, and ends one octet beyond", fromBegin(0), 65, true},
	{"rfc5041-7.1-9", "far-too-long", "begins with the buffer, and ends far beyond", fromBegin(0), 40_000, true},
}

// stagAt is a message of three segments one of which has an STag that nobody gave.
// That the STag changes is an error in itself, for which there is no code.
func stagAt(at int, which string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-6", Name: "stag-of-the-" + which + "-segment",
		Title: "A Write of three segments whose " + which + " one has an STag that nobody gave is refused there; what came before is placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(24)
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(24)), 8)
			segments[at].STag ^= 1
			segments[at].Wrong = "an STag that nobody gave"
			s.Post(segments...)
			s.AwaitTerminate(wire.DDPInvalidSTag, wire.DDPCatastrophic)
			holds(s, b, 0, conformance.Pattern(24)[:8*at])
		},
	}
}

// boundsAt is a message of three segments that leaves the buffer in one of them.
func boundsAt(at int, which string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-9", Name: "beyond-in-the-" + which + "-segment",
		Title: "A Write of three segments whose " + which + " one ends one octet beyond the buffer is refused there; what came before is placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.BufferAtEnd(64)
			off := b.Length - 8*at - 7
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO+uint64(off), conformance.Pattern(24)), 8)
			segments[at].Wrong = "it ends one octet beyond the buffer"
			s.Post(segments...)
			s.AwaitTerminate(wire.DDPBounds)
			holds(s, b, off, conformance.Pattern(24)[:8*at])
		},
	}
}
