package cases

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The FPDU that gets damaged: a Write of 5 bytes, with 3 of pad.
const damagedData = 5

// CRCs that do not fit (RFC 5044 §4.4, §6, §8).
func framingCRC() []conformance.Case {
	var cases []conformance.Case
	also := []string{"rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-6-2", "rfc5044-8-2"}
	for _, f := range []struct {
		at   int
		mask byte
		what string
	}{
		{1, 0x01, "ulpdu-length"},
		{2, 0x40, "ddp-control"},
		{3, 0x03, "rdmap-control"},
		{4, 0x80, "stag-first"},
		{7, 0x01, "stag-last"},
		{8, 0x80, "to-first"},
		{15, 0x01, "to-last"},
		{16, 0x80, "data-first"},
		{18, 0x10, "data-middle"},
		{20, 0x01, "data-last"},
		{21, 0x80, "pad-first"},
		{23, 0x01, "pad-last"},
		{24, 0x01, "crc-0"},
		{25, 0x80, "crc-1"},
		{26, 0x10, "crc-2"},
		{27, 0x80, "crc-3"},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.4-12", Name: "bit-of-" + f.what, Also: also, Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("An FPDU in which a bit of octet %d (%s) is not what the CRC covers is invalid: the stream ends, and nothing is placed", f.at, f.what),
			Run: damaged(wire.Flaw{
				FlipAfter: func(b []byte) { b[f.at] ^= f.mask },
				Wrong:     fmt.Sprintf("a bit of octet %d is not what the CRC covers", f.at),
			}),
		})
	}
	for _, f := range []struct {
		name, what string
		length     int
	}{
		{"length-too-short", "A ULPDU_Length that is 4 too small puts other octets in the CRC's place", -4},
		{"length-too-long", "A ULPDU_Length that is 4 too large puts the octets of the next FPDU in the CRC's place", 4},
		{"length-0", "A ULPDU_Length of 0 puts octets of the header in the CRC's place", -taggedLen - damagedData},
		{"length-65535", "A ULPDU_Length of 65535 puts octets of later FPDUs in the CRC's place", 65535 - taggedLen - damagedData},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.4-12", Name: f.name, Also: append([]string{"rfc5044-6-4"}, also...), Needs: conformance.NeedBuffer,
			Title: f.what + ": the FPDU is invalid, the stream ends, and nothing is placed",
			Run:   damaged(wire.Flaw{Length: f.length, Wrong: "ULPDU_Length is not that of the ULPDU"}),
		})
	}
	for _, f := range []struct {
		name, what string
		sum        func(fpdu []byte) uint32 // of all but the CRC
	}{
		{"zero", "of zero, as if there were none", func([]byte) uint32 { return 0 }},
		{"ones", "of all ones", func([]byte) uint32 { return ^uint32(0) }},
		{"not-inverted", "that was not inverted at the end", func(b []byte) uint32 { return ^crc32c(b) }},
		{"ieee", "with the polynomial of Ethernet", crc32.ChecksumIEEE},
		{"most-significant-first", "whose octets stand the other way round", func(b []byte) uint32 { return reversed(crc32c(b)) }},
		{"without-length", "that does not cover ULPDU_Length", func(b []byte) uint32 { return crc32c(b[lengthLen:]) }},
		{"without-pad", "that does not cover the pad", func(b []byte) uint32 { return crc32c(b[:len(b)-3]) }},
		{"of-the-data", "of the data alone", func(b []byte) uint32 { return crc32c(b[lengthLen+taggedLen : len(b)-3]) }},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-4.4-11", Name: "crc-" + f.name, Also: []string{"rfc5044-4.4-12", "rfc5044-8-2"}, Needs: conformance.NeedBuffer,
			Title: "An FPDU with a CRC " + f.what + " is invalid: the stream ends, and nothing is placed",
			Run:   damaged(wire.Flaw{FlipAfter: resum(f.sum), Wrong: "a CRC " + f.what}),
		})
	}
	return append(cases, conformance.Case{
		Clause: "rfc5044-6-1", Name: "long-fpdu", Also: also, Needs: conformance.NeedService,
		Title: "Nothing of the longest FPDU is placed if its CRC is wrong, though its data come long before that",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := s.Buffer(maxULPDU - taggedLen)
			w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(b.Length))
			s.PostFlawed(w, wrongCRC)
			s.AwaitTeardown()
			s.AwaitUntouched(b)
		},
	}, conformance.Case{
		Clause: "rfc5044-6-1", Name: "send", Also: also, Needs: conformance.NeedService,
		Title: "A Send with a wrong CRC is not delivered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.PostFlawed(wire.Untagged(wire.Send, []byte("damaged")), wrongCRC)
			s.AwaitTeardown()
			endHalf(s)
			s.AwaitCompletion(service.RecvQueue, service.StatusFlushed)
		},
	})
}

func crc32c(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func reversed(n uint32) uint32 {
	return binary.BigEndian.Uint32(binary.LittleEndian.AppendUint32(nil, n))
}

// resum is a flaw: another CRC, from all bytes of the FPDU before it.
func resum(sum func(b []byte) uint32) func(fpdu []byte) {
	return func(fpdu []byte) {
		body := fpdu[:len(fpdu)-crcLen]
		binary.LittleEndian.PutUint32(fpdu[len(body):], sum(body))
	}
}

// damaged sends an FPDU that must be refused.
func damaged(flaw wire.Flaw) func(*conformance.T) {
	return func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		s.Hello() // so that a Terminate may be sent
		b := s.Buffer(damagedData)
		w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(damagedData))
		s.PostFlawed(w, flaw)
		// Where the length is wrong, the FPDU may seem to continue.
		sendRaw(s, filler(s, max(flaw.Length, crcLen)), "FPDUs that are right", "")
		s.AwaitTeardown()
		s.AwaitUntouched(b)
	}
}
