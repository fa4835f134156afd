package mutants

// startup breaks the Request and the Reply and what comes of them: RFC 5044 §7.1.
var startup = []Mutant{
	{
		Name:    "request-key-wrong",
		Fault:   "The Key of the Request is spelled with a small f, by Initiator and Responder.",
		Clauses: []string{"rfc5044-7.1.1-1", "rfc5044-7.1.2-1"},
		Edits: one("mpa/frame.go",
			`"MPA ID Req Frame"`,
			`"MPA ID Req frame"`),
	},
	{
		Name:    "reply-key-wrong",
		Fault:   "The Key of the Reply is spelled with a small f, by Initiator and Responder.",
		Clauses: []string{"rfc5044-7.1.1-3"},
		Edits: one("mpa/frame.go",
			`"MPA ID Rep Frame"`,
			`"MPA ID Rep frame"`),
	},
	{
		Name:    "key-not-checked",
		Fault:   "Any Key is taken for that of the frame which is expected.",
		Clauses: []string{"rfc5044-7.1.1-2", "rfc5044-7.1.2-3", "rfc5044-7.1.2-9", "rfc5044-8-4"},
		Edits: one("mpa/frame.go",
			`return false, startupError("RFC 5044 §7.1.2", "the Key is %q, neither %q nor %q: the peer does not speak MPA", head, requestKey, replyKey)`,
			`return strings.Contains(head, "Rep"), nil`),
	},
	{
		Name:    "reply-taken-for-request",
		Fault:   "A Responder takes a Reply Frame for a Request.",
		Clauses: []string{"rfc5044-7.1.1-2"},
		Edits: one("mpa/negotiate.go", `	case f.Reply:
		// The other side must be an Initiator for this one to respond.
		return startupError("RFC 5044 §7.1.2", "a Reply Frame came in place of a Request: both sides are Responders")
`, ``),
	},
	{
		Name:    "request-taken-for-reply",
		Fault:   "An Initiator takes a Request Frame, of another Initiator, for its Reply.",
		Clauses: []string{"rfc5044-7.1.2-10", "rfc5044-7.1.1-4"},
		Edits: one("mpa/negotiate.go", `	case !rep.Reply:
		return p, startupError("RFC 5044 §7.1.2", "a Request Frame came in place of a Reply: both sides are Initiators")
`, ``),
	},
	{
		Name:    "bad-request-left-open",
		Fault:   "A Responder that finds a Request malformed does not close the TCP connection.",
		Clauses: []string{"rfc5044-7.1.2-3", "rfc5044-8-5", "rfc5044-7.1.1-2"},
		Edits: one("mpa/startup.go", `		if conn != nil {
			_ = closeStream(conn, cfg.Recorder) // err says why already
		}
		return nil, err
`, `		return nil, err
`),
	},
	{
		Name:    "bad-reply-left-open",
		Fault:   "An Initiator that finds a Reply malformed does not close the TCP connection.",
		Clauses: []string{"rfc5044-7.1.2-6", "rfc5044-8-5", "rfc5044-7.1.1-4"},
		Edits: one("mpa/startup.go", `	c, err := initiate(ctx, conn, cfg)
	var rejected *RejectedError
	if c == nil && err != nil && !errors.As(err, &rejected) && conn != nil {
		_ = closeStream(conn, cfg.Recorder) // err says why already
	}
	return c, err
`, `	return initiate(ctx, conn, cfg)
`),
	},
	{
		Name:    "rev-not-checked",
		Fault:   "A Responder takes a Request of any revision.",
		Clauses: []string{"rfc5044-7.1.1-16", "rfc5044-7.1.1-15"},
		Edits: one("mpa/negotiate.go", `	case f.Revision != Revision1 && f.Revision != Revision2:
		return startupError("RFC 5044 §7.1.1", "the Request has revision %d; this side speaks 1 and 2", f.Revision)
`, ``),
	},
	{
		Name:    "rev-of-reply-not-checked",
		Fault:   "An Initiator takes a Reply of any revision.",
		Clauses: []string{"rfc5044-7.1.1-16", "rfc5044-7.1.1-15"},
		Edits: one("mpa/negotiate.go", `	case rep.Revision != req.Revision:
		err := startupError("RFC 5044 §7.1.1", "the Reply has revision %d, the Request had %d", rep.Revision, req.Revision)
		if rep.Revision == Revision1 {
			err.Err = errRevision1
		}
		return p, err
`, ``),
	},
	{
		Name:    "rev-not-echoed",
		Fault:   "A Responder answers a Request of revision 1 with a Reply of revision 2.",
		Clauses: []string{"rfc5044-7.1.1-14"},
		Edits: one("mpa/negotiate.go",
			`rep = Frame{Reply: true, Revision: req.Revision,`,
			`rep = Frame{Reply: true, Revision: Revision2,`),
	},
	{
		Name:    "frame-reserved-sent",
		Fault:   "A Responder sends back the reserved bits of the Request.",
		Clauses: []string{"rfc5044-7.1.1-13", "rfc6581-6-1"},
		Edits: one("mpa/negotiate.go",
			`rep = Frame{Reply: true, Revision: req.Revision,`,
			`rep = Frame{Reply: true, Reserved: req.Reserved, Revision: req.Revision,`),
	},
	{
		Name:    "frame-reserved-checked",
		Fault:   "A Responder refuses a Request with reserved bits set.",
		Clauses: []string{"rfc5044-7.1.1-13", "rfc6581-6-2"},
		Edits: one("mpa/negotiate.go", `	case c.Revision == Revision1 && f.Revision != Revision1:
`, `	case f.Reserved != 0:
		return startupError("RFC 5044 §7.1.1", "the Request has reserved bits 0x%x", f.Reserved)
	case c.Revision == Revision1 && f.Revision != Revision1:
`),
	},
	{
		Name:    "private-data-1024",
		Fault:   "Up to 1024 octets of Private Data are taken, instead of 512.",
		Clauses: []string{"rfc5044-7.1.1-18", "rfc5044-7.1.1-19", "rfc5044-7.1.2-11"},
		Edits: one("mpa/frame.go",
			`MaxPrivateData = 512`,
			`MaxPrivateData = 1024`),
	},
	{
		Name:    "pd-length-of-ulp-only",
		Fault:   "PD_Length of an enhanced frame counts what the ULP gave, and not the enhanced block before it.",
		Clauses: []string{"rfc5044-7.1.1-17", "rfc6581-6-5"},
		Edits: one("mpa/frame.go", `	return append(b, f.PrivateData...), nil                          // Private Data
}
`, `	binary.BigEndian.PutUint16(b[len(b)-2:], uint16(len(f.ULPData())))
	return append(b, f.PrivateData...), nil // Private Data
}
`),
	},
	{
		Name:    "octets-behind-request-taken",
		Fault:   "A Responder drops what follows the Private Data in the same TCP segment, and accepts.",
		Clauses: []string{"rfc5044-7.1.1-18", "rfc5044-7.1.2-11", "rfc5044-7.1.2-13"},
		Edits: one("mpa/startup.go", `	if n := len(r.s.rest()); n > 0 {
		r.s.recordRest()
		return nil, startupError("RFC 5044 §7.1.2", "%d octets follow the Request before the Reply", n)
	}
`, ``),
	},
	{
		Name:    "reject-ignored",
		Fault:   "An Initiator goes on as if R of the Reply were not set.",
		Clauses: []string{"rfc5044-7.1.2-7"},
		Edits: one("mpa/negotiate.go", `	case rep.Rejected:
		return p, rejection(rep)
`, ``),
	},
	{
		Name:    "reject-closes",
		Fault:   "A Responder that rejects closes the TCP connection at once, instead of leaving it to the Initiator.",
		Clauses: []string{"rfc5044-7.1.2-4"},
		Edits: one("rnic/request.go",
			`patience := r.dev.cfg.CloseTimeout`,
			`patience := 0 * r.dev.cfg.CloseTimeout`),
	},
	{
		Name:    "reject-without-r",
		Fault:   "A Responder whose ULP rejects sends a Reply that accepts.",
		Clauses: []string{"rfc5044-7.1.2-15"},
		Edits: one("mpa/startup.go", `	rep.Rejected = true
	return r.answer(ctx, &rep)
`, `	return r.answer(ctx, &rep)
`),
	},
	{
		Name:    "request-wait-unbounded",
		Fault:   "A Responder waits for a Request for ever.",
		Clauses: []string{"rfc5044-7.1.2-19", "rfc5044-7.1.2-20"},
		Edits: one("mpa/startup.go",
			`defer r.s.limit(ctx, orDefault(cfg.RequestTimeout, DefaultRequestTimeout))()`,
			`defer r.s.limit(ctx, 24*time.Hour)()`),
	},
	{
		Name:    "crc-wanted-by-both",
		Fault:   "A Responder uses CRCs only if both frames have C set.",
		Clauses: []string{"rfc5044-7.1.1-11", "rfc5044-4.4-6"},
		Edits: one("mpa/negotiate.go",
			`req.CRC || rep.CRC, // "either`,
			`req.CRC && rep.CRC, // "either`),
	},
	{
		Name:    "crc-wanted-by-both-initiator",
		Fault:   "An Initiator uses CRCs only if both frames have C set.",
		Clauses: []string{"rfc5044-7.1.1-11", "rfc5044-4.4-6"},
		Edits: one("mpa/negotiate.go",
			`req.CRC || rep.CRC, // as for a Responder`,
			`req.CRC && rep.CRC, // as for a Responder`),
	},
	{
		Name:    "crc-never-off",
		Fault:   "CRCs are checked even if neither frame has C set.",
		Clauses: []string{"rfc5044-7.1.1-10", "rfc5044-7.1.1-12", "rfc5044-4.4-7", "rfc5044-4.1-3"},
		Edits: one("mpa/conn.go",
			`Deframer{CRC: p.CRC, Markers: p.RecvMarkers}`,
			`Deframer{CRC: true, Markers: p.RecvMarkers}`),
	},
	{
		Name:    "reply-without-c",
		Fault:   "A Reply never has C set, whatever the Responder is configured for.",
		Clauses: []string{"rfc5044-4.4-4", "rfc5044-4.4-2"},
		Edits: one("mpa/negotiate.go",
			`Revision: req.Revision, CRC: c.CRC != CRCOff, Markers: c.Markers, PrivateData: pd}`,
			`Revision: req.Revision, Markers: c.Markers, PrivateData: pd}`),
	},
	{
		Name:    "request-without-c",
		Fault:   "A Request never has C set, whatever the Initiator is configured for.",
		Clauses: []string{"rfc5044-4.4-4", "rfc5044-4.4-2"},
		Edits: one("mpa/negotiate.go",
			`f := Frame{Revision: Revision1, CRC: c.CRC != CRCOff, Markers: c.Markers}`,
			`f := Frame{Revision: Revision1, Markers: c.Markers}`),
	},
	{
		Name:    "responder-speaks-first",
		Fault:   "A Responder sends FPDUs as soon as it has sent the Reply.",
		Clauses: []string{"rfc5044-7.1.2-8"},
		Edits: one("mpa/conn.go", `	case p.Role == Initiator:
		c.open()
`, `	case p.Role == Initiator || !p.PeerToPeer:
		c.open()
`),
	},
	{
		Name:    "responder-opens-unvalidated",
		Fault:   "A Responder takes the right to send from an FPDU whose CRC is wrong.",
		Clauses: []string{"rfc5044-7.1.2-8"},
		Edits: []Edit{
			{
				"mpa/conn_recv.go", `		ulpdu, n, err := c.deframer.Next(b)
		if err != nil {
`, `		ulpdu, n, err := c.deframer.Next(b)
		if err != nil || n > 0 {
			c.open()
		}
		if err != nil {
`,
			},
			{
				"rnic/internal/life/received.go",
				`case a.Violation != nil && !m.stream.heard && m.state != Closing:`,
				`case a.Violation != nil && !m.stream.heard && m.state != Closing && a.Event != Integrity:`,
			},
		},
	},
}
