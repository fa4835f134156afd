package mutants

// operation breaks MPA in full operation, where FPDUs begin and end, are long, come in
// parts, and stop: RFC 5044 §4 to §8.
var operation = []Mutant{
	{
		Name:    "crc-of-long-fpdu-without-pad",
		Fault:   "The CRC of an FPDU that is summed up while it is copied does not cover the pad.",
		Clauses: []string{"rfc5044-4.4-10"},
		Case:    "rfc5044-4.4-10/response-of-8001",
		Edits: one("mpa/fpdu.go",
			`return appendCRC(append(b, pad...), UpdateCRC(crc, pad)) // PAD, CRC (32)`,
			`return appendCRC(append(b, pad...), crc) // PAD, CRC (32)`),
	},
	{
		Name:    "crc-of-gathered-fpdu-without-pad",
		Fault:   "The CRC of an FPDU whose payload is sent from where it lies does not cover the pad.",
		Clauses: []string{"rfc5044-4.4-10"},
		Case:    "rfc5044-4.4-10/write-of-8001",
		Edits: one("mpa/conn_send.go", `	if c.framer.CRC {
		crc = UpdateCRC(crc, b)
	}
`, ``),
	},
	{
		Name:    "crc-of-gathered-payload-only",
		Fault:   "The CRC of an FPDU whose payload is sent from where it lies covers the payload only, not the headers before it.",
		Clauses: []string{"rfc5044-4.4-10", "rfc5044-4.4-9"},
		Edits: one("mpa/conn_send.go", `	crc = UpdateCRC(0, b)
	err = memfault.Do(func() {
`, `	err = memfault.Do(func() {
`),
	},
	{
		Name:    "pad-of-gathered-fpdu-missing",
		Fault:   "An FPDU whose payload is sent from where it lies has no pad.",
		Clauses: []string{"rfc5044-4.4-10", "rfc5044-4.1-1", "rfc5044-4.4-8"},
		Case:    "rfc5044-4.4-10/write-of-8001",
		Edits: []Edit{
			{"mpa/conn_send.go", `	b = append(c.out.room(), zeroPad[:padLen(length)]...)
`, `	b = c.out.room()
`},
			{"mpa/conn_send.go", `	c.out.posted += uint64(total)
`, `	if gather {
		total -= padLen(length)
	}
	c.out.posted += uint64(total)
`},
		},
	},
	{
		Name:    "marker-behind-pad-missing",
		Fault:   "A Marker that is due between the pad and the CRC is not sent.",
		Clauses: []string{"rfc5044-4.3-2", "rfc5044-4.4-10", "rfc5044-4.3-7"},
		Edits: one("mpa/fpdu.go", `	if f.clock.due() { // a marker right behind the PAD is covered too: §4.4 rule 1
		b = appendMarker(b, len(b)-start)
		f.clock = f.clock.after(MarkerLen)
	}
`, `	if f.clock.due() {
		f.clock = f.clock.after(MarkerLen)
	}
`),
	},
	{
		Name:    "marker-clock-skips-crc",
		Fault:   "The sender does not count the CRC of an FPDU between two Markers.",
		Clauses: []string{"rfc5044-4.3-2", "rfc5044-4.3-7"},
		Edits: one("mpa/fpdu.go", `	f.clock = f.clock.after(CRCLen)
`, ``),
	},
	{
		Name:    "marker-clock-of-each-fpdu",
		Fault:   "The receiver counts to the next Marker from the beginning of each FPDU.",
		Clauses: []string{"rfc5044-4.3-12", "rfc5044-6-3"},
		Case:    "rfc5044-4.3-12/long-stream",
		Edits: one("mpa/deframer.go", `	d.clock = d.clock.after(total)
	return ulpdu`, `	d.clock = markerClock(0).after(total)
	return ulpdu`),
	},
	{
		Name:    "marker-behind-fpdu-counts",
		Fault:   "The receiver takes a Marker that is due right behind an FPDU for a part of it.",
		Clauses: []string{"rfc5044-4.3-12", "rfc5044-6-3", "rfc5044-4.3-10"},
		Edits: one("mpa/marker.go",
			`if n <= c.room() {`,
			`if n < c.room() {`),
	},
	{
		Name:    "only-first-marker-removed",
		Fault:   "Of the Markers in an FPDU, the receiver takes out the first one only.",
		Clauses: []string{"rfc5044-4.3-12", "rfc5044-3-6"},
		Edits: one("mpa/deframer.go", `		end := min(at+MarkerInterval, len(fpdu))
		w += copy(out[w:], fpdu[at+MarkerLen:end])
		at = end
`, `		w += copy(out[w:], fpdu[at+MarkerLen:])
		at = len(fpdu)
`),
	},
	{
		Name:    "leading-marker-not-checked",
		Fault:   "Where the Marker before an FPDU points to is not looked at; those inside are checked.",
		Clauses: []string{"rfc5044-8-9", "rfc5044-8-3"},
		Edits: one("mpa/deframer.go", `	if lead > 0 {
		if err := checkMarker(fpdu, 0); err != nil {
			return err
		}
	}
`, ``),
	},
	{
		Name:    "last-marker-not-checked",
		Fault:   "Where the last Marker inside an FPDU points to is not looked at.",
		Clauses: []string{"rfc5044-8-9", "rfc5044-8-3"},
		Edits: one("mpa/deframer.go",
			`at < len(fpdu); at += MarkerInterval {`,
			`at+MarkerInterval < len(fpdu); at += MarkerInterval {`),
	},
	{
		Name:    "markers-before-crc",
		Fault:   "An FPDU with both a wrong Marker and a wrong CRC is told as one with a wrong Marker: the CRC is verified second.",
		Clauses: []string{"rfc5044-4.4-11"},
		Case:    "rfc5044-4.4-11/marker-and-crc-wrong",
		Edits: one("mpa/deframer.go", `	if d.CRC {
		if got`, `	if d.Markers {
		if err := d.checkMarkers(fpdu, d.lead()); err != nil {
			return nil, 0, err
		}
	}
	if d.CRC {
		if got`),
	},
	{
		Name:    "long-partial-fpdu-dropped",
		Fault:   "Of an FPDU of which one read has brought more than 4096 bytes, these are forgotten before the next read.",
		Clauses: []string{"rfc5044-5.1-1", "rfc5044-6-4"},
		Case:    "rfc5044-6-4/long-fpdu-without-its-last-byte",
		Edits: one("mpa/conn_recv.go", `	in.keep()
}

// release`, `	in.n, in.stash = 0, in.stash[:0]
	in.release()
}

// release`),
	},
	{
		Name:    "partial-fpdu-passed-on",
		Fault:   "An FPDU of which only the CRC is missing is passed on without it.",
		Clauses: []string{"rfc5044-6-4", "rfc5044-6-1"},
		Edits: one("mpa/deframer.go", `	if total == 0 || len(b) < total {
		return nil, 0, nil
	}
	fpdu := b[:total]
`, `	if total == 0 || len(b) < total-CRCLen {
		return nil, 0, nil
	}
	if len(b) < total && !d.Markers {
		n := int(binary.BigEndian.Uint16(b))
		return b[lengthLen : lengthLen+n : lengthLen+n], len(b), nil
	}
	fpdu := b[:total]
`),
	},
	{
		Name:    "one-fpdu-per-read",
		Fault:   "Of the FPDUs that one read brings, the first one is passed on, and the others wait for the next read.",
		Clauses: []string{"rfc5044-4.3-11", "rfc5044-6-3", "rfc5044-5.2-1"},
		Edits: one("mpa/conn_recv.go", `		if err := in.hand(place, ulpdu, b); err != nil {
			return err
		}
	}
	if in.n`, `		if err := in.hand(place, ulpdu, b); err != nil {
			return err
		}
		break
	}
	if in.n`),
	},
	{
		Name:    "fin-within-fpdu-is-graceful",
		Fault:   "An end of the connection within an FPDU is taken for a graceful one.",
		Clauses: []string{"rfc5044-8-1", "rfc5044-6-4"},
		Case:    "rfc5044-8-1/fin-within-an-fpdu",
		Edits: one("mpa/conn_recv.go",
			`if errors.Is(err, io.EOF) && partial {`,
			`if errors.Is(err, io.EOF) && partial && in.order == 0 && in.n > intakeSize {`),
	},
	{
		Name:    "fin-not-answered",
		Fault:   "When the peer has ended its half, this side leaves its own open.",
		Clauses: []string{"rfc5044-7.2-1", "rfc5041-6.2.1-3"},
		Case:    "rfc5044-7.2-1/ends-its-half",
		Edits: one("rnic/internal/life/closing.go", `	case m.state == RTS:
`, `	case m.state == RTS && (st.peer != peerEnded || st.draining):
`),
	},
	{
		Name:    "crc-error-ends-in-silence",
		Fault:   "After a wrong CRC, the receiver stops reading and tells nobody.",
		Clauses: []string{"rfc5044-8-8", "rfc5044-8-2", "rfc5044-8-7"},
		Case:    "rfc5044-8-8/crc-error",
		Edits: one("mpa/conn_recv.go", `		if err != nil {
			c.stop(b, total)
			return err
		}
`, `		if err != nil {
			return nil
		}
`),
	},
	{
		Name:    "marker-error-told-as-crc-error",
		Fault:   "A Marker that points elsewhere is told as a CRC error.",
		Clauses: []string{"rfc5044-8-9", "rfc5044-8-3"},
		Edits: one("mpa/marker.go",
			`Code: CodeMarker, Clause: "RFC 5044 §8",`,
			`Code: CodeCRC, Clause: "RFC 5044 §8",`),
	},
	{
		Name:    "mulpdu-below-128",
		Fault:   "To a peer that takes very small TCP segments, MULPDU is less than 128 bytes.",
		Clauses: []string{"rfc5044-4.5-3", "rfc5044-3-3"},
		Case:    "rfc5044-4.5-3/mss-88",
		Edits: one("mpa/mulpdu.go",
			`return min(max(emss-overhead, MinMULPDU), MaxMULPDU)`,
			`return min(max(emss-overhead, MinMULPDU/2), MaxMULPDU)`),
	},
	{
		Name:    "mulpdu-not-aligned",
		Fault:   "MULPDU does not leave the bytes free by which a TCP segment exceeds a multiple of four.",
		Clauses: []string{"rfc5044-4.5-2", "rfc5044-4.5-1"},
		Edits: one("mpa/mulpdu.go",
			`overhead := lengthLen + CRCLen + emss%4`,
			`overhead := lengthLen + CRCLen`),
	},
	{
		Name:    "mulpdu-halved",
		Fault:   "ULPDUs are half as large as MULPDU allows.",
		Clauses: []string{"rfc5044-4.5-5"},
		Edits: one("mpa/conn.go",
			`c.mulpdu.Store(int64(mulpdu))`,
			`c.mulpdu.Store(int64(max(mulpdu/2, MinMULPDU)))`),
	},
	{
		Name:    "crc-field-checked-when-off",
		Fault:   "With CRCs off, an FPDU whose CRC field is not zero is refused.",
		Clauses: []string{"rfc5044-4.1-3", "rfc5044-7.1.1-12"},
		Edits: one("mpa/deframer.go", `	lead := d.lead()
	length`, `	if !d.CRC && readCRC(fpdu[total-CRCLen:]) != 0 {
		return nil, 0, &Error{Code: CodeCRC, Clause: "RFC 5044 §4.1", Reason: "the field is not zero"}
	}
	lead := d.lead()
	length`),
	},
	{
		Name:    "crc-read-big-endian",
		Fault:   "The CRC of an FPDU that comes is read with its most significant byte first.",
		Clauses: []string{"rfc5044-4.4-11", "rfc5044-4.4-9"},
		Edits: one("mpa/crc.go",
			`return binary.LittleEndian.Uint32(b)`,
			`return binary.BigEndian.Uint32(b)`),
	},
	{
		Name:    "markers-agreed-and-not-sent",
		Fault:   "Markers are agreed to, and not sent.",
		Clauses: []string{"rfc5044-4.3-1", "rfc5044-4.3-2", "rfc5044-7.1.1-9"},
		Edits: one("mpa/conn.go",
			`Framer{CRC: p.CRC, Markers: p.SendMarkers}`,
			`Framer{CRC: p.CRC}`),
	},
	{
		Name:    "markers-asked-for-and-not-expected",
		Fault:   "Markers are asked for, and taken for data when they come.",
		Clauses: []string{"rfc5044-4.3-12", "rfc5044-7.1.1-5"},
		Edits: one("mpa/conn.go",
			`Deframer{CRC: p.CRC, Markers: p.RecvMarkers}`,
			`Deframer{CRC: p.CRC}`),
	},
	{
		Name:    "mulpdu-as-without-markers",
		Fault:   "MULPDU is computed as if there were no Markers: a full FPDU exceeds the TCP segment.",
		Clauses: []string{"rfc5044-4.5-1"},
		Edits: one("mpa/conn.go",
			`mulpdu = MULPDU(emss, c.params.SendMarkers)`,
			`mulpdu = MULPDU(emss, false)`),
	},
	{
		Name:    "fpduptr-of-inner-markers",
		Fault:   "FPDUPTR of a Marker within a ULPDU points four bytes before ULPDU Length.",
		Clauses: []string{"rfc5044-4.3-3", "rfc5044-4.3-8"},
		Edits: one("mpa/fpdu.go", `			if f.clock.due() {
				b = appendMarker(b, len(b)-start)
`, `			if f.clock.due() {
				b = appendMarker(b, len(b)-start+MarkerLen)
`),
	},
	{
		Name:    "pad-passed-on",
		Fault:   "The pad of an FPDU is passed on as a part of the ULPDU.",
		Clauses: []string{"rfc5044-3-6", "rfc5044-4.3-12"},
		Edits: one("mpa/deframer.go",
			`return fpdu[lengthLen : lengthLen+length : lengthLen+length], total, nil`,
			`return fpdu[lengthLen : total-CRCLen : total-CRCLen], total, nil`),
	},
	{
		Name:    "pad-passed-on-with-markers",
		Fault:   "Where there are Markers, the pad of an FPDU is passed on as a part of the ULPDU.",
		Clauses: []string{"rfc5044-3-6", "rfc5044-4.3-12"},
		Edits: one("mpa/deframer.go",
			`return ulpdu[:length:length], total, nil`,
			`return ulpdu[:length+padLen(length)], total, nil`),
	},
	{
		Name:    "half-closed-is-closed",
		Fault:   "To end its half of the connection, this side closes all of it: what the peer still sends resets the connection.",
		Clauses: []string{"rfc5040-6.2.1-3", "rfc5040-7-2", "rfc5044-8-7"},
		Edits: one("mpa/conn.go",
			`c.stream.CloseWrite(); err != nil`,
			`c.stream.Close(); err != nil`),
	},
}
