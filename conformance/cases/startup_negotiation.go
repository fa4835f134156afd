package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// What M and C of the two frames settle (RFC 5044 §7.1.1, §4.4).
func startupNegotiation() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc5044-4.3-1", Name: "markers-on-request", Also: []string{"rfc5044-7.1.1-6", "rfc5044-7.1.1-7", "rfc5044-7.1.1-9"},
			Title: "M=1 in the tester's frame is accepted, and the target's first FPDUs have the Markers that are due",
			Run: func(t *conformance.T) {
				s := openMarked(t, conformance.Setup{}, func(got string) {
					t.Fail("that the target accepts M=1, as every sender can generate Markers", "%s", got)
				})
				checkFaults(t, s, wire.FaultMarker, wire.FaultMarkerReserved)
				s.AwaitAlive()
				checkFaults(t, s, wire.FaultMarker, wire.FaultMarkerReserved)
			},
		},
		{
			Clause: "rfc5044-7.1.1-8", Name: "no-markers-unless-asked",
			Title: "With M=0 in the tester's frame, the target's FPDUs have no Markers",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				for range 30 { // some 600 bytes: a Marker would be due twice
					s.AwaitAlive()
				}
			},
		},
		{
			Clause: "rfc5044-4.4-4", Name: "asks-for-crcs", Also: []string{"rfc5044-1.2-2", "rfc5044-4.4-2"},
			Title: "By default the target asks for CRCs: C=1 in its frame, though the tester's has C=0",
			Run: func(t *conformance.T) {
				o := begin(t, conformance.Setup{NoCRC: true})
				f := o.request
				if t.Role() == conformance.Responder {
					o.send(o.frame(), "")
					f = o.reply()
				}
				if f.Flags&wire.FlagC == 0 && !t.HasService() {
					t.Inconclusive("the target has C=0, which it may if its administrator wants that")
				}
				t.Check(f.Flags&wire.FlagC != 0, "a frame with C=1", "%s", f)
			},
		},
	}
	for combination := range 16 {
		bit := func(i int) bool { return combination>>i&1 == 1 }
		cases = append(cases, negotiationCase(bit(3), bit(2), bit(1), bit(0)))
	}
	for _, who := range []string{"tester", "target", "both"} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.4-6", Name: who + "-asks-checked", Also: []string{"rfc5044-7.1.1-11", "rfc5044-4.4-1", "rfc5044-4.4-2"},
			Title: fmt.Sprintf("CRCs are checked if C=1 in the frame of %s: an FPDU with a wrong one ends the stream", whose(who)),
			Run: func(t *conformance.T) {
				s := openWithCRC(t, who)
				s.AwaitAlive()
				s.PostFlawed(wire.Tagged(wire.Write, 0, 0, nil), wrongCRC)
				s.AwaitTeardown()
			},
		}, conformance.Case{
			Clause: "rfc5044-4.4-6", Name: who + "-asks-generated", Also: []string{"rfc5044-7.1.1-11", "rfc5044-4.4-1", "rfc5044-4.4-2"},
			Title: fmt.Sprintf("CRCs are generated if C=1 in the frame of %s: the target's FPDU carries the right one", whose(who)),
			Run: func(t *conformance.T) {
				s := openWithCRC(t, who)
				s.AwaitAlive()
				checkFaults(t, s, wire.FaultCRC)
			},
		})
	}
	return append(cases, conformance.Case{
		Clause: "rfc5044-4.4-6", Name: "to-the-end", Also: []string{"rfc5044-7.1.1-11"},
		Title: "CRCs are generated and checked to the end: after 100 FPDUs in each direction, one with a wrong CRC still ends the stream",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			for range 100 {
				s.AwaitAlive()
			}
			checkFaults(t, s, wire.FaultCRC)
			s.PostFlawed(wire.Tagged(wire.Write, 0, 0, nil), wrongCRC)
			s.AwaitTeardown()
		},
	})
}

// wrongCRC changes a bit of the CRC.
var wrongCRC = wire.Flaw{CRC: func(crc uint32) uint32 { return crc ^ 1 }, Wrong: "a bit of the CRC is wrong"}

// whose says in whose frame C is set.
func whose(who string) string {
	if who == "both" {
		return "either side"
	}
	return "the " + who + " alone"
}

