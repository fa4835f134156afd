package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// framingLong: FPDUs so long that an implementation may make them in other ways than short
// ones, and one with two faults (RFC 5044 §4.4).
func framingLong() []conformance.Case {
	var cases []conformance.Case
	for _, n := range []int{8_001, 8_002, 8_003, 20_001, 20_002, 20_003} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.4-10", Name: fmt.Sprintf("response-of-%d", n), Also: []string{"rfc5044-4.1-1", "rfc5044-4.4-8"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("The CRCs of the FPDUs of a Read Response with %d bytes cover their pads", n),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(n)
				s.Read(b.STag, b.TO, n)
				s.AwaitAlive() // the FPDU behind them begins where they end
				checkFaults(t, s, wire.FaultPad, wire.FaultCRC, wire.FaultLength)
			},
		}, conformance.Case{
			Clause: "rfc5044-4.4-10", Name: fmt.Sprintf("write-of-%d", n), Also: []string{"rfc5044-4.1-1", "rfc5044-4.4-8"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("The CRCs of the FPDUs of the target's Write with %d bytes cover their pads", n),
			Run: func(t *conformance.T) {
				s := opened(t)
				b := s.Buffer(n)
				s.Posts(service.Post{Op: service.OpWrite, SGL: []service.Piece{{MR: b.MR, Length: uint32(n)}}, Remote: theirs})
				message(s, wire.Write)
				s.AwaitAlive()
				checkFaults(t, s, wire.FaultPad, wire.FaultCRC, wire.FaultLength)
			},
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc5044-6-4", Name: "long-fpdu-without-its-last-byte", Also: []string{"rfc5044-5.1-1", "rfc5044-6-1"}, Needs: conformance.NeedService,
		Title: "Nothing of an FPDU of more than 20000 bytes is placed while the last one is missing, and all of it as soon as that has come",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := openMemory(t, s, 20_000)
			w := merged(s, m.write(0, conformance.Pattern(m.b.Length)))
			sendRaw(s, w[:len(w)-1], "a Write without its last byte", "the rest follows later")
			s.AwaitQuiet("as the FPDU is not all there")
			s.AwaitUntouched(m.b)
			sendRaw(s, w[len(w)-1:], "the rest of it", "")
			m.check()
		},
	})
	return append(cases, conformance.Case{
		Clause: "rfc5044-4.4-11", Name: "marker-and-crc-wrong", Also: []string{"rfc5044-8-2"}, Needs: conformance.NeedService,
		Title: "An FPDU with a Marker that points elsewhere and a CRC that is wrong is error 2, as the CRC is verified first: Terminate 0x2002",
		Run: func(t *conformance.T) {
			m := markedMemory(t, 20)
			w := wire.Tagged(wire.Write, m.b.STag, m.b.TO, conformance.Pattern(markedData))
			m.s.PostFlawed(w, wire.Flaw{
				Marker: func(_ int, p uint16) uint16 { return p + 8 },
				CRC:    func(crc uint32) uint32 { return ^crc },
				Wrong:  "FPDUPTR is 8 too large, and the CRC is wrong",
			})
			m.s.AwaitTerminate(wire.MPACRC)
			m.s.AwaitUntouched(m.b)
		},
	})
}
