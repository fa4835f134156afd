package mutants

// ddpSource breaks the Data Source of DDP: RFC 5041 §4 and §5.
var ddpSource = []Mutant{
	{
		Name:    "msn-from-zero",
		Fault:   "The first message of each queue has MSN 0.",
		Clauses: []string{"rfc5041-4.3-8"},
		Edits: one("ddp/source.go", `	for i := range s.next {
		s.next[i] = 1 // "The initial value for MSN MUST be one": RFC 5041 §4.3
	}
`, ``),
	},
	{
		Name:    "msn-for-all-queues",
		Fault:   "One counter of MSNs serves all queues.",
		Clauses: []string{"rfc5041-4.3-7"},
		Edits: one("ddp/source.go", `		m.msn = s.next[m.QN]
		s.next[m.QN]++ // modulo 2^32
`, `		m.msn = s.next[0]
		s.next[0]++ // modulo 2^32
`),
	},
	{
		Name:    "msn-per-segment",
		Fault:   "MSN grows by one with each segment of a message.",
		Clauses: []string{"rfc5041-4.3-10", "rfc5041-4.3-7"},
		Edits: one("ddp/source.go", `		m.sent += n
`, `		m.sent += n
		m.msn++
`),
	},
	{
		Name:    "msn-stands-still",
		Fault:   "All messages of a queue have the MSN of the first one.",
		Clauses: []string{"rfc5041-4.3-7"},
		Edits: one("ddp/source.go", `		m.msn = s.next[m.QN]
		s.next[m.QN]++ // modulo 2^32
`, `		m.msn = s.next[m.QN]
`),
	},
	{
		Name:    "mo-zero",
		Fault:   "MO is zero in all segments of a message.",
		Clauses: []string{"rfc5041-5.2-6"},
		Edits: one("ddp/source.go",
			`MSN: m.msn, MO: m.sent,`,
			`MSN: m.msn,`),
	},
	{
		Name:    "mo-behind-header",
		Fault:   "MO counts the octets of the DDP header too: that of a message's first octet is 18.",
		Clauses: []string{"rfc5041-4.3-11", "rfc5041-5.2-6"},
		Edits: one("ddp/source.go",
			`MSN: m.msn, MO: m.sent,`,
			`MSN: m.msn, MO: UntaggedHeaderLen + m.sent,`),
	},
	{
		Name:    "to-stands-still",
		Fault:   "TO is that of the message's first octet in all of its segments.",
		Clauses: []string{"rfc5041-5.2-8", "rfc5041-4.2-1"},
		Edits: one("ddp/source.go",
			`TO: m.TO + uint64(m.sent),`,
			`TO: m.TO,`),
	},
	{
		Name:    "to-32-bits",
		Fault:   "The upper half of a TO is lost.",
		Clauses: []string{"rfc5041-5.2-8", "rfc5041-5.2-7"},
		Edits: one("ddp/source.go",
			`TO: m.TO + uint64(m.sent),`,
			`TO: uint64(uint32(m.TO) + m.sent),`),
	},
	{
		Name:    "l-on-each-tagged-segment",
		Fault:   "L is set in every segment of a tagged message.",
		Clauses: []string{"rfc5041-4.1-4"},
		Edits: one("ddp/source.go",
			`NewControl(true, last)`,
			`NewControl(true, true)`),
	},
	{
		Name:    "l-on-each-untagged-segment",
		Fault:   "L is set in every segment of an untagged message.",
		Clauses: []string{"rfc5041-4.1-4"},
		Edits: one("ddp/source.go",
			`NewControl(false, last)`,
			`NewControl(false, true)`),
	},
	{
		Name:    "l-lost",
		Fault:   "L is never set in a tagged message.",
		Clauses: []string{"rfc5041-4.1-3"},
		Edits: one("ddp/source.go",
			`NewControl(true, last)`,
			`NewControl(true, false)`),
	},
	{
		Name:    "rsvdulp-in-first-segment-only",
		Fault:   "RsvdULP is zero in all but the first segment of a message.",
		Clauses: []string{"rfc5041-4.3-4", "rfc5041-4.2-4"},
		Edits: one("ddp/source.go", `		m.sent += n
`, `		m.sent += n
		m.RsvdULP = [5]byte{}
`),
	},
	{
		Name:    "stag-in-first-segment-only",
		Fault:   "STag is zero in all but the first segment of a message.",
		Clauses: []string{"rfc5041-4.2-8"},
		Edits: one("ddp/source.go", `		m.sent += n
`, `		m.sent += n
		m.STag = 0
`),
	},
	{
		Name:    "dv-zero",
		Fault:   "The DDP version is sent as zero.",
		Clauses: []string{"rfc5041-4.1-9"},
		Edits: one("ddp/header.go",
			`c := Control(Version) // Rsvd(4)`,
			`c := Control(0) // Rsvd(4)`),
	},
	{
		Name:    "ddp-reserved-sent",
		Fault:   "The reserved bits of the DDP Control Field are sent as ones.",
		Clauses: []string{"rfc5041-4.1-8"},
		Edits: one("ddp/header.go",
			`c := Control(Version) // Rsvd(4) is "set to zero on transmit"`,
			`c := Control(Version | controlReserved)`),
	},
	{
		Name:    "msn-and-mo-exchanged",
		Fault:   "MSN and MO stand in each other's place in the header that is sent.",
		Clauses: []string{"rfc5041-4.3-1"},
		Edits: one("ddp/source.go",
			`MSN: m.msn, MO: m.sent,`,
			`MSN: m.sent, MO: m.msn,`),
	},
	{
		Name:    "empty-message-not-sent",
		Fault:   "A message of no octets is done without a segment.",
		Clauses: []string{"rfc5041-5.2-9"},
		Edits: one("ddp/source.go", `	if n == 0 {
		return s.llp.Post(header, nil, false)
	}
`, `	if n == 0 {
		return true, nil
	}
`),
	},
	{
		Name:    "segment-beyond-mulpdu",
		Fault:   "A segment carries MULPDU octets of payload, and its header besides.",
		Clauses: []string{"rfc5041-5.2-2", "rfc5044-3-8"},
		Edits: one("ddp/source.go",
			`uint64(s.llp.MULPDU()-m.headerLen())`,
			`uint64(s.llp.MULPDU())`),
	},
}

