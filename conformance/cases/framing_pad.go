package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The pad, and the CRC field where CRCs are not in use (RFC 5044 §4.1, §4.4).
func framingPad() []conformance.Case {
	var cases []conformance.Case
	for _, pad := range []int{1, 2, 3} {
		n := 4 - pad // bytes of data: 2 + 14 + n is that many short of a multiple of 4
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.1-2", Name: fmt.Sprintf("%d-ignored", pad), Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("A pad of %s that are not zero is ignored: the data are placed without it", octets(pad)),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				m := openMemory(t, s, 8)
				s.PostFlawed(m.write(0, conformance.Pattern(n)), wire.Flaw{Pad: 0xFF, Wrong: "the pad is not zero"})
				m.check()
			},
		})
	}
	for _, n := range []int{0, 1, 2, 3, 4, 64} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.1-2", Name: fmt.Sprintf("sent-behind-%d", n), Also: []string{"rfc5044-4.1-1", "rfc5044-4.4-9", "rfc5044-4.4-10"},
			Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("The FPDU of a Read Response with %s of data is padded to a multiple of 4 with zeros, and its CRC covers that", octets(n)),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(64)
				s.Read(b.STag, b.TO, n)
				s.AwaitAlive() // the FPDU behind it begins where it ends
				checkFaults(t, s, wire.FaultPad, wire.FaultCRC, wire.FaultLength)
			},
		})
	}
	for _, c := range []struct {
		name string
		crc  uint32
	}{{"zero", 0}, {"ones", ^uint32(0)}, {"any", 0xDEADBEEF}} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.1-3", Name: "not-checked-" + c.name, Also: []string{"rfc5044-7.1.1-10", "rfc5044-7.1.1-12", "rfc5044-4.4-7"},
			Title: fmt.Sprintf("With C=0 in both frames the CRC field is not checked, from the first FPDU on: 0x%08x in it is right", c.crc),
			Run: func(t *conformance.T) {
				s := openWithoutCRC(t)
				probe := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
				s.PostFlawed(probe, wire.Flaw{CRC: func(uint32) uint32 { return c.crc }})
				s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
			},
		})
	}
	return append(cases,
		conformance.Case{
			Clause: "rfc5044-4.1-3", Name: "field-is-sent", Also: []string{"rfc5044-4.4-8"},
			Title: "With C=0 in both frames the target's FPDUs have a CRC field all the same: each begins 4 octets behind the pad of the one before",
			Run: func(t *conformance.T) {
				s := openWithoutCRC(t)
				for range 3 {
					s.AwaitAlive()
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.4-8", Name: "field-is-sent", Also: []string{"rfc5044-4.1-1"},
			Title: "The target's FPDUs have a CRC field: each begins 4 octets behind the pad of the one before",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				for range 3 {
					s.AwaitAlive()
				}
			},
		},
		conformance.Case{
			Clause: "rfc5044-4.4-5", Name: "with-crcs", Also: []string{"rfc5044-4.3-12"}, Needs: conformance.NeedService,
			Title: "The target's program sees nothing of CRCs that are in use: it gets a message of as many octets as were sent",
			Run:   func(t *conformance.T) { receivesMessage(t, t.Open(conformance.Setup{Recvs: []uint32{64}})) },
		},
		conformance.Case{
			Clause: "rfc5044-4.4-5", Name: "without-crcs", Also: []string{"rfc5044-4.3-12"}, Needs: conformance.NeedService,
			Title: "The target's program sees nothing of the CRC field when CRCs are not in use: it gets a message of as many octets as were sent",
			Run: func(t *conformance.T) {
				needCRCOff(t)
				setup := conformance.Setup{NoCRC: true, Recvs: []uint32{64}}
				setup.Start.CRC = "off"
				receivesMessage(t, t.Open(setup))
			},
		},
	)
}

// openWithoutCRC opens a connection in which CRCs are not in use.
func openWithoutCRC(t *conformance.T) *conformance.Stream {
	setup := conformance.Setup{NoCRC: true}
	if t.HasService() {
		needCRCOff(t)
		setup.Start.CRC = "off"
	}
	s := t.Open(setup)
	theirs := s.Reply
	if t.Role() == conformance.Initiator {
		theirs = s.Request
	}
	if theirs.Flags&wire.FlagC != 0 {
		if t.HasService() {
			t.Fail("C=0 in the frame of a target that is to do without CRCs", "%s", theirs)
		}
		t.Skip("the target asks for CRCs")
	}
	return s
}

// receivesMessage sends a message, and looks at what the target's program gets.
func receivesMessage(t *conformance.T, s *conformance.Stream) {
	const text = "seventeen octets."
	s.Post(wire.Untagged(wire.Send, []byte(text)))
	c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
	t.Check(string(c.Data) == text, fmt.Sprintf("a message of %q", text), "%q", []byte(c.Data))
}