// negotiationCase tries one combination of M and C, with data both ways.
func negotiationCase(testerM, testerC, targetM, targetC bool) conformance.Case {
	clause := "rfc5044-7.1.1-8"
	also := []string{"rfc5044-7.1.1-5"}
	if testerM {
		clause = "rfc5044-7.1.1-9"
		also = append(also, "rfc5044-7.1.1-6", "rfc5044-7.1.1-7", "rfc5044-4.3-1")
	}
	if testerC || targetC {
		also = append(also, "rfc5044-7.1.1-11", "rfc5044-4.4-6")
	} else {
		also = append(also, "rfc5044-7.1.1-10", "rfc5044-4.4-7")
	}
	wants := func(m, c bool) string {
		return fmt.Sprintf("m%dc%d", digit(m), digit(c))
	}
	return conformance.Case{
		Clause: clause, Name: fmt.Sprintf("tester-%s-target-%s", wants(testerM, testerC), wants(targetM, targetC)),
		Also: also, Needs: conformance.NeedService,
		Title: fmt.Sprintf("M=%d C=%d of the tester and M=%d C=%d of the target settle Markers and CRCs, and data go both ways so",
			digit(testerM), digit(testerC), digit(targetM), digit(targetC)),
		Run: func(t *conformance.T) {
			setup := conformance.Setup{NoCRC: !testerC, Markers: testerM}
			setup.Start.CRC, setup.Start.Markers = "prefer", targetM
			if !targetC {
				needCRCOff(t)
				setup.Start.CRC = "off"
			}
			if targetM {
				needMarkers(t)
			}
			s := t.Open(setup)
			theirs := s.Reply
			if t.Role() == conformance.Initiator {
				theirs = s.Request
			}
			expected := fmt.Sprintf("a frame of the target with M=%d C=%d", digit(targetM), digit(targetC))
			t.Check(theirs.Flags&wire.FlagM != 0 == targetM && theirs.Flags&wire.FlagC != 0 == targetC, expected, "%s", theirs)
			exchange(t, s)
		},
	}
}

func digit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// needCRCOff skips a case if the target can't be told to do without CRCs, which it
// need not (RFC 5044 §4.4).
func needCRCOff(t *conformance.T) {
	if !slices.Contains(t.Service().Hello().Features.CRC, "off") {
		t.Skip("the target can't be told to do without CRCs")
	}
}

// needMarkers skips a case if the target can't ask for markers, which it need not.
func needMarkers(t *conformance.T) {
	if !t.Service().Hello().Features.Markers {
		t.Skip("the target can't ask for Markers")
	}
}

// exchange writes to the target's memory and reads it back, more than a Marker is
// due for, and looks at the FPDUs that come.
func exchange(t *conformance.T, s *conformance.Stream) {
	const length, piece = 3000, 700
	b := s.Buffer(length)
	data := conformance.Pattern(length)
	s.Post(conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), piece)...)
	got := s.Read(b.STag, b.TO, length)
	t.Check(bytes.Equal(got, data), "the data that were written", "others: %s", differ(got, data))
	checkFaults(t, s, wire.FaultCRC, wire.FaultMarker, wire.FaultMarkerReserved, wire.FaultPad, wire.FaultLength)
}

// differ says where bytes are not what they should be.
func differ(got, want []byte) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("octet %d is 0x%02x, not 0x%02x", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("%s, not %s", octets(len(got)), octets(len(want)))
}

// checkFaults makes sure that the target has kept these rules so far in what it sent.
func checkFaults(t *conformance.T, s *conformance.Stream, rules ...wire.Rule) {
	for _, f := range s.Faults() {
		if slices.Contains(rules, f.Rule) {
			t.Fail("FPDUs as the RFC has them", "one in which %s", f.What)
		}
	}
}

// openMarked opens a connection for which the tester has asked for Markers. If the
// target refuses that, and would accept the same without Markers, refused says so
// and does not return; else the case is inconclusive.
func openMarked(t *conformance.T, setup conformance.Setup, refused func(got string)) *conformance.Stream {
	setup.Markers = true
	o := begin(t, setup)
	f := o.frame()
	o.send(f, "")
	if t.Role() == conformance.Initiator {
		return attach(t, o.enter(f))
	}
	reply, err := o.ReadFrame(t.Timeout())
	if err == nil && reply.Flags&wire.FlagR == 0 {
		s := t.NewStream(o.Conn, f, reply)
		s.IRD = depthOf(reply)
		return attach(t, s)
	}
	setup.Markers = false
	without := begin(t, setup)
	without.send(without.frame(), "")
	other, otherErr := without.ReadFrame(t.Timeout())
	if otherErr != nil || other.Flags&wire.FlagR != 0 {
		t.Inconclusive("the target does not accept an ordinary Request either")
	}
	if err != nil {
		refused(what(err))
	}
	refused(reply.String())
	return nil
}

// attach tells a stream that was started by hand its queue pair.
func attach(t *conformance.T, s *conformance.Stream) *conformance.Stream {
	if t.HasService() {
		qp, _, err := t.Started()
		t.Try(err, "asking for the target's queue pair")
		s.QP = qp
	}
	return s
}

// marked opens a connection in which the target's FPDUs have Markers, and skips the
// case if it does not send any: another case tells that.
func marked(t *conformance.T, setup conformance.Setup) *conformance.Stream {
	return openMarked(t, setup, func(got string) {
		t.Skip("the target sends no Markers (rfc5044-4.3-1): %s", got)
	})
}

// openWithCRC opens a connection in which CRCs are in use because the tester asks for
// them, the target, or both.
func openWithCRC(t *conformance.T, who string) *conformance.Stream {
	setup := conformance.Setup{NoCRC: who == "target"}
	if t.HasService() {
		setup.Start.CRC = "prefer"
		if who == "tester" {
			needCRCOff(t)
			setup.Start.CRC = "off"
		}
	}
	s := t.Open(setup)
	theirs := s.Reply
	if t.Role() == conformance.Initiator {
		theirs = s.Request
	}
	if who != "tester" && theirs.Flags&wire.FlagC == 0 {
		t.Skip("the target does not ask for CRCs")
	}
	return s
}
