package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// The FPDU that a Marker stands in: a Write of 32 bytes, from ULPDU_Length to the
// CRC.
const (
	markedData = 32
	markedLen  = lengthLen + taggedLen + markedData + crcLen
	interval   = 512
)

// Markers in what the target receives (RFC 5044 §4.2, §4.3).
func framingMarkers() []conformance.Case {
	var cases []conformance.Case
	for at := 0; at < markedLen; at += 4 {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.3-12", Name: fmt.Sprintf("marker-at-%d", at), Also: []string{"rfc5044-4.3-5"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A Marker %s is taken out of an FPDU before its data are placed", place(at)),
			Run: func(t *conformance.T) {
				m := markedMemory(t, at)
				m.s.Post(m.write(0, conformance.Pattern(markedData)))
				m.check()
			},
		})
	}
	for _, n := range []int{1000, mulpduRFC, 1 << 14, maxULPDU} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.3-12", Name: fmt.Sprintf("markers-in-%d", n), Also: []string{"rfc5044-3-6", "rfc5044-6-3"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("The %d Markers in a ULPDU of %s are taken out before its data are placed", n/(interval-markerLen)+1, octets(n)),
			Run: func(t *conformance.T) {
				needMarkers(t)
				var setup conformance.Setup
				setup.Start.Markers = true
				receivesULPDU(t, setup, n)
			},
		})
	}
	for _, c := range []struct {
		at   int
		bits uint16
	}{{0, 3}, {20, 1}, {20, 2}, {20, 3}, {markedLen - crcLen, 3}} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.2-4", Name: fmt.Sprintf("bits-%d-at-%d", c.bits, c.at), Also: []string{"rfc5044-4.3-6"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("The low bits %02b of the FPDUPTR of a Marker %s are taken for zeros", c.bits, place(c.at)),
			Run: func(t *conformance.T) {
				m := markedMemory(t, c.at)
				m.s.PostFlawed(m.write(0, conformance.Pattern(markedData)), wire.Flaw{
					Marker: func(_ int, p uint16) uint16 { return p | c.bits },
					Wrong:  "the low two bits of FPDUPTR are not zero",
				})
				m.check()
			},
		})
	}
	for _, at := range []int{0, 20, markedLen - crcLen} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.2-2", Name: fmt.Sprintf("ignored-at-%d", at), Needs: conformance.NeedService,
			Title: fmt.Sprintf("The reserved field of a Marker %s is ignored, but covered by the CRC", place(at)),
			Run: func(t *conformance.T) {
				m := markedMemory(t, at)
				m.s.PostFlawed(m.write(0, conformance.Pattern(markedData)), wire.Flaw{Reserved: 0xFFFF, Wrong: "the reserved field is not zero"})
				m.check()
			},
		}, conformance.Case{
			Clause: "rfc5044-4.3-5", Name: fmt.Sprintf("damaged-at-%d", at), Also: []string{"rfc5044-4.4-11", "rfc5044-8-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A Marker %s is covered by the CRC of its FPDU: if a reserved bit of it changes, the stream ends, and nothing is placed", place(at)),
			Run: func(t *conformance.T) {
				refusesMarked(t, at, wire.Flaw{
					FlipAfter: func(b []byte) { b[at+1] ^= 1 },
					Wrong:     "a bit of the Marker is not what the CRC covers",
				})
			},
		}, conformance.Case{
			Clause: "rfc5044-4.3-5", Name: fmt.Sprintf("not-in-the-crc-at-%d", at), Also: []string{"rfc5044-4.4-11", "rfc5044-8-2"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A CRC that does not cover a Marker %s is wrong: the stream ends, and nothing is placed", place(at)),
			Run: func(t *conformance.T) {
				refusesMarked(t, at, wire.Flaw{
					FlipAfter: resum(func(b []byte) uint32 {
						return crc32c(append(append([]byte(nil), b[:at]...), b[at+markerLen:]...))
					}),
					Wrong: "the CRC does not cover the Marker",
				})
			},
		}, conformance.Case{
			Clause: "rfc5044-8-9", Name: fmt.Sprintf("fpduptr-at-%d", at), Also: []string{"rfc5044-8-3", "rfc5044-8-7"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("An FPDUPTR that points elsewhere, in a Marker %s, with a CRC that is right, is error 3: Terminate 0x2003", place(at)),
			Run: func(t *conformance.T) {
				m := markedMemory(t, at)
				w := wire.Tagged(wire.Write, m.b.STag, m.b.TO, conformance.Pattern(markedData))
				m.s.PostFlawed(w, wire.Flaw{
					Marker: func(_ int, p uint16) uint16 { return p + 8 },
					Wrong:  "FPDUPTR is 8 too large",
				})
				m.s.AwaitTerminate(wire.MPAMarker)
				m.s.AwaitUntouched(m.b)
			},
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc5044-4.3-12", Name: "long-stream", Also: []string{"rfc5044-6-3"}, Needs: conformance.NeedService,
		Title: "The Markers in a Write of 200000 octets, in 141 FPDUs, are taken out before its data are placed",
		Run: func(t *conformance.T) {
			needMarkers(t)
			var setup conformance.Setup
			setup.Start.Markers = true
			s := t.Open(setup)
			m := openMemory(t, s, 200_000)
			s.Post(conformance.Segments(m.write(0, conformance.Pattern(m.b.Length)), mulpduRFC-taggedLen)...)
			m.check()
		},
	})
	return append(cases, conformance.Case{
		Clause: "rfc5044-8-2", Name: "markers-left-out", Also: []string{"rfc5044-6-2"}, Needs: conformance.NeedService,
		Title: "A Marker that is due and missing puts the CRC elsewhere: the stream ends, and nothing is placed",
		Run: func(t *conformance.T) {
			m := markedMemory(t, 20)
			w := wire.Tagged(wire.Write, m.b.STag, m.b.TO, conformance.Pattern(markedData))
			m.s.PostFlawed(w, wire.Flaw{NoMarkers: true, Wrong: "the Marker that is due is missing"})
			sendRaw(m.s, filler(m.s, markedLen), "FPDUs that are right", "")
			m.s.AwaitTeardown()
			m.s.AwaitUntouched(m.b)
		},
	})
}