// ddpSink breaks the Data Sink of DDP: RFC 5041 §5 and §7.
var ddpSink = []Mutant{
	{
		Name:    "dv-not-checked",
		Fault:   "A segment of any DDP version is taken.",
		Clauses: []string{"rfc5041-4.1-9", "rfc5041-4.1-10"},
		Edits: one("ddp/sink.go", `	if v := seg.Control.Version(); v != Version {
		code := CodeUntaggedVersion
		if seg.Control.Tagged() {
			code = CodeTaggedVersion
		}
		return &Error{Code: code, Clause: "RFC 5041 §4.1", Reason: fmt.Sprintf("DV is %d; it must be %d", v, Version)}
	}
`, ``),
	},
	{
		Name:    "ddp-reserved-checked",
		Fault:   "A segment with reserved bits set in its DDP Control Field is refused.",
		Clauses: []string{"rfc5041-4.1-8"},
		Edits: one("ddp/sink.go",
			`if v := seg.Control.Version(); v != Version {`,
			`if v := seg.Control.Version(); v != Version || seg.Control.Reserved() != 0 {`),
	},
	{
		Name:    "short-segment-dropped",
		Fault:   "A segment that is too short for its header is silently dropped.",
		Clauses: []string{"rfc5041-4.4-1"},
		Edits: one("ddp/sink.go", `	if s.seg, s.err = ParseSegment(b); s.err != nil {
		return s.err
	}
	err := s.take(&s.seg, order)
`, `	var err error
	if s.seg, err = ParseSegment(b); err != nil {
		s.next++
		return nil
	}
	err = s.take(&s.seg, order)
`),
	},
	{
		Name:    "empty-tagged-checked",
		Fault:   "The STag and the TO of an empty tagged segment are checked.",
		Clauses: []string{"rfc5041-5.2-11", "rfc5041-5.2-10"},
		Edits: one("ddp/sink.go", `	if len(seg.Payload) == 0 {
		return nil // "STag and TO fields MUST NOT be checked": §5.2
	}
`, ``),
	},
	{
		Name:    "qn-range-too-wide",
		Fault:   "A QN of 4 to 7 is taken for one of a queue that has no buffers.",
		Clauses: []string{"rfc5041-7.1-1", "rfc5041-7.2-1"},
		Edits: one("rdmap/stream.go",
			`(*receiver)(s), NumQueues)`,
			`(*receiver)(s), 2*NumQueues)`),
	},
	{
		Name:    "no-buffer-dropped",
		Fault:   "A message for which there is no buffer is silently dropped.",
		Clauses: []string{"rfc5041-7.1-2", "rfc5041-7.1-11"},
		Edits: one("ddp/sink.go", `	if err := s.place(seg, order-s.next); err != nil {
		return err
	}
`, `	if err := s.place(seg, order-s.next); err != nil {
		if e := (*Error)(nil); errors.As(err, &e) && e.Code == CodeMSNNoBuffer {
			s.next++
			return nil
		}
		return err
	}
`),
	},
	{
		Name:    "message-too-long-cut",
		Fault:   "What of a Send does not fit into its buffer is cut off.",
		Clauses: []string{"rfc5041-7.1-4"},
		Edits: one("ddp/sink.go",
			`case n > size-uint64(h.MO):`,
			`case n > size-uint64(h.MO) && h.QN != 0:`),
	},
	{
		Name:    "message-one-too-long-cut",
		Fault:   "A Send may exceed its buffer by one octet, which is cut off.",
		Clauses: []string{"rfc5041-7.1-4"},
		Edits: one("ddp/sink.go",
			`case n > size-uint64(h.MO):`,
			`case n > size-uint64(h.MO)+1, n > size-uint64(h.MO) && h.QN != 0:`),
	},
	{
		Name:    "full-buffer-refused",
		Fault:   "A Send that fills its buffer to the last octet is refused.",
		Clauses: []string{"rfc5041-5.2-5"},
		Edits: one("ddp/sink.go",
			`case n > size-uint64(h.MO):`,
			`case n >= size-uint64(h.MO) && h.QN == 0, n > size-uint64(h.MO):`),
	},
	{
		Name:    "msn-ignored",
		Fault:   "Any MSN is taken for the next one of its queue.",
		Clauses: []string{"rfc5041-7.1-5", "rfc5041-5.3-3"},
		Edits: []Edit{
			{"ddp/sink.go", `	ahead := h.MSN - q.first
`, `	ahead := uint32(0)
`},
			{"ddp/sink.go", `	if h.MSN != q.first {
		return &Error{
			Code: CodeMSNRange, Clause: "RFC 5041 §4.3",
			Reason: fmt.Sprintf("MSN %d was sent on queue %d where %d is in turn", h.MSN, h.QN, q.first),
		}
	}
`, ``},
		},
	},
	{
		Name:    "placed-after-error",
		Fault:   "Tagged segments that arrive together with one in error, and behind it, are still placed.",
		Clauses: []string{"rfc5041-7.1-12"},
		Edits: []Edit{
			{"ddp/sink.go", `	s.err = s.turn.describe(err)
	return s.err
`, `	s.err = s.turn.describe(err)
	return nil // the LLP goes on, and Stream.Receive tells of it
`},
			{"ddp/sink.go", `	if s.err != nil {
		return nil
	}
	if s.ended {
`, `	if s.err != nil {
		if seg, err := ParseSegment(b); err == nil && seg.Control.Tagged() && len(seg.Payload) > 0 {
			_ = s.ulp.PlaceTagged(&seg.Tagged, seg.Payload) // the order of placement is free
		}
		return nil
	}
	if s.ended {
`},
		},
	},
	{
		Name:    "end-of-range-not-checked",
		Fault:   "Only the first octet of an access must lie in the STag's range; what is beyond its end is cut off.",
		Clauses: []string{"rfc5041-7.1-9", "rfc5041-8.3.1-4", "rfc5040-7.2-12", "rfc5040-8.1.1-4", "rfc5042-6.2.1-1"},
		Edits: []Edit{
			{
				"stag/acquire.go",
				`case n > size-(to-e.base):`,
				`case n > size-(to-e.base) && need == RemoteAtomic: // which can't be cut`,
			},
			{
				"stag/acquire.go",
				`return Pin{e, e.mem[off : off+n : off+n]}, nil`,
				`return Pin{e, e.mem[off:min(off+n, uint64(len(e.mem)))]}, nil`,
			},
			{
				"stag/lease.go",
				`return h.entry.mem[off : off+n : off+n], nil`,
				`return h.entry.mem[off:min(off+n, uint64(len(h.entry.mem)))], nil`,
			},
		},
	},
	{
		Name:    "end-of-range-off-by-one",
		Fault:   "An access may reach one octet beyond the STag's range; that octet is cut off.",
		Clauses: []string{"rfc5041-7.1-9", "rfc5041-8.3.1-4", "rfc5040-7.2-12", "rfc5040-8.1.1-4", "rfc5042-6.2.1-1"},
		Edits: []Edit{
			{
				"stag/acquire.go",
				`case n > size-(to-e.base):`,
				`case n > size-(to-e.base)+1, n > size-(to-e.base) && need == RemoteAtomic:`,
			},
			{
				"stag/acquire.go",
				`return Pin{e, e.mem[off : off+n : off+n]}, nil`,
				`return Pin{e, e.mem[off:min(off+n, uint64(len(e.mem)))]}, nil`,
			},
			{
				"stag/lease.go",
				`return h.entry.mem[off : off+n : off+n], nil`,
				`return h.entry.mem[off:min(off+n, uint64(len(h.entry.mem)))], nil`,
			},
		},
	},
	{
		Name:    "last-octet-refused",
		Fault:   "A peer's access that ends with the last octet of the STag's range is refused.",
		Clauses: []string{"rfc5041-5.2-5", "rfc5040-5.2.1-10"},
		Edits: one("stag/acquire.go",
			`case n > size-(to-e.base):`,
			`case n > size-(to-e.base), n == size-(to-e.base) && need&remoteAccess != 0:`),
	},
	{
		Name:    "begin-of-range-not-checked",
		Fault:   "An access below the STag's range is taken for one at its beginning.",
		Clauses: []string{"rfc5041-7.1-8", "rfc5040-7.2-11"},
		Edits: []Edit{
			{"stag/acquire.go", `	switch size := uint64(len(e.mem)); {
`, `	to = max(to, e.base)
	switch size := uint64(len(e.mem)); {
`},
			{
				"stag/acquire.go", `	off := to - e.base
`, `	off := max(to, e.base) - e.base
`,
			},
			{
				"stag/lease.go",
				`return h, to - h.entry.base, nil`,
				`return h, max(to, h.entry.base) - h.entry.base, nil`,
			},
		},
	},
	{
		Name:    "wrap-not-checked",
		Fault:   "The end of an access is found by adding TO and length, and that may wrap: what begins far behind the range and ends in it is taken, and placed nowhere.",
		Clauses: []string{"rfc5041-7.1-10", "rfc5040-7.2-13"},
		Edits: []Edit{
			{
				"stag/acquire.go", `	case to < e.base || to-e.base > size:
		return OutOfBounds
	case to+n < to:
		return Wrap
	case n > size-(to-e.base):
		return OutOfBounds
`, `	case to < e.base || to+n > e.base+size:
		return OutOfBounds
`,
			},
			{
				"stag/acquire.go",
				`return Pin{e, e.mem[off : off+n : off+n]}, nil`,
				`return Pin{e, e.mem[min(off, off+n, uint64(len(e.mem))):min(off+n, uint64(len(e.mem)))]}, nil`,
			},
			{
				"stag/lease.go",
				`return h.entry.mem[off : off+n : off+n], nil`,
				`return h.entry.mem[min(off, off+n, uint64(len(h.entry.mem))):min(off+n, uint64(len(h.entry.mem)))], nil`,
			},
		},
	},
	{
		Name:    "stag-key-not-checked",
		Fault:   "An STag is known by its index; its key may be any.",
		Clauses: []string{"rfc5041-7.1-6", "rfc5041-4.2-5", "rfc5040-7.2-9"},
		Edits: one("stag/acquire.go", `	case e.key != s.Key():
		return InvalidSTag
`, ``),
	},
	{
		Name:    "code-of-bounds",
		Fault:   "The codes of \"base or bounds violation\" and \"STag not associated\" are exchanged.",
		Clauses: []string{"rfc5041-7.2-1"},
		Edits: one("ddp/errors.go", `	CodeBaseBounds        Code = 0x101
	CodeSTagNotAssociated Code = 0x102
`, `	CodeBaseBounds        Code = 0x102
	CodeSTagNotAssociated Code = 0x101
`),
	},
	{
		Name:    "code-of-no-buffer",
		Fault:   "The codes of \"no buffer available\" and \"MSN range is not valid\" are exchanged.",
		Clauses: []string{"rfc5041-7.2-1"},
		Edits: one("ddp/errors.go", `	CodeMSNNoBuffer     Code = 0x202
	CodeMSNRange        Code = 0x203
`, `	CodeMSNNoBuffer     Code = 0x203
	CodeMSNRange        Code = 0x202
`),
	},
	{
		Name:    "code-of-old-msn",
		Fault:   "An MSN that is not in turn is reported as an invalid QN.",
		Clauses: []string{"rfc5041-7.2-1", "rfc5041-7.1-5"},
		Edits: one("ddp/sink.go",
			`return fail(CodeMSNRange, "MSN %d came on queue`,
			`return fail(CodeInvalidQN, "MSN %d came on queue`),
	},
	{
		Name:    "code-of-mo",
		Fault:   "An MO outside of the buffer is reported as an MSN out of range.",
		Clauses: []string{"rfc5041-7.2-1", "rfc5041-7.1-3"},
		Edits: one("ddp/sink.go",
			`return fail(CodeInvalidMO, "MO %d lies`,
			`return fail(CodeMSNRange, "MO %d lies`),
	},
	{
		Name:    "code-of-qn",
		Fault:   "An invalid QN is reported as an invalid MSN.",
		Clauses: []string{"rfc5041-7.2-1", "rfc5041-7.1-1"},
		Edits: one("ddp/sink.go",
			`return fail(CodeInvalidQN, "queue`,
			`return fail(CodeMSNRange, "queue`),
	},
	{
		Name:    "code-of-tagged-version",
		Fault:   "A wrong DDP version is reported as an error of an untagged buffer in tagged segments too.",
		Clauses: []string{"rfc5041-7.2-1"},
		Edits: one("ddp/sink.go", `		if seg.Control.Tagged() {
			code = CodeTaggedVersion
		}
`, ``),
	},
	{
		Name:    "code-of-invalid-stag",
		Fault:   "An invalid STag in a tagged segment is reported as one that is not associated.",
		Clauses: []string{"rfc5041-7.2-1"},
		Edits: one("rdmap/protection.go",
			`e := &ddp.Error{Code: ddp.CodeInvalidSTag,`,
			`e := &ddp.Error{Code: ddp.CodeSTagNotAssociated,`),
	},
}
