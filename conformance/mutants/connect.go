package mutants

// connect breaks enhanced connection establishment: RFC 6581.
var connect = []Mutant{
	{
		Name:    "rev-always-1",
		Fault:   "All frames say revision 1, those with the enhanced block too.",
		Clauses: []string{"rfc6581-6-3"},
		Edits: one("mpa/frame.go",
			`b = append(b, f.Revision)                                        // Rev (8)`,
			`b = append(b, Revision1)                                         // Rev (8)`),
	},
	{
		Name:    "rev-1-refused",
		Fault:   "A Responder takes only Requests of revision 2.",
		Clauses: []string{"rfc6581-6-4", "rfc6581-10-4"},
		Edits: one("mpa/negotiate.go",
			`case f.Revision != Revision1 && f.Revision != Revision2:`,
			`case f.Revision != Revision2:`),
	},
	{
		Name:    "rev-2-not-refused",
		Fault:   "A Responder that is set to revision 1 takes an enhanced Request all the same.",
		Clauses: []string{"rfc6581-10-7"},
		Edits: one("mpa/negotiate.go", `	case c.Revision == Revision1 && f.Revision != Revision1:
		return startupError("RFC 6581 §10", "the Request has revision %d; this side is set to 1", f.Revision)
`, ``),
	},
	{
		Name:    "enhanced-answered-plain",
		Fault:   "A Responder answers a Request with S by a Reply without, and without the enhanced block.",
		Clauses: []string{"rfc6581-10-1", "rfc6581-10-5"},
		Edits: one("mpa/negotiate.go", `	if !req.Enhanced {
		return rep, p, nil
	}
	e, err := ParseEnhanced(req.PrivateData)
`, `	if !req.Enhanced || len(req.PrivateData) > 0 {
		return rep, p, nil
	}
	e, err := ParseEnhanced(req.PrivateData)
`),
	},
	{
		Name:    "reply-without-s",
		Fault:   "A Reply has the enhanced block, and S does not say so.",
		Clauses: []string{"rfc6581-10-1", "rfc6581-6-5"},
		Edits: one("mpa/negotiate.go",
			`rep.Enhanced, p.Enhanced = true, true`,
			`p.Enhanced = true`),
	},
	{
		Name:    "plain-answered-enhanced",
		Fault:   "A Responder adds S and the enhanced block to the Reply to a plain Request of revision 2.",
		Clauses: []string{"rfc6581-10-2", "rfc6581-10-6"},
		Edits: one("mpa/negotiate.go", `	if !req.Enhanced {
		return rep, p, nil
	}
	e, err := ParseEnhanced(req.PrivateData)
`, `	if !req.Enhanced {
		rep.Enhanced = req.Revision == Revision2
		if rep.Enhanced {
			rep.PrivateData = append(make([]byte, EnhancedLen), pd...)
		}
		return rep, p, nil
	}
	e, err := ParseEnhanced(req.PrivateData)
`),
	},
	{
		Name:    "enhanced-unneeded",
		Fault:   "An Initiator sends an enhanced Request though its program wants revision 1, and nothing to be negotiated.",
		Clauses: []string{"rfc6581-10-3"},
		Edits: one("mpa/config.go",
			`return c.Revision != Revision1 && (!c.ULPDepths || c.PeerToPeer)`,
			`return true`),
	},
	{
		Name:    "enhanced-block-last",
		Fault:   "A Reply has the ULP's Private Data before the enhanced block.",
		Clauses: []string{"rfc6581-6-5"},
		Edits: one("mpa/negotiate.go",
			`rep.PrivateData = append(block, pd...)`,
			`rep.PrivateData = append(slices.Clone(pd), block...)`),
	},
	{
		Name:    "enhanced-block-last-in-request",
		Fault:   "A Request has the ULP's Private Data before the enhanced block.",
		Clauses: []string{"rfc6581-6-5"},
		Edits: one("mpa/negotiate.go",
			`f.PrivateData = append(pd, c.PrivateData...)`,
			`f.PrivateData = append(slices.Clone(c.PrivateData), pd...)`),
	},
	{
		Name:    "enhanced-block-to-ulp",
		Fault:   "The ULP gets the enhanced block as if it were Private Data of the peer's ULP.",
		Clauses: []string{"rfc6581-6-5"},
		Edits: one("mpa/frame.go", `	if f.Enhanced && len(f.PrivateData) >= EnhancedLen {
		return f.PrivateData[EnhancedLen:]
	}
	return f.PrivateData
`, `	return f.PrivateData
`),
	},
	{
		Name:    "depths-exchanged",
		Fault:   "IRD is sent in the place of ORD, and ORD in that of IRD.",
		Clauses: []string{"rfc6581-9-1", "rfc6581-9.1-4"},
		Edits: one("mpa/enhanced.go",
			`ird, ord := e.IRD, e.ORD`,
			`ird, ord := e.ORD, e.IRD`),
	},
	{
		Name:    "depths-read-exchanged",
		Fault:   "The peer's IRD is taken for its ORD, and its ORD for its IRD.",
		Clauses: []string{"rfc6581-9-1", "rfc6581-9.1-2", "rfc6581-9.1-4"},
		Edits: one("mpa/enhanced.go",
			`IRD: ird & depthMask, ORD: ord & depthMask}`,
			`IRD: ord & depthMask, ORD: ird & depthMask}`),
	},
	{
		Name:    "depths-little-endian",
		Fault:   "The enhanced block is sent with the least significant octets first.",
		Clauses: []string{"rfc6581-9-1"},
		Edits: one("mpa/enhanced.go", `	b = binary.BigEndian.AppendUint16(b, ird)         // A(1) B(1) IRD(14)
	return binary.BigEndian.AppendUint16(b, ord), nil // C(1) D(1) ORD(14)
`, `	b = binary.LittleEndian.AppendUint16(b, ird)         // A(1) B(1) IRD(14)
	return binary.LittleEndian.AppendUint16(b, ord), nil // C(1) D(1) ORD(14)
`),
	},
	{
		Name:    "depths-exchanged-for-ulp",
		Fault:   "A Responder's ULP is told the Initiator's IRD as its ORD, and the other way round.",
		Clauses: []string{"rfc6581-9.1-1"},
		Edits: one("mpa/negotiate.go",
			`p.PeerIRD, p.PeerORD = e.IRD, e.ORD
	answer`,
			`p.PeerIRD, p.PeerORD = e.ORD, e.IRD
	answer`),
	},
	{
		Name:    "responder-ord-not-bounded",
		Fault:   "A Responder keeps its ORD though the Initiator's IRD is smaller.",
		Clauses: []string{"rfc6581-9.1-2", "rfc6581-9.1-12"},
		Edits: one("mpa/negotiate.go",
			`p.ORD = min(c.ORD, e.IRD) // "MUST set its ORD at most to the initiator IRD"`,
			`p.ORD = c.ORD`),
	},
	{
		Name:    "initiator-ord-not-bounded",
		Fault:   "An Initiator keeps its ORD though the Responder's IRD is smaller.",
		Clauses: []string{"rfc6581-9.1-4", "rfc5040-6.1-4"},
		Edits: one("mpa/negotiate.go", `	if e.IRD != DepthNotNegotiated && !c.ULPDepths {
		p.ORD = min(c.ORD, e.IRD)
	}
`, ``),
	},
	{
		Name:    "initiator-ird-too-small",
		Fault:   "An Initiator without the IRD that the Responder's ORD wants goes on with less.",
		Clauses: []string{"rfc6581-9.1-5", "rfc6581-9.1-6", "rfc6581-9.1-4"},
		Edits: one("mpa/negotiate.go", `	if e.ORD > c.MaxIRD {
		return &Error{
			Code: CodeInsufficientIRD, Clause: "RFC 6581 §9.1",
			Reason: fmt.Sprintf("the Responder wants %d reads at a time; this side can't take more than %d", e.ORD, max(c.IRD, c.MaxIRD)),
		}
	}
	p.IRD = e.ORD
	return nil
`, `	p.IRD = max(c.IRD, min(e.ORD, c.MaxIRD))
	return nil
`),
	},
	{
		Name:    "ord-3fff-answered-by-number",
		Fault:   "A Responder answers an ORD of 0x3FFF with its own IRD.",
		Clauses: []string{"rfc6581-9.1-8"},
		Edits: one("mpa/negotiate.go", `	if e.ORD == DepthNotNegotiated {
		answer.IRD = DepthNotNegotiated
	}
`, ``),
	},
	{
		Name:    "ird-3fff-answered-by-number",
		Fault:   "A Responder answers an IRD of 0x3FFF with its own ORD.",
		Clauses: []string{"rfc6581-9.1-10"},
		Edits: one("mpa/negotiate.go", `	if e.IRD == DepthNotNegotiated {
		answer.ORD = DepthNotNegotiated
		return nil
	}
`, ``),
	},
	{
		Name:    "ord-3fff-taken-for-number",
		Fault:   "An Initiator takes a Responder's ORD of 0x3FFF for a demand of 16383 Reads.",
		Clauses: []string{"rfc6581-9.1-11"},
		Edits: one("mpa/negotiate.go",
			`if e.ORD == DepthNotNegotiated || c.ULPDepths || e.ORD <= c.IRD {`,
			`if c.ULPDepths || e.ORD <= c.IRD {`),
	},
	{
		Name:    "ird-3fff-taken-for-none",
		Fault:   "An Initiator takes a Responder's IRD of 0x3FFF for none, and its own ORD is 0 then.",
		Clauses: []string{"rfc6581-9.1-9"},
		Edits: one("mpa/negotiate.go", `		p.ORD = min(c.ORD, e.IRD)
	}
	if e.ORD == DepthNotNegotiated ||`, `		p.ORD = min(c.ORD, e.IRD)
	}
	if e.IRD == DepthNotNegotiated {
		p.ORD = 0
	}
	if e.ORD == DepthNotNegotiated ||`),
	},
	{
		Name:    "required-ord-not-said",
		Fault:   "A Responder that rejects a small IRD does not say which ORD it needs.",
		Clauses: []string{"rfc6581-9.1-3"},
		Edits: one("mpa/negotiate.go", `		answer.ORD = c.MinORD // "specify the required ORD in the MPA Reject Frame"
`, ``),
	},
	{
		Name:    "small-ird-not-answered",
		Fault:   "A Responder to which the Initiator's IRD is too small closes without a Reply.",
		Clauses: []string{"rfc6581-9.1-3"},
		Edits: one("mpa/negotiate.go", `	rep.Rejected = err != nil
`, ``),
	},
	{
		Name:    "start-up-codes-exchanged",
		Fault:   "The codes of \"insufficient IRD\" and \"no matching RTR\" are exchanged.",
		Clauses: []string{"rfc6581-9.1-6", "rfc6581-9.2-9"},
		Edits: one("mpa/errors.go", `	CodeInsufficientIRD   Code = 6 // insufficient IRD resources (revision 2)
	CodeNoMatchingRTR     Code = 7 // no matching RTR option (revision 2)
`, `	CodeInsufficientIRD   Code = 7 // insufficient IRD resources (revision 2)
	CodeNoMatchingRTR     Code = 6 // no matching RTR option (revision 2)
`),
	},
	{
		Name:    "start-up-terminate-not-sent",
		Fault:   "An Initiator that can't go on after the Reply closes without a Terminate.",
		Clauses: []string{"rfc6581-9.1-5", "rfc6581-9.2-8"},
		Edits: one("rnic/startup.go",
			`if conn.Params().Role == mpa.Initiator {`,
			`if conn.Params().Role == mpa.Responder {`),
	},
	{
		Name:    "wrong-rtr-code",
		Fault:   "What comes in place of the RTR is reported as an invalid STag.",
		Clauses: []string{"rfc6581-9.3-1"},
		Edits: one("rdmap/stream_recv.go",
			`Code: TermCode(mpa.CodeLocalCatastrophic.TermWord()), Clause: "RFC 6581 §9.2",`,
			`Code: CodeInvalidSTag, Clause: "RFC 6581 §9.2",`),
	},
	{
		Name:    "reply-without-a",
		Fault:   "A Responder answers A of the Request by a Reply without it.",
		Clauses: []string{"rfc6581-9.2-4"},
		Edits: one("mpa/negotiate.go",
			`answer := Enhanced{PeerToPeer: e.PeerToPeer}`,
			`answer := Enhanced{}`),
	},
	{
		Name:    "reply-with-a",
		Fault:   "A Responder sets A in its Reply though the Request has it not.",
		Clauses: []string{"rfc6581-9.2-11"},
		Edits: one("mpa/negotiate.go",
			`answer := Enhanced{PeerToPeer: e.PeerToPeer}`,
			`answer := Enhanced{PeerToPeer: true}`),
	},
	{
		Name:    "request-without-a",
		Fault:   "An Initiator that wants the peer-to-peer model offers RTR kinds without A.",
		Clauses: []string{"rfc6581-9.2-1", "rfc6581-9.2-12"},
		Edits: one("mpa/enhanced.go", `		ird |= flagPeerToPeer
		if e.RTR&RTRSend != 0 {
`, `		if e.RTR&RTRSend != 0 {
`),
	},
	{
		Name:    "rtr-kinds-not-offered",
		Fault:   "An Initiator asks for the peer-to-peer model, and offers one RTR kind of the three that it supports.",
		Clauses: []string{"rfc6581-9.2-2"},
		Edits: one("mpa/negotiate.go",
			`e.PeerToPeer, e.RTR = true, c.rtr() // "MUST set each … of the options it supports": RFC 6581 §9.2`,
			`e.PeerToPeer, e.RTR = true, RTRSend`),
	},
	{
		Name:    "rtr-kinds-without-a",
		Fault:   "An Initiator sets B, C and D in the client-server model too.",
		Clauses: []string{"rfc6581-9.2-12"},
		Edits: []Edit{
			{
				"mpa/negotiate.go",
				`e := Enhanced{IRD: c.IRD, ORD: c.ORD}`,
				`e := Enhanced{RTR: c.rtr(), IRD: c.IRD, ORD: c.ORD}`,
			},
			{"mpa/enhanced.go", `		ird |= flagPeerToPeer
		if e.RTR&RTRSend != 0 {
`, `		ird |= flagPeerToPeer
	}
	if e.RTR != 0 {
		if e.RTR&RTRSend != 0 {
`},
		},
	},
	{
		Name:    "rtr-kinds-imply-a",
		Fault:   "B of a Request is taken for the peer-to-peer model, even without A.",
		Clauses: []string{"rfc6581-9.2-13", "rfc6581-9.2-11"},
		Edits: one("mpa/enhanced.go",
			`e := Enhanced{PeerToPeer: ird&flagPeerToPeer != 0,`,
			`e := Enhanced{PeerToPeer: ird&(flagPeerToPeer|flagRTRSend) != 0,`),
	},
	{
		Name:    "rtr-kind-not-chosen",
		Fault:   "A Responder sets A in its Reply and none of the RTR kinds.",
		Clauses: []string{"rfc6581-9.2-5", "rfc6581-9.2-6"},
		Edits: one("mpa/negotiate.go", `		answer.RTR = p.RTR
`, ``),
	},
	{
		Name:    "rtr-kind-first-only",
		Fault:   "Of the RTR kinds offered that it supports, a Responder sets only the first in its Reply.",
		Clauses: []string{"rfc6581-9.2-14"},
		Edits: one("mpa/negotiate.go",
			`answer.RTR = p.RTR`,
			`answer.RTR = p.RTR & -p.RTR`),
	},
	{
		Name:    "rtr-kind-none-in-common",
		Fault:   "A Responder that supports none of the kinds offered sets none in its Reply.",
		Clauses: []string{"rfc6581-9.2-6"},
		Edits: one("mpa/negotiate.go", `		if p.RTR = e.RTR & c.rtr(); p.RTR == 0 {
			p.RTR = c.rtr() // "MUST set at least one … it supports": RFC 6581 §9.2
		}
`, `		p.RTR = e.RTR & c.rtr()
`),
	},
	{
		Name:    "rtr-not-sent",
		Fault:   "An Initiator sends no RTR indication before its first message.",
		Clauses: []string{"rfc6581-9.2-7", "rfc6581-5-1"},
		Edits: one("rnic/link_start.go", `		cfg.SendRTR = params.RTR
`, ``),
	},
	{
		Name:    "rtr-of-wrong-kind",
		Fault:   "An Initiator sends an empty RDMA Write as RTR, whatever the Responder has chosen.",
		Clauses: []string{"rfc6581-9.2-7"},
		Edits: one("mpa/negotiate.go",
			`if e.RTR&c.rtr()&kind == 0 || kind == RTRRead`,
			`if c.rtr()&kind == 0 || kind == RTRRead`),
	},
	{
		Name:    "rtr-not-agreed",
		Fault:   "An Initiator without an RTR kind in common with the Responder sends an empty Send.",
		Clauses: []string{"rfc6581-9.2-8", "rfc6581-9.2-9"},
		Edits: one("mpa/negotiate.go", `	return &Error{
		Code: CodeNoMatchingRTR, Clause: "RFC 6581 §9.2",
		Reason: fmt.Sprintf("the Responder takes %v, this side can send %v", e.RTR, c.rtr()),
	}
`, `	p.RTR = RTRSend
	return nil
`),
	},
	{
		Name:    "rtr-behind-first-message",
		Fault:   "The RTR indication goes out behind the messages that were posted before it.",
		Clauses: []string{"rfc6581-5-1"},
		Edits: one("rdmap/stream_send.go", `	case t.rtr != 0: // "MUST NOT allow any later FULPDUs to be transmitted before": RFC 6581 §5
		s.beginRTR()
		return true
	}
`, `	case t.rtr != 0:
		if op := from.Next(); op != nil {
			s.beginOperation(op)
			return true
		}
		s.beginRTR()
		return true
	}
`),
	},
}