// place says where in an FPDU a Marker stands.
func place(at int) string {
	switch {
	case at == 0:
		return "before its ULPDU_Length"
	case at == markedLen-crcLen:
		return "before its CRC"
	case at < lengthLen+taggedLen:
		return fmt.Sprintf("in its DDP header, at %d", at)
	}
	return fmt.Sprintf("in its data, at %d", at)
}

// markedMemory opens a connection in which the target wants Markers, and memory; in
// the next FPDU, if it has markedLen bytes, the first Marker is due at byte at.
func markedMemory(t *conformance.T, at int) *memory {
	needMarkers(t)
	var setup conformance.Setup
	setup.Start.Markers = true
	s := t.Open(setup)
	// The first Marker, and a Write that ends at bytes before the second one.
	elsewhere := s.Buffer(interval)
	n := interval - markerLen - lengthLen - taggedLen - crcLen - at
	s.Post(wire.Tagged(wire.Write, elsewhere.STag, elsewhere.TO, make([]byte, n)))
	b := s.Buffer(2 * markedData)
	return &memory{t: t, s: s, b: b, want: fills(b.Length)} // to read it would move what follows
}

// fills returns what n bytes of the test service's memory hold at first.
func fills(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = conformance.Fill
	}
	return b
}

// refusesMarked sends an FPDU with a Marker that makes it invalid.
func refusesMarked(t *conformance.T, at int, flaw wire.Flaw) {
	m := markedMemory(t, at)
	w := wire.Tagged(wire.Write, m.b.STag, m.b.TO, conformance.Pattern(markedData))
	m.s.PostFlawed(w, flaw)
	m.s.AwaitTeardown()
	m.s.AwaitUntouched(m.b)
}
