package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Markers in what the target sends (RFC 5044 §4.2, §4.3, §4.4).
func framingMarked() []conformance.Case {
	var cases []conformance.Case
	for _, c := range []struct {
		clause, name, title string
		also                []string
		check               func(t *conformance.T, p wire.FPDU, m wire.Marker)
	}{
		{
			"rfc5044-4.3-3", "in-small-fpdus", "The FPDUPTR of a Marker within an FPDU counts the octets from ULPDU_Length to the Marker",
			[]string{"rfc5044-4.2-1", "rfc5044-4.3-9"},
			func(t *conformance.T, _ wire.FPDU, m wire.Marker) {
				if m.At > 0 {
					t.Check(int(m.Pointer) == m.At, fmt.Sprintf("FPDUPTR %d", m.At), "%d", m.Pointer)
				}
			},
		},
		{
			"rfc5044-4.3-10", "in-small-fpdus", "The FPDUPTR of a Marker between FPDUs is zero", nil,
			func(t *conformance.T, _ wire.FPDU, m wire.Marker) {
				if m.At == 0 {
					t.Check(m.Pointer == 0, "FPDUPTR 0", "%d", m.Pointer)
				}
			},
		},
		{
			"rfc5044-4.2-2", "sent-as-zero", "The reserved field of a Marker is zero",
			[]string{"rfc5044-4.2-1"},
			func(t *conformance.T, _ wire.FPDU, m wire.Marker) {
				t.Check(m.Reserved == 0, "a reserved field of zero", "0x%04x", m.Reserved)
			},
		},
		{
			"rfc5044-4.2-3", "sent-as-zero", "The low two bits of a Marker's FPDUPTR are zero", nil,
			func(t *conformance.T, _ wire.FPDU, m wire.Marker) {
				t.Check(m.Pointer&3 == 0, "an FPDUPTR that is a multiple of 4", "%d", m.Pointer)
			},
		},
		{
			"rfc5044-4.3-5", "covered-when-sent", "The CRC of an FPDU covers the Marker before it",
			[]string{"rfc5044-4.4-10"},
			func(t *conformance.T, p wire.FPDU, m wire.Marker) {
				if m.At == 0 {
					checkCRC(t, p)
				}
			},
		},
		{
			"rfc5044-4.4-10", "markers-within", "The CRC of an FPDU covers the Markers in it, and one right behind its pad",
			[]string{"rfc5044-4.4-9"},
			func(t *conformance.T, p wire.FPDU, m wire.Marker) {
				if m.At > 0 {
					checkCRC(t, p)
				}
			},
		},
	} {
		cases = append(cases, conformance.Case{
			Clause: c.clause, Name: c.name, Also: c.also, Title: c.title + ", wherever in the FPDU of a Read Response it stands",
			Run: func(t *conformance.T) {
				for p := range markedFPDUs(t) {
					for _, m := range p.Markers {
						c.check(t, p, m)
					}
				}
			},
		})
	}
	return append(cases,
		conformance.Case{
			Clause: "rfc5044-4.3-2", Name: "in-small-fpdus", Also: []string{"rfc5044-4.3-7", "rfc5044-4.3-1"},
			Title: "A Marker stands before the target's first FPDU and every 512 octets from there on: wherever one is due, the FPDUs can be told from it",
			Run: func(t *conformance.T) {
				for p := range markedFPDUs(t) {
					for _, f := range p.Faults {
						t.Check(f.Rule != wire.FaultMarker && f.Rule != wire.FaultCRC, "an FPDU with a Marker where one is due", "one in which %s", f.What)
					}
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.3-7", Name: "first-octets", Needs: conformance.NeedService,
			Title: "The first octets that the target sends in full operation are a Marker of zeros, and ULPDU_Length follows",
			Run: func(t *conformance.T) {
				s := marked(t, conformance.Setup{ClientFirst: true})
				m := firstSend(t, s, []byte("first"))
				t.Check(bytes.HasPrefix(m.FPDU.Octets, []byte{0, 0, 0, 0, 0, untaggedLen + 5}), "00000000 0017 as the first octets", "%x", m.FPDU.Octets[:6])
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.3-8", Name: "read-response", Also: []string{"rfc5044-4.3-3"}, Needs: conformance.NeedService,
			Title: "All Markers in a long FPDU of a Read Response point to its ULPDU_Length",
			Run: func(t *conformance.T) {
				needMULPDU(t)
				var setup conformance.Setup
				setup.Start.MULPDU = 8000
				s := marked(t, setup)
				const length = 20_000
				b := s.Buffer(length)
				s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, length, b.STag, b.TO))
				most := 0
				for got := 0; got < length; {
					a := s.Await(wire.ReadResponse)
					for _, m := range a.FPDU.Markers {
						want := m.At
						if a.FPDU.Markers[0].At == 0 && m.At > 0 {
							want -= markerLen
						}
						t.Check(int(m.Pointer) == want, fmt.Sprintf("FPDUPTR %d", want), "%d", m.Pointer)
					}
					most = max(most, len(a.FPDU.Markers))
					got += len(a.Payload)
				}
				if most < 2 {
					t.Inconclusive("no FPDU was long enough for two Markers")
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.3-2", Name: "long-write", Also: []string{"rfc5044-4.3-8", "rfc5044-4.3-9"}, Needs: conformance.NeedService,
			Title: "In a Write of 200000 octets of the target's, a Marker stands every 512 octets, and the data are whole without them",
			Run: func(t *conformance.T) {
				s := marked(t, conformance.Setup{})
				sendsLongWrite(t, s)
				checkFaults(t, s, wire.FaultMarker, wire.FaultMarkerReserved, wire.FaultCRC)
			},
		},
	)
}

// markedFPDUs has the target send FPDUs of 20 bytes with Markers. 508 bytes are not a
// multiple of that: each Marker stands at another place in its FPDU, until after five
// of them all places have had one.
func markedFPDUs(t *conformance.T) func(yield func(wire.FPDU) bool) {
	s := marked(t, conformance.Setup{})
	const probes = 5*(interval-markerLen)/20 + 5
	return func(yield func(wire.FPDU) bool) {
		for range probes {
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			for {
				a, err := s.Next(t.Timeout())
				if err != nil {
					t.Fail("an RDMA Read Response", "%s", what(err))
				}
				if !yield(a.FPDU) {
					return
				}
				if a.Opcode == wire.ReadResponse {
					break
				}
				t.Check(a.Opcode != wire.Terminate, "an RDMA Read Response", "%s", a.Segment)
			}
		}
	}
}

func checkCRC(t *conformance.T, p wire.FPDU) {
	body := p.Octets[:len(p.Octets)-crcLen]
	t.Check(p.CRC == crc32c(body), fmt.Sprintf("CRC 0x%08x", crc32c(body)), "0x%08x", p.CRC)
}

// firstSend has the target send a message as its first, and returns the FPDU.
func firstSend(t *conformance.T, s *conformance.Stream, data []byte) wire.Arrival {
	if t.Role() == conformance.Responder {
		s.Hello()
	}
	s.Posts(service.Post{Op: service.OpSend, Data: data})
	return s.Await(wire.Send)
}

// sendsLongWrite has the target write 200000 bytes to the tester.
func sendsLongWrite(t *conformance.T, s *conformance.Stream) {
	const length, seed = 200_000, 7
	first := uint8(seed)
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: length, Pattern: &first})
	t.Try(err, "opening memory of the target")
	if t.Role() == conformance.Responder {
		s.Hello()
	}
	s.Posts(service.Post{Op: service.OpWrite, SGL: []service.Piece{r.Piece(0, length)}, Remote: service.Remote{STag: conformance.SinkSTag, TO: conformance.SinkTO}})
	m := s.AwaitMessage(wire.Write)
	want := service.Pattern(seed, length)
	t.Check(bytes.Equal(m.Payload, want), "the data of the target's memory", "others: %s", differ(m.Payload, want))
}

// needMULPDU skips a case if the target can't be told its MULPDU.
func needMULPDU(t *conformance.T) {
	if !t.Service().Hello().Features.MULPDU {
		t.Skip("the target can't be told its MULPDU")
	}
}
