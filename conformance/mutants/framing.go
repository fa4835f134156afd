package mutants

// framing breaks FPDUs and their CRCs: RFC 5044 §3 to §6, and §8.
var framing = []Mutant{
	{
		Name:    "crc-big-endian",
		Fault:   "The CRC is sent with its most significant octet first.",
		Clauses: []string{"rfc5044-4.4-9"},
		Edits: one("mpa/crc.go",
			`return binary.LittleEndian.AppendUint32(b, crc)`,
			`return binary.BigEndian.AppendUint32(b, crc)`),
	},
	{
		Name:    "crc-ieee",
		Fault:   "The CRC is that of Ethernet, of another polynomial than CRC32c.",
		Clauses: []string{"rfc5044-4.4-9"},
		Edits: one("mpa/crc.go", `	"encoding/binary"

	"urnic/internal/host/crc32c"
)

// CRCLen is the length of an FPDU's CRC field. The field is there even when
// CRCs are off (RFC 5044 §4.1).
const CRCLen = 4

// UpdateCRC adds p to a running CRC32c; start with 0 (RFC 5044 §4.4).
func UpdateCRC(crc uint32, p []byte) uint32 { return crc32c.Update(crc, p) }
`, `	"encoding/binary"
	"hash/crc32"
)

// CRCLen is the length of an FPDU's CRC field. The field is there even when
// CRCs are off (RFC 5044 §4.1).
const CRCLen = 4

// UpdateCRC adds p to a running CRC32; start with 0 (RFC 5044 §4.4).
func UpdateCRC(crc uint32, p []byte) uint32 { return crc32.Update(crc, crc32.IEEETable, p) }
`),
	},
	{
		Name:    "crc-from-zero",
		Fault:   "The CRC's register begins with zeros instead of ones, and is not inverted at the end.",
		Clauses: []string{"rfc5044-4.4-9"},
		Edits: one("mpa/crc.go",
			`{ return crc32c.Update(crc, p) }`,
			`{ return ^crc32c.Update(^crc, p) }`),
	},
	{
		Name:    "crc-without-pad",
		Fault:   "The CRC that is sent does not cover the pad.",
		Clauses: []string{"rfc5044-4.4-10"},
		Edits: one("mpa/fpdu.go", `	b = append(b, zeroPad[:padLen(n)]...) // PAD
	return appendCRC(b, f.checksum(b[start:])), nil
`, `	crc := f.checksum(b[start:])
	b = append(b, zeroPad[:padLen(n)]...) // PAD
	return appendCRC(b, crc), nil
`),
	},
	{
		Name:    "crc-without-length",
		Fault:   "The CRC that is sent covers the ULPDU and not its length.",
		Clauses: []string{"rfc5044-4.4-10"},
		Edits: one("mpa/fpdu.go",
			`return appendCRC(b, f.checksum(b[start:])), nil`,
			`return appendCRC(b, f.checksum(b[start+lengthLen:])), nil`),
	},
	{
		Name:    "crc-not-sent",
		Fault:   "CRCs are checked and not generated: the field is zero.",
		Clauses: []string{"rfc5044-7.1.1-11", "rfc5044-4.4-6"},
		Edits: one("mpa/conn.go",
			`Framer{CRC: p.CRC, Markers: p.SendMarkers}`,
			`Framer{Markers: p.SendMarkers}`),
	},
	{
		Name:    "crc-not-checked",
		Fault:   "CRCs are generated and not checked.",
		Clauses: []string{"rfc5044-4.4-12", "rfc5044-4.4-11", "rfc5044-8-2", "rfc5044-6-2", "rfc5044-7.1.1-11"},
		Edits: one("mpa/conn.go",
			`Deframer{CRC: p.CRC, Markers: p.RecvMarkers}`,
			`Deframer{Markers: p.RecvMarkers}`),
	},
	{
		Name:    "crc-error-skipped",
		Fault:   "A damaged FPDU is dropped, and the next one is passed on as if nothing had happened.",
		Clauses: []string{"rfc5044-8-6", "rfc5044-8-2"},
		Edits: one("mpa/conn_recv.go", `		if err != nil {
			c.stop(b, total)
			return err
		}
`, `		if err != nil { // this one is damaged, the next may be whole
			b = b[c.deframer.FPDULen(b):]
			continue
		}
`),
	},
	{
		Name:    "crc-error-resets",
		Fault:   "A CRC error resets the TCP connection instead of ending the stream with a Terminate.",
		Clauses: []string{"rfc5044-8-7"},
		Edits: one("rdmap/stream.go",
			`(e.Code == mpa.CodeCRC || e.Code == mpa.CodeMarker)`,
			`e.Code == mpa.CodeMarker`),
	},
	{
		Name:    "pad-without-length",
		Fault:   "The pad is computed for the ULPDU alone, without its length field, by sender and receiver.",
		Clauses: []string{"rfc5044-4.1-1"},
		Edits: one("mpa/fpdu.go",
			`return -(lengthLen + n) & 3`,
			`return -n & 3`),
	},
	{
		Name:    "pad-not-zero",
		Fault:   "The pad is sent with whatever its memory held.",
		Clauses: []string{"rfc5044-4.1-2"},
		Edits: one("mpa/fpdu.go",
			`var zeroPad [3]byte`,
			`var zeroPad = [3]byte{0xDE, 0xAD, 0xBE}`),
	},
	{
		Name:    "pad-checked",
		Fault:   "An FPDU whose pad is not zero is refused.",
		Clauses: []string{"rfc5044-4.1-2"},
		Edits: one("mpa/deframer.go", `	length := int(binary.BigEndian.Uint16(fpdu[lead:]))
`, `	length := int(binary.BigEndian.Uint16(fpdu[lead:]))
	for _, b := range fpdu[total-CRCLen-padLen(length) : total-CRCLen] {
		if b != 0 && !d.Markers {
			return nil, 0, &Error{Code: CodeCRC, Clause: "RFC 5044 §4.1", Reason: "the pad is not zero"}
		}
	}
`),
	},
	{
		Name:    "length-counts-itself",
		Fault:   "ULPDU Length, as it is sent, counts its own two octets as well.",
		Clauses: []string{"rfc5044-4.1-1"},
		Edits: one("mpa/fpdu.go", `	b = binary.BigEndian.AppendUint16(b, uint16(n)) // ULPDU_Length (16)
	for _, p := range pieces {
		b = append(b, p...) // ULPDU
`, `	b = binary.BigEndian.AppendUint16(b, uint16(lengthLen+n)) // ULPDU_Length (16)
	for _, p := range pieces {
		b = append(b, p...) // ULPDU
`),
	},
	{
		Name:    "partial-fpdu-dropped",
		Fault:   "The part of an FPDU that one read has brought is forgotten before the next read.",
		Clauses: []string{"rfc5044-5.1-1", "rfc5044-6-4", "rfc5044-5.2-1"},
		Edits: one("mpa/conn_recv.go", `	if in.n = copy(in.buf[:], b); in.n == 0 {
		in.stash = in.stash[:0]
	}
`, `	in.n, in.stash = 0, in.stash[:0]
`),
	},
	{
		Name:    "mulpdu-too-large",
		Fault:   "MULPDU goes up to what ULPDU Length can say, beyond 64768 octets.",
		Clauses: []string{"rfc5044-3-3", "rfc5044-3-4"},
		Edits: one("mpa/mulpdu.go",
			`MaxMULPDU = 64768`,
			`MaxMULPDU = 65528`),
	},
	{
		Name:    "mulpdu-without-crc",
		Fault:   "MULPDU leaves no room for the CRC: a full FPDU exceeds the TCP segment by four octets.",
		Clauses: []string{"rfc5044-4.5-2", "rfc5044-4.5-1"},
		Edits: one("mpa/mulpdu.go",
			`overhead := lengthLen + CRCLen + emss%4`,
			`overhead := lengthLen + emss%4`),
	},
	{
		Name:    "mulpdu-without-markers",
		Fault:   "MULPDU leaves no room for the Markers of a segment.",
		Clauses: []string{"rfc5044-4.5-1"},
		Edits: one("mpa/mulpdu.go", `		overhead += MarkerLen * ((emss + MarkerInterval - 1) / MarkerInterval)
`, `		overhead += MarkerLen // before the FPDU
`),
	},
}
