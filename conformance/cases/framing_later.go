package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// framingLater is the rules of FPDUs where they apply again: to the later Markers of an
// FPDU, and to later FPDUs (RFC 5044 §4, §8).
func framingLater() []conformance.Case {
	cases := manyMarkers()
	return append(cases, laterMarkers, laterCRC, lastCRC, piecesCRC, laterPads, laterSent(false), laterSent(true))
}

// manyMarkers is FPDUs with many Markers one of which, or each, is unusual.
func manyMarkers() []conformance.Case {
	var cases []conformance.Case
	for _, c := range []struct{ n, nth int }{{mulpduRFC, 1}, {maxULPDU, 1}, {maxULPDU, 63}, {maxULPDU, 126}} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-8-9", Name: fmt.Sprintf("fpduptr-of-marker-%d-in-%d", c.nth+1, c.n), Also: []string{"rfc5044-8-3", "rfc5044-8-7"},
			Needs: conformance.NeedService,
			Title: fmt.Sprintf("An FPDUPTR that points elsewhere, in Marker %d of an FPDU with a ULPDU of %s, is error 3: Terminate 0x2003", c.nth+1, octets(c.n)),
			Run: func(t *conformance.T) {
				s := opensMarkers(t)
				b := s.Buffer(c.n - taggedLen)
				s.PostFlawed(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(b.Length)), wire.Flaw{
					Marker: func(n int, p uint16) uint16 {
						if n == c.nth {
							return p + 8
						}
						return p
					},
					Wrong: fmt.Sprintf("FPDUPTR of Marker %d is 8 too large", c.nth+1),
				})
				s.AwaitTerminate(wire.MPAMarker)
				s.AwaitUntouched(b)
			},
		})
	}
	for _, c := range []struct {
		clause, name, title string
		flaw                wire.Flaw
	}{
		{
			"rfc5044-4.2-4", "bits-3-in-each", "The low bits 11 of the FPDUPTR of each Marker in a long FPDU are taken for zeros",
			wire.Flaw{Marker: func(_ int, p uint16) uint16 { return p | 3 }, Wrong: "the low two bits of each FPDUPTR are not zero"},
		},
		{
			"rfc5044-4.2-2", "ignored-in-each", "The reserved field of each Marker in a long FPDU is ignored, but covered by the CRC",
			wire.Flaw{Reserved: 0xFFFF, Wrong: "the reserved field of each Marker is not zero"},
		},
	} {
		cases = append(cases, conformance.Case{
			Clause: c.clause, Name: c.name, Needs: conformance.NeedService, Title: c.title,
			Run: func(t *conformance.T) {
				m := openMemory(t, opensMarkers(t), maxULPDU-taggedLen)
				m.s.PostFlawed(m.write(0, conformance.Pattern(m.b.Length)), c.flaw)
				m.check()
			},
		})
	}
	return cases
}

// opensMarkers opens a connection in which the target wants Markers. The first one has
// been sent, before an RDMA Write of no bytes.
func opensMarkers(t *conformance.T) *conformance.Stream {
	needMarkers(t)
	var setup conformance.Setup
	setup.Start.Markers = true
	s := t.Open(setup)
	s.Hello()
	return s
}

var laterMarkers = conformance.Case{
	Clause: "rfc5044-8-9", Name: fmt.Sprintf("fpduptr-after-%d-fpdus", many), Also: []string{"rfc5044-8-3", "rfc5044-8-7", "rfc5044-4.3-12"},
	Needs: conformance.NeedService,
	Title: fmt.Sprintf("After %d FPDUs, Markers are still taken out of one before its data are placed, and an FPDUPTR that points elsewhere is error 3: Terminate 0x2003", many),
	Run: func(t *conformance.T) {
		s := opensMarkers(t)
		m := openMemory(t, s, 2*interval)
		other := s.Buffer(2 * interval)
		manyWrites(s, many)
		s.Post(m.write(0, conformance.Pattern(m.b.Length)))
		m.check()
		s.PostFlawed(wire.Tagged(wire.Write, other.STag, other.TO, conformance.Pattern(other.Length)), wire.Flaw{
			Marker: func(_ int, p uint16) uint16 { return p + 8 },
			Wrong:  "FPDUPTR is 8 too large",
		})
		s.AwaitTerminate(wire.MPAMarker)
		s.AwaitUntouched(other)
	},
}

var laterCRC = conformance.Case{
	Clause: "rfc5044-4.4-12", Name: fmt.Sprintf("after-%d-fpdus", many), Also: []string{"rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-8-2"},
	Needs: conformance.NeedBuffer,
	Title: fmt.Sprintf("After %d FPDUs, one with a wrong CRC is invalid: the stream ends, and nothing is placed", many),
	Run: func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		b := s.Buffer(damagedData)
		manyWrites(s, many)
		s.PostFlawed(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(damagedData)), wrongCRC)
		s.AwaitTeardown()
		s.AwaitUntouched(b)
	},
}

