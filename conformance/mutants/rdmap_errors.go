package mutants

// rdmapErrors breaks the Terminate message and what leads to it: RFC 5040 §4.8 and
// §7.
var rdmapErrors = []Mutant{
	{
		Name:    "terminate-not-sent",
		Fault:   "An error in what the peer sent resets the connection, without a Terminate.",
		Clauses: []string{"rfc5040-7.1-3", "rfc5040-7.1-4", "rfc7306-8.1-2", "rfc5040-6.2.1-1"},
		Edits: one("rnic/internal/life/received.go",
			`return m.Fail(a.Violation, a.Event), Linger`,
			`return m.lost(a.Violation, a.Event)`),
	},
	{
		Name:    "terminate-ddp-layer",
		Fault:   "An error of DDP is reported as one of RDMAP's layer.",
		Clauses: []string{"rfc5040-4.8-3"},
		Edits: one("ddp/errors.go",
			`{ return 0x1000 | uint16(c) }`,
			`{ return uint16(c) }`),
	},
	{
		Name:    "terminate-llp-layer",
		Fault:   "An error of MPA is reported as one of DDP's layer.",
		Clauses: []string{"rfc5040-4.8-3", "rfc6581-9.1-6", "rfc6581-9.2-9"},
		Edits: one("mpa/errors.go",
			`{ return 0x2000 | uint16(c) }`,
			`{ return 0x1000 | uint16(c) }`),
	},
	{
		Name:    "terminate-nibbles-exchanged",
		Fault:   "Layer and Error Type stand in each other's place.",
		Clauses: []string{"rfc5040-4.8-2"},
		Edits: one("rdmap/terminate.go", `	b = binary.BigEndian.AppendUint16(b, uint16(t.Code)) // Layer(4) EType(4) Error Code(8)
	b = append(b, t.HdrCt)                               // M(1) D(1) R(1) Reserved(5)
	b = append(b, t.Rsvd)                                // Reserved (8)
`, `	b = binary.BigEndian.AppendUint16(b, uint16(t.Code.swapped())) // EType(4) Layer(4) Error Code(8)
	b = append(b, t.HdrCt)                                         // M(1) D(1) R(1) Reserved(5)
	b = append(b, t.Rsvd)                                          // Reserved (8)
`),
	},
	{
		Name:    "terminate-hdrct-low-bits",
		Fault:   "M, D and R stand in the low bits of their octet, in reverse.",
		Clauses: []string{"rfc5040-4.8-2", "rfc5040-4.8-5", "rfc5040-4.8-6", "rfc5040-4.8-7", "rfc5040-4.8-9", "rfc5040-4.8-10", "rfc5040-7.1-3"},
		Edits: one("rdmap/terminate.go", `	hdrctM = 0x80 // DDP Segment Length valid
	hdrctD = 0x40 // DDP header included
	hdrctR = 0x20 // RDMAP header included
`, `	hdrctM = 0x01 // DDP Segment Length valid
	hdrctD = 0x02 // DDP header included
	hdrctR = 0x04 // RDMAP header included
`),
	},
	{
		Name:    "terminate-reserved-sent",
		Fault:   "The reserved bits of the Terminate Control field are sent as ones.",
		Clauses: []string{"rfc5040-4.8-4"},
		Edits: one("rdmap/terminate.go",
			`t := Terminate{Code: e.Code}`,
			`t := Terminate{Code: e.Code, Rsvd: 0xFF}`),
	},
	{
		Name:    "terminate-without-m",
		Fault:   "The segment length is in a Terminate, and M does not say that it is valid.",
		Clauses: []string{"rfc5040-4.8-5", "rfc5040-7.1-3", "rfc5040-4.8-9"},
		Edits: one("rdmap/terminate.go",
			`t.HdrCt = hdrctM | hdrctD`,
			`t.HdrCt = hdrctD`),
	},
	{
		Name:    "terminate-without-d",
		Fault:   "The DDP header is in a Terminate, and D does not say so.",
		Clauses: []string{"rfc5040-4.8-7", "rfc5040-7.1-3", "rfc5040-4.8-10"},
		Edits: one("rdmap/terminate.go",
			`t.HdrCt = hdrctM | hdrctD`,
			`t.HdrCt = hdrctM`),
	},
	{
		Name:    "terminate-without-ddp-header",
		Fault:   "D of a Terminate is set, but the DDP header is missing.",
		Clauses: []string{"rfc5040-4.8-7", "rfc5040-7.1-3"},
		Edits: one("rdmap/terminate.go", `	t.DDPHeader = e.Header
`, ``),
	},
	{
		Name:    "terminate-without-headers",
		Fault:   "A Terminate says why, and never on which segment.",
		Clauses: []string{"rfc5040-7.1-3", "rfc5040-7.1-4", "rfc7306-8.1-2", "rfc5041-7.1-15"},
		Edits: one("rdmap/terminate.go",
			`if e.Code.Layer() == LayerLLP || e.Code.EType() == 0 || len(e.Header) == 0 {`,
			`if e.Code != 0 {`),
	},
	{
		Name:    "terminate-payload-length",
		Fault:   "The DDP Segment Length of a Terminate leaves the DDP header out.",
		Clauses: []string{"rfc5040-7.1-3", "rfc5040-4.8-5"},
		Edits: one("rdmap/terminate.go",
			`t.SegmentLen = uint16(min(e.SegmentLen, 1<<16-1))`,
			`t.SegmentLen = uint16(min(e.SegmentLen-len(e.Header), 1<<16-1))`),
	},
	{
		Name:    "terminate-without-read-header",
		Fault:   "A Terminate for a Read Request lacks the Read Request's header.",
		Clauses: []string{"rfc5040-7.1-4"},
		Edits: one("rdmap/stream_recv.go", `			e := protectionError(err)
			e.RDMAHeader = append([]byte(nil), b...)
			return e
`, `			return protectionError(err)
`),
	},
	{
		Name:    "terminate-without-r",
		Fault:   "The Read Request's header is in a Terminate, and R does not say so.",
		Clauses: []string{"rfc5040-4.8-8", "rfc5040-7.1-4", "rfc5040-4.8-11"},
		Edits: one("rdmap/terminate.go", `		t.HdrCt |= hdrctR
`, ``),
	},
	{
		Name:    "terminate-zero-header",
		Fault:   "The DDP header in a Terminate is all zeros.",
		Clauses: []string{"rfc5040-7.1-3", "rfc5040-4.8-7"},
		Edits: one("rdmap/terminate.go",
			`t.DDPHeader = e.Header`,
			`t.DDPHeader = make([]byte, len(e.Header))`),
	},
	{
		Name:    "code-of-opcode",
		Fault:   "The codes of \"invalid RDMAP version\" and \"unexpected opcode\" are exchanged.",
		Clauses: []string{"rfc5040-4.8-3", "rfc5040-7.2-2", "rfc5040-7.2-3"},
		Edits: one("rdmap/errors.go", `	CodeInvalidVersion            TermCode = 0x0205 // remote operation errors
	CodeUnexpectedOpcode          TermCode = 0x0206
`, `	CodeInvalidVersion            TermCode = 0x0206 // remote operation errors
	CodeUnexpectedOpcode          TermCode = 0x0205
`),
	},
	{
		Name:    "code-of-read-bounds",
		Fault:   "A Read beyond the source's range is reported as one of an invalid STag.",
		Clauses: []string{"rfc5040-7.2-12", "rfc5040-7.2-11", "rfc5040-4.8-3"},
		Edits: one("rdmap/protection.go", `			e.Code = CodeBaseBounds
		case stag.Wrap:
			e.Code = CodeTOWrap
`, `			e.Code = CodeInvalidSTag
		case stag.Wrap:
			e.Code = CodeTOWrap
`),
	},
	{
		Name:    "code-of-read-association",
		Fault:   "A Read of an STag of another domain is reported as one without access rights.",
		Clauses: []string{"rfc5040-7.2-10", "rfc5040-4.8-3"},
		Edits: one("rdmap/protection.go",
			`e.Code = CodeSTagNotAssociated`,
			`e.Code = CodeAccessRights`),
	},
	{
		Name:    "code-of-invalidation",
		Fault:   "An Invalidate STag that is not valid is reported as an unspecified error.",
		Clauses: []string{"rfc5040-7.2-4", "rfc5040-4.8-3"},
		Edits: one("rdmap/protection.go",
			`e.Code, e.Clause = CodeInvalidSTag, "RFC 5040 §7.2"`,
			`e.Code, e.Clause = CodeOperationUnspecified, "RFC 5040 §7.2"`),
	},
}
