package cases

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The two FPDUs that RFC 5044 §4.4 shows byte by byte.
var (
	figure5 = figure(0x52239983, 0x00000000, 0x002a4143, 0x00000000, 0x00000000, 0x00000001, 0x00000000)
	figure6 = figure(0x84925898, 0x002a4143, 0x00000000, 0x00000000, 0x00000002, 0x00000000, 0x00000014)
)

// Before figure 6 stands an FPDU of 492 bytes, the first Marker among them.
const beforeFigure6 = 492 - markerLen - lengthLen - untaggedLen - crcLen

// figure puts together what stands before 24 bytes of zeros, and the CRC behind them.
func figure(crc uint32, before ...uint32) (b []byte) {
	for _, word := range before {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	return binary.BigEndian.AppendUint32(append(b, make([]byte, 24)...), crc)
}

var framingFigures = []conformance.Case{
	{
		Clause: "rfc5044-4.4-9", Name: "figure-5", Also: []string{"rfc5044-4.1-1", "rfc5044-4.2-1", "rfc5044-4.3-5", "rfc5044-4.4-10"},
		Needs: conformance.NeedService,
		Title: "A Send of 24 zeros as the target's first message, with Markers, is the FPDU of figure 5, octet by octet",
		Run: func(t *conformance.T) {
			s := marked(t, conformance.Setup{ClientFirst: true})
			a := firstSend(t, s, make([]byte, 24))
			t.Check(bytes.Equal(a.FPDU.Octets, figure5), fmt.Sprintf("%x", figure5), "%x", a.FPDU.Octets)
		},
	},
	{
		Clause: "rfc5044-4.4-9", Name: "figure-6", Also: []string{"rfc5044-4.1-1", "rfc5044-4.2-1", "rfc5044-4.3-3", "rfc5044-4.4-10"},
		Needs: conformance.NeedService,
		Title: "A Send of 24 zeros behind one that makes an FPDU of 492 octets, with Markers, is the FPDU of figure 6, octet by octet",
		Run: func(t *conformance.T) {
			s := marked(t, conformance.Setup{ClientFirst: true})
			firstSend(t, s, make([]byte, beforeFigure6))
			s.Posts(service.Post{Op: service.OpSend, Data: make([]byte, 24)})
			a := s.Await(wire.Send)
			t.Check(bytes.Equal(a.FPDU.Octets, figure6), fmt.Sprintf("%x", figure6), "%x", a.FPDU.Octets)
		},
	},
	{
		Clause: "rfc5044-4.4-11", Name: "figure-5", Also: []string{"rfc5044-4.3-12", "rfc5044-4.3-5", "rfc5044-4.3-7"}, Needs: conformance.NeedService,
		Title: "The FPDU of figure 5, octet by octet, is a message of 24 zeros to the target",
		Run: func(t *conformance.T) {
			s := takesMarkers(t)
			sendRaw(s, figure5, "the FPDU of figure 5", "")
			takesZeros(t, s, 24)
		},
	},
	{
		Clause: "rfc5044-4.4-11", Name: "figure-6", Also: []string{"rfc5044-4.3-12"}, Needs: conformance.NeedService,
		Title: "The FPDU of figure 6, octet by octet, is a message of 24 zeros to the target, behind an FPDU of 492 octets",
		Run: func(t *conformance.T) {
			s := takesMarkers(t)
			s.Post(wire.Untagged(wire.Send, make([]byte, beforeFigure6)))
			takesZeros(t, s, beforeFigure6)
			sendRaw(s, figure6, "the FPDU of figure 6", "")
			takesZeros(t, s, 24)
		},
	},
}

// takesMarkers opens a connection in which the target wants Markers, with receives.
func takesMarkers(t *conformance.T) *conformance.Stream {
	needMarkers(t)
	setup := conformance.Setup{Recvs: []uint32{interval, interval}}
	setup.Start.Markers = true
	return t.Open(setup)
}

func takesZeros(t *conformance.T, s *conformance.Stream, n int) {
	c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
	t.Check(bytes.Equal(c.Data, make([]byte, n)), fmt.Sprintf("a message of %d zeros", n), "%x", []byte(c.Data))
}
