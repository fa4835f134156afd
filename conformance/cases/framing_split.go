package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// FPDUs that are not aligned with TCP segments, and those that are not all there (RFC
// 5044 §5.1, §6).
func framingSplit() []conformance.Case {
	var cases []conformance.Case
	for _, c := range []struct {
		at    int
		where string
	}{
		{1, "within ULPDU_Length"},
		{2, "behind ULPDU_Length"},
		{3, "within the DDP header"},
		{16, "behind the DDP header"},
		{19, "within the data"},
		{22, "within the pad"},
		{24, "before the CRC"},
		{27, "within the CRC"},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-5.1-1", Name: fmt.Sprintf("cut-at-%d", c.at), Also: []string{"rfc5044-6-4"}, Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("An FPDU that comes in two TCP segments, cut %s, is taken as a whole", c.where),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				m := openMemory(t, s, 8)
				b := merged(s, m.write(0, conformance.Pattern(damagedData)))
				sendRaw(s, b[:c.at], fmt.Sprintf("%d octets of a Write", c.at), "")
				apart(s)
				sendRaw(s, b[c.at:], "the rest of it", "")
				m.check()
			},
		}, conformance.Case{
			Clause: "rfc5044-6-4", Name: fmt.Sprintf("fin-at-%d", c.at), Also: []string{"rfc5044-6-1", "rfc5044-8-1"}, Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("An FPDU that the end of the connection cuts, %s, is not passed to DDP: nothing is placed, and the target ends, too", c.where),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.Hello()
				b := s.Buffer(8)
				w := merged(s, wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(damagedData)))
				sendRaw(s, w[:c.at], fmt.Sprintf("%d octets of a Write", c.at), "the rest does not come")
				endHalf(s)
				s.AwaitEnd()
				s.AwaitUntouched(b)
			},
		})
	}
	for _, size := range []int{1, 3, 50, 1000} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-5.1-1", Name: fmt.Sprintf("pieces-of-%d", size), Also: []string{"rfc5044-5.2-1", "rfc5044-6-3"}, Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("FPDUs of many lengths that come in pieces of %s are taken one by one", octets(size)),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				m := openMemory(t, s, 64)
				sendPieces(s, merged(s, stairs(m)...), size)
				m.check()
			},
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc5044-5.1-1", Name: "with-markers", Also: []string{"rfc5044-4.3-12"}, Needs: conformance.NeedService,
		Title: "FPDUs with Markers that come octet by octet are taken one by one",
		Run: func(t *conformance.T) {
			needMarkers(t)
			var setup conformance.Setup
			setup.Start.Markers = true
			s := t.Open(setup)
			m := openMemory(t, s, 64)
			sendPieces(s, merged(s, stairs(m)...), 1)
			m.check()
		},
	}, conformance.Case{
		Clause: "rfc5044-5.1-1", Name: "long-fpdus", Also: []string{"rfc5044-6-4"}, Needs: conformance.NeedService,
		Title: "The longest FPDUs, in pieces of which none begins or ends with one, are taken one by one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := openMemory(t, s, 2*(maxULPDU-taggedLen))
			half := m.b.Length / 2
			b := merged(s, m.write(0, conformance.Pattern(half)), m.write(half, bytes.Repeat([]byte("urnic"), half)[:half]))
			sendPieces(s, b, 10_000)
			m.check()
		},
	})
	for _, c := range []struct {
		name  string
		short int
	}{{"crc", crcLen}, {"last-octet", 1}} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-6-4", Name: "without-its-" + c.name, Also: []string{"rfc5044-6-1"}, Needs: conformance.NeedService,
			Title: "Nothing of an FPDU is placed while " + c.name + " is missing, and all of it as soon as that has come",
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.Buffer(8)
				w := merged(s, wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8)))
				sendRaw(s, w[:len(w)-c.short], "a Write without its "+c.name, "the rest follows later")
				s.AwaitQuiet("as the FPDU is not all there")
				s.AwaitUntouched(b)
				sendRaw(s, w[len(w)-c.short:], "the rest of it", "")
				s.AwaitAlive()
				s.AwaitContents(b, 0, conformance.Pattern(8))
			},
		})
	}
	return cases
}

// stairs is Writes of 0 to 64 bytes, each with another value, whose beginnings stay.
func stairs(m *memory) []wire.Segment {
	var writes []wire.Segment
	for n := m.b.Length; n >= 0; n-- {
		writes = append(writes, m.write(0, bytes.Repeat([]byte{byte(n)}, n)))
	}
	return writes
}

// apart gives the target time to take what was sent before the rest comes, if there
// is something to wait for. Else TCP may deliver both at once.
func apart(s *conformance.Stream) {
	if s.QP != 0 {
		s.TargetState()
	}
}

// sendPieces sends bytes in pieces.
func sendPieces(s *conformance.Stream, b []byte, size int) {
	if err := s.SendPieces(b, size, fmt.Sprintf("FPDUs of %d octets, in pieces of %d", len(b), size), ""); err != nil {
		return // taped
	}
}
