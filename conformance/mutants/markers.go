package mutants

// markers breaks Markers: RFC 5044 §4.2 and §4.3.
var markers = []Mutant{
	{
		Name:    "marker-request-ignored",
		Fault:   "A Responder goes by its own M and not by the Request's, and sends no Markers that only the latter asks for.",
		Clauses: []string{"rfc5044-7.1.1-6", "rfc5044-7.1.1-9", "rfc5044-4.3-1"},
		Edits: one("mpa/negotiate.go",
			`SendMarkers: req.Markers, RecvMarkers: rep.Markers,`,
			`SendMarkers: rep.Markers, RecvMarkers: rep.Markers,`),
	},
	{
		Name:    "marker-reply-ignored",
		Fault:   "An Initiator goes by its own M and not by the Reply's, and sends no Markers that only the latter asks for.",
		Clauses: []string{"rfc5044-7.1.1-7", "rfc5044-7.1.1-9", "rfc5044-4.3-1"},
		Edits: one("mpa/negotiate.go",
			`SendMarkers: rep.Markers, RecvMarkers: req.Markers,`,
			`SendMarkers: req.Markers, RecvMarkers: req.Markers,`),
	},
	{
		Name:    "marker-unasked",
		Fault:   "A Responder sends Markers whether the Request has M or not.",
		Clauses: []string{"rfc5044-7.1.1-8"},
		Edits: one("mpa/negotiate.go",
			`SendMarkers: req.Markers, RecvMarkers: rep.Markers,`,
			`SendMarkers: true, RecvMarkers: rep.Markers,`),
	},
	{
		Name:    "marker-unasked-by-reply",
		Fault:   "An Initiator sends Markers whether the Reply has M or not.",
		Clauses: []string{"rfc5044-7.1.1-8"},
		Edits: one("mpa/negotiate.go",
			`SendMarkers: rep.Markers, RecvMarkers: req.Markers,`,
			`SendMarkers: true, RecvMarkers: req.Markers,`),
	},
	{
		Name:    "marker-interval-without-marker",
		Fault:   "Between two Markers there are 512 octets, the Marker itself not counted.",
		Clauses: []string{"rfc5044-4.3-2", "rfc5044-4.3-7"},
		Edits: one("mpa/marker.go",
			`MarkerInterval = 512`,
			`MarkerInterval = 512 + MarkerLen`),
	},
	{
		Name:    "marker-first-missing",
		Fault:   "There is no Marker before the first FPDU, and the later ones stand as if there were.",
		Clauses: []string{"rfc5044-4.3-7", "rfc5044-4.3-2"},
		Edits: one("mpa/conn.go",
			`Framer{CRC: p.CRC, Markers: p.SendMarkers}`,
			`Framer{CRC: p.CRC, Markers: p.SendMarkers, clock: MarkerLen}`),
	},
	{
		Name:    "fpduptr-from-its-end",
		Fault:   "FPDUPTR counts the four octets of its own Marker.",
		Clauses: []string{"rfc5044-4.3-3", "rfc5044-4.3-10"},
		Edits: one("mpa/marker.go",
			`b = append(b, 0, 0)                                       // Reserved (16)
	return binary.BigEndian.AppendUint16(b, uint16(distance)) // FPDUPTR (16)`,
			`b = append(b, 0, 0)                                         // Reserved (16)
	return binary.BigEndian.AppendUint16(b, uint16(distance+4)) // FPDUPTR (16)`),
	},
	{
		Name:    "fpduptr-to-leading-marker",
		Fault:   "Where a Marker leads an FPDU, the Markers inside point to that one and not to ULPDU Length.",
		Clauses: []string{"rfc5044-4.3-8", "rfc5044-4.3-3"},
		Edits: one("mpa/fpdu.go",
			`start := len(b) // the ULPDU_Length, to which the markers point`,
			`start := first`),
	},
	{
		Name:    "fpduptr-modulo-interval",
		Fault:   "FPDUPTR counts only from the Marker before: those of a long FPDU don't reach its beginning.",
		Clauses: []string{"rfc5044-4.3-8", "rfc5044-4.3-3"},
		Edits: one("mpa/marker.go",
			`b = append(b, 0, 0)                                       // Reserved (16)
	return binary.BigEndian.AppendUint16(b, uint16(distance)) // FPDUPTR (16)`,
			`b = append(b, 0, 0)                                                      // Reserved (16)
	return binary.BigEndian.AppendUint16(b, uint16(distance%MarkerInterval)) // FPDUPTR (16)`),
	},
	{
		Name:    "marker-reserved-not-zero",
		Fault:   "The reserved field of a Marker is sent as ones.",
		Clauses: []string{"rfc5044-4.2-2"},
		Edits: one("mpa/marker.go",
			`b = append(b, 0, 0)                                       // Reserved (16)`,
			`b = append(b, 0xFF, 0xFF)                                 // Reserved (16)`),
	},
	{
		Name:    "marker-leading-not-in-crc",
		Fault:   "The CRC that is sent does not cover the Marker before the FPDU.",
		Clauses: []string{"rfc5044-4.4-10", "rfc5044-4.3-5"},
		Edits: []Edit{
			{
				"mpa/fpdu.go", `	first := len(b) // the CRC covers a marker that leads the FPDU: §4.4 rule 2
`, ``,
			},
			{
				"mpa/fpdu.go",
				`return appendCRC(b, f.checksum(b[first:]))`,
				`return appendCRC(b, f.checksum(b[start:]))`,
			},
		},
	},
	{
		Name:    "marker-not-checked",
		Fault:   "Markers that come are taken out, and nobody looks where they point to.",
		Clauses: []string{"rfc5044-8-3"},
		Edits: one("mpa/deframer.go", `	if err := d.checkMarkers(fpdu, lead); err != nil {
		return nil, 0, err
	}
`, ``),
	},
	{
		Name:    "marker-low-bits-checked",
		Fault:   "A Marker whose FPDUPTR has one of its low two bits set is refused.",
		Clauses: []string{"rfc5044-4.2-4", "rfc5044-4.3-6"},
		Edits: one("mpa/marker.go",
			`binary.BigEndian.Uint16(m[2:]) &^ 3;`,
			`binary.BigEndian.Uint16(m[2:]);`),
	},
	{
		Name:    "marker-reserved-checked",
		Fault:   "A Marker whose reserved field is not zero is refused.",
		Clauses: []string{"rfc5044-4.2-2"},
		Edits: one("mpa/marker.go",
			`ptr != uint16(distance) {`,
			`ptr != uint16(distance) || m[0]|m[1] != 0 {`),
	},
	{
		Name:    "marker-error-resets",
		Fault:   "A Marker error resets the TCP connection instead of ending the stream with a Terminate.",
		Clauses: []string{"rfc5044-8-7", "rfc5044-8-9"},
		Edits: one("rdmap/stream.go",
			`(e.Code == mpa.CodeCRC || e.Code == mpa.CodeMarker)`,
			`e.Code == mpa.CodeCRC`),
	},
}