var lastCRC = conformance.Case{
	Clause: "rfc5044-4.4-12", Name: "last-of-many-at-once", Also: []string{"rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-8-2"},
	Needs: conformance.NeedBuffer,
	Title: fmt.Sprintf("Of %d FPDUs that come at once, the last one, with a wrong CRC, is invalid: the stream ends, and nothing of it is placed", before+1),
	Run: func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		s.Hello()
		b := s.Buffer(damagedData)
		fpdus := filler(s, before*(lengthLen+taggedLen+crcLen))
		w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(damagedData))
		fpdus = append(fpdus, s.Frame(w.Octets(), wrongCRC)...)
		sendRaw(s, fpdus, fmt.Sprintf("%d RDMA Writes of no octets; then %s", before, w), "the last one: "+wrongCRC.Wrong)
		s.AwaitTeardown()
		s.AwaitUntouched(b)
	},
}

var piecesCRC = conformance.Case{
	Clause: "rfc5044-4.4-12", Name: "in-two-pieces", Also: []string{"rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-8-2"},
	Needs: conformance.NeedService,
	Title: "An FPDU with a wrong CRC that comes in two TCP segments is invalid: the stream ends, and nothing is placed",
	Run: func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		s.Hello()
		b := s.Buffer(damagedData)
		fpdu := s.Frame(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(damagedData)).Octets(), wrongCRC)
		const at = lengthLen + taggedLen
		sendRaw(s, fpdu[:at], fmt.Sprintf("%d octets of a Write", at), "")
		s.AwaitQuiet("as the FPDU is not all there")
		sendRaw(s, fpdu[at:], "the rest of it", wrongCRC.Wrong)
		s.AwaitTeardown()
		s.AwaitUntouched(b)
	},
}

var laterPads = conformance.Case{
	Clause: "rfc5044-4.1-2", Name: "ignored-again", Needs: conformance.NeedBuffer,
	Title: fmt.Sprintf("The pads of %d FPDUs, none of them zero, are ignored: the data are placed without them", before),
	Run: func(t *conformance.T) {
		m := openMemory(t, t.Open(conformance.Setup{}), 8)
		for i := range before {
			n := 1 + i%3 // bytes of data, and as many short of 4 of pad
			m.s.PostFlawed(m.write(i%5, conformance.Pattern(n)), wire.Flaw{Pad: 0xFF, Wrong: "the pad is not zero"})
		}
		m.check()
	},
}

// laterSent is a Read Response in more FPDUs than 16 bits count, with Markers or without.
func laterSent(markers bool) conformance.Case {
	const each = minMULPDU - taggedLen // bytes of data in an FPDU
	c := conformance.Case{
		Clause: "rfc5044-4.4-9", Name: fmt.Sprintf("in-%d-fpdus", many), Also: []string{"rfc5044-4.1-1", "rfc5044-4.1-2", "rfc5041-4.1-4", "rfc5041-5.2-8"},
		Needs: conformance.NeedService,
		Title: fmt.Sprintf("The FPDUs of a Read Response in %d have the pads, CRCs, TOs and data that they need, up to the last", many),
	}
	rules := []wire.Rule{
		wire.FaultPad, wire.FaultCRC, wire.FaultLength, wire.FaultTO, wire.FaultMessage,
		wire.FaultVersion, wire.FaultReserved, wire.FaultRV, wire.FaultRDMAPReserved,
	}
	if markers {
		c.Clause, c.Also = "rfc5044-4.3-2", []string{"rfc5044-4.3-3", "rfc5044-4.3-10", "rfc5044-4.2-2", "rfc5044-4.4-10"}
		c.Title = fmt.Sprintf("In a Read Response of %d FPDUs, a Marker stands every 512 octets and points where it has to, up to the last", many)
		rules = append(rules, wire.FaultMarker, wire.FaultMarkerReserved)
	}
	c.Run = func(t *conformance.T) {
		needMULPDU(t)
		var setup conformance.Setup
		setup.Start.MULPDU = minMULPDU
		open := t.Open
		if markers {
			open = func(setup conformance.Setup) *conformance.Stream { return marked(t, setup) }
		}
		s := open(setup)
		const length = many * each
		r := rdmapRegion(t, length, service.RemoteRead)
		want := service.Pattern(rdmapSeed, length)
		s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, length, uint32(r.STag), uint64(r.TO)))
		for got := 0; got < length; {
			a := s.Await(wire.ReadResponse)
			breaks(t, []wire.Arrival{a}, rules...)
			n := min(len(a.Payload), length-got)
			t.Check(bytes.Equal(a.Payload, want[got:got+n]), fmt.Sprintf("the data from octet %d on", got), "others: %s", differ(a.Payload, want[got:got+n]))
			got += n
			t.Check(a.Last == (got == length), fmt.Sprintf("L=1 with octet %d, and not before", length), "L=%t with octet %d", a.Last, got)
		}
	}
	return c
}
