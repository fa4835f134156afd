package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// Segments that end before their header does (RFC 5041 §4.4). The RFC has no code
// for that: the stream has to end, in whatever way.
func ddpShort() []conformance.Case {
	const taggedHeader, untaggedHeader = 14, 18
	tagged := wire.Tagged(wire.Write, 0, 0, nil).Octets()
	untagged := wire.Untagged(wire.Send, nil).Octets()
	cases := []conformance.Case{shortSegment("no-octet", "A segment of no octets", nil)}
	for n := 1; n < taggedHeader; n++ {
		cases = append(cases, shortSegment(fmt.Sprintf("tagged-header-of-%d", n),
			fmt.Sprintf("A tagged segment of %d octets, where its header has 14,", n), tagged[:n]))
	}
	for n := 1; n < untaggedHeader; n++ {
		cases = append(cases, shortSegment(fmt.Sprintf("untagged-header-of-%d", n),
			fmt.Sprintf("An untagged segment of %d octets, where its header has 18,", n), untagged[:n]))
	}
	return cases
}

func shortSegment(name, title string, octets []byte) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-4.4-1", Name: name,
		Title: title + " ends the stream",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			flaw := wire.Flaw{Wrong: "it is shorter than its header"}
			t.Try(s.SendULPDU(octets, flaw, fmt.Sprintf("a segment of %d octets", len(octets))), "sending the segment")
			s.AwaitTeardown()
		},
	}
}
