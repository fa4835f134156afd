package mutants

// rdmapMessages breaks the messages of RDMAP: RFC 5040 §4 to §6.
var rdmapMessages = []Mutant{
	{
		Name:    "rv-zero",
		Fault:   "The RDMAP version is sent as that of the RDMA Consortium, zero.",
		Clauses: []string{"rfc5040-4.1-8"},
		Edits: one("rdmap/opcode.go",
			`return Control(Version<<versionShift | uint8(o)&opcodeMask)`,
			`return Control(versionRDMAConsortium<<versionShift | uint8(o)&opcodeMask)`),
	},
	{
		Name:    "rv-not-checked",
		Fault:   "A message of any RDMAP version is taken.",
		Clauses: []string{"rfc5040-7.2-3", "rfc5040-7.2-8", "rfc7306-8.2-3"},
		Edits: one("rdmap/stream_recv.go", `	if !c.ValidVersion() {
		return &Error{Code: CodeInvalidVersion, Clause: "RFC 5040 §7.2", Reason: fmt.Sprintf("RDMAP version %d in a %v", c.Version(), op)}
	}
`, ``),
	},
	{
		Name:    "rdmap-reserved-sent",
		Fault:   "Bits 26 and 27, of the RDMAP Control Field, are sent as ones.",
		Clauses: []string{"rfc5040-4.1-9"},
		Edits: one("rdmap/opcode.go",
			`return Control(Version<<versionShift | uint8(o)&opcodeMask)`,
			`return Control(Version<<versionShift | controlReservedMask | uint8(o)&opcodeMask)`),
	},
	{
		Name:    "rdmap-reserved-checked",
		Fault:   "A message with bit 26 or 27 set is refused.",
		Clauses: []string{"rfc5040-4.1-9"},
		Edits: one("rdmap/stream_recv.go",
			`if !c.ValidVersion() {`,
			`if !c.ValidVersion() || c.Reserved() != 0 {`),
	},
	{
		Name:    "reserved-opcode-taken",
		Fault:   "The opcodes 12 to 15 are taken for 0 to 3.",
		Clauses: []string{"rfc5040-7.2-2"},
		Edits: one("rdmap/opcode.go",
			`return Opcode(uint8(c) & opcodeMask) }`,
			`return Opcode(uint8(c)&opcodeMask) % numOpcodes }`),
	},
	{
		Name:    "tagged-flag-not-checked",
		Fault:   "A Send in a tagged segment is placed as an RDMA Write is, and an RDMA Write in an untagged one is delivered as a Send.",
		Clauses: []string{"rfc5040-7.2-2", "rfc5040-4.1-5"},
		Edits: one("rdmap/stream_recv.go",
			`if !op.Valid() || op.Tagged() != tagged || !tagged`,
			`if !op.Valid() || !tagged`),
	},
	{
		Name:    "read-request-on-queue-0-taken",
		Fault:   "A Read Request is taken from the queue of Sends too.",
		Clauses: []string{"rfc5040-7.2-7", "rfc5040-7.2-2", "rfc5040-5.2.1-5"},
		Edits: []Edit{
			{
				"rdmap/stream_recv.go",
				`|| !tagged && op.Queue() != qn {`,
				`|| !tagged && op.Queue() != qn && (op != OpReadRequest || qn != QueueSend) {`,
			},
			{"rdmap/stream_recv.go", `	case QueueSend:
`, `	case QueueSend:
		if op == OpReadRequest && ahead == 0 {
			return in.requests.at(0), nil
		}
`},
		},
	},
	{
		Name:    "terminate-on-queue-0-is-a-send",
		Fault:   "A Terminate on the queue of Sends is delivered to the ULP as if it were one, and the stream goes on.",
		Clauses: []string{"rfc5040-7.2-2", "rfc5040-5.4-2"},
		Edits: []Edit{
			{
				"rdmap/stream_recv.go",
				`|| !tagged && op.Queue() != qn {`,
				`|| !tagged && op.Queue() != qn && (op != OpTerminate || qn != QueueSend) {`,
			},
			{"rdmap/stream_recv.go", `	case OpTerminate:
		return r.terminateMessage(h, length)
`, `	case OpTerminate:
		if h.QN == QueueSend {
			return r.send(OpSend, h, length)
		}
		return r.terminateMessage(h, length)
`},
		},
	},
	{
		Name:    "se-not-sent",
		Fault:   "A Send with Solicited Event goes out as a Send.",
		Clauses: []string{"rfc5040-4.1-6"},
		Edits: one("rnic/send_fill.go", `	solicited := wr.Flags&FlagSolicited != 0
	choose := func(plain, se rdmap.Opcode) rdmap.Opcode {
		if solicited {
			return se
		}
		return plain
	}
`, `	choose := func(plain, _ rdmap.Opcode) rdmap.Opcode { return plain }
`),
	},
	{
		Name:    "invalidate-stag-not-sent",
		Fault:   "A Send with SE and Invalidate carries no STag to invalidate, and invalidates none at the sink.",
		Clauses: []string{"rfc5040-5.3-7", "rfc5040-5.3-9", "rfc5040-4.1-3"},
		Edits: one("rdmap/opcode.go",
			`return o == OpSendInvalidate || o == OpSendSEInvalidate }`,
			`return o == OpSendInvalidate }`),
	},
	{
		Name:    "invalidate-stag-remains",
		Fault:   "The Invalidate STag of one Send is sent again in those behind it that invalidate nothing.",
		Clauses: []string{"rfc5040-4.1-10"},
		Edits: one("rdmap/stream_send.go",
			`t.msg = ddp.Message{Tagged: code.Tagged(), QN: code.Queue()}`,
			`t.msg = ddp.Message{Tagged: code.Tagged(), QN: code.Queue(), RsvdULP: t.msg.RsvdULP}`),
	},
	{
		Name:    "invalidate-stag-checked",
		Fault:   "A message that invalidates nothing is refused if its Invalidate STag is not zero.",
		Clauses: []string{"rfc5040-4.1-10"},
		Edits: one("rdmap/stream_recv.go", `	if h.QN == QueueSend {
		return r.intake.sends.admit(h, c.Opcode())
	}
`, `	if s := binary.BigEndian.Uint32(h.RsvdULP[1:]); s != 0 && !c.Opcode().Invalidates() {
		return &Error{Code: CodeCannotInvalidate, Clause: "RFC 5040 §4.1", Reason: fmt.Sprintf("STag 0x%08x in a %v", s, c.Opcode())}
	}
	if h.QN == QueueSend {
		return r.intake.sends.admit(h, c.Opcode())
	}
`),
	},
	{
		Name:    "invalidate-not-done",
		Fault:   "The STag of a Send with Invalidate is reported as invalidated, and stays valid.",
		Clauses: []string{"rfc5040-5.3-9", "rfc5040-7.2-4"},
		Edits: one("rdmap/stream_recv.go", `		r.intake.lease.End() // which it would wait for
		if err := r.cfg.Memory.RemoteInvalidate(d.Invalidated, r.cfg.Scope); err != nil {
			return invalidationError(err)
		}
`, ``),
	},
	{
		Name:    "invalidate-error-ignored",
		Fault:   "A Send with Invalidate whose STag can't be invalidated is delivered like any other.",
		Clauses: []string{"rfc5040-5.3-9", "rfc5040-7.2-4", "rfc5040-5.3-8"},
		Edits: one("rdmap/stream_recv.go", `		if err := r.cfg.Memory.RemoteInvalidate(d.Invalidated, r.cfg.Scope); err != nil {
			return invalidationError(err)
		}
`, `		_ = r.cfg.Memory.RemoteInvalidate(d.Invalidated, r.cfg.Scope)
`),
	},
	{
		Name:    "invalidate-byte-order",
		Fault:   "The Invalidate STag is read with its least significant octet first.",
		Clauses: []string{"rfc5040-4.1-3", "rfc5040-5.3-9"},
		Edits: one("rdmap/stream_recv.go",
			`d.Invalidated = stag.STag(binary.BigEndian.Uint32(h.RsvdULP[1:]))`,
			`d.Invalidated = stag.STag(binary.LittleEndian.Uint32(h.RsvdULP[1:]))`),
	},
	{
		Name:    "empty-send-consumes-nothing",
		Fault:   "A Send of no octets is dropped, and consumes no buffer.",
		Clauses: []string{"rfc5040-5.3-6", "rfc5040-5.3-2"},
		Edits: one("rdmap/stream_recv.go", `	r.traceUntagged(h, length) // before what it causes
`, `	if length == 0 {
		return nil
	}
	r.traceUntagged(h, length) // before what it causes
`),
	},
	{
		Name:    "read-request-on-queue-0",
		Fault:   "Read Requests are sent to the queue of Sends.",
		Clauses: []string{"rfc5040-5.2.1-5"},
		Edits: one("rdmap/stream_send.go", `		s.beginOwn(o.Op, b)
	case OpAtomicRequest:
`, `		s.beginOwn(o.Op, b)
		t.msg.QN = QueueSend
	case OpAtomicRequest:
`),
	},
	{
		Name:    "read-request-sink-and-source-exchanged",
		Fault:   "A Read Request says the sink where it should say the source, and the other way round.",
		Clauses: []string{"rfc5040-4.4-1"},
		Edits: one("rdmap/stream_send.go",
			`SinkSTag: o.SinkSTag, SinkTO: o.SinkTO, Size: uint32(o.Length), SrcSTag: o.STag, SrcTO: o.TO,`,
			`SinkSTag: o.STag, SinkTO: o.TO, Size: uint32(o.Length), SrcSTag: o.SinkSTag, SrcTO: o.SinkTO,`),
	},
	{
		Name:    "read-response-to-source-stag",
		Fault:   "A Read Response carries the STag that it was read from.",
		Clauses: []string{"rfc5040-4.4-2"},
		Edits: one("rdmap/stream_send.go",
			`= in.read.SinkSTag, in.read.SinkTO, uint64(in.read.Size)`,
			`= in.read.SrcSTag, in.read.SinkTO, uint64(in.read.Size)`),
	},
	{
		Name:    "read-responses-newest-first",
		Fault:   "Of several requests that wait, the newest is answered first.",
		Clauses: []string{"rfc5040-5.2.2-4", "rfc5040-5.5-10", "rfc5040-5.2.1-7", "rfc7306-5.2.2-6", "rfc7306-5.4-7"},
		Edits: one("rdmap/reads.go", `	return d.irq.At(0), true
`, `	first, last := d.irq.At(0), d.irq.At(d.irq.Len()-1)
	*first, *last = *last, *first
	return first, true
`),
	},
	{
		Name:    "empty-read-checked",
		Fault:   "The source STag and TO of a Read of no octets are checked.",
		Clauses: []string{"rfc5040-5.2.1-12"},
		Edits: one("rdmap/stream_recv.go", `	if req.Size > 0 { // an empty one is not checked: §5.2.1
`, `	{
`),
	},
	{
		Name:    "empty-read-not-answered",
		Fault:   "A Read of no octets gets no Response.",
		Clauses: []string{"rfc5040-5.2.1-13", "rfc5040-5.2.1-10"},
		Edits: one("rdmap/stream_recv.go", `	r.answer(h, length, inbound{op: OpReadRequest, read: req})
`, `	if req.Size > 0 {
		r.answer(h, length, inbound{op: OpReadRequest, read: req})
	}
`),
	},
	{
		Name:    "ird-not-enforced",
		Fault:   "Any number of Read Requests is taken, whatever IRD was negotiated.",
		Clauses: []string{"rfc5040-6.1-5", "rfc5041-7.1-2"},
		Edits: one("rdmap/stream_recv.go",
			`if free := r.depths.free(); free > 0 && ahead < uint32(free) {`,
			`if ahead == 0 {`),
	},
	{
		Name:    "ird-one-less",
		Fault:   "One Read Request less is taken than the IRD that was negotiated.",
		Clauses: []string{"rfc5040-6.1-2", "rfc5040-5.2.2-2"},
		Edits: one("rdmap/reads.go",
			`return d.ird - d.irq.Len()`,
			`return d.ird - d.irq.Len() - 1`),
	},
	{
		Name:    "ord-exceeded",
		Fault:   "One Read more is begun than ORD allows.",
		Clauses: []string{"rfc5040-6.1-4"},
		Edits: one("rdmap/reads.go",
			`return d.orq.Len() < d.ord`,
			`return d.orq.Len() <= d.ord`),
	},
	{
		Name:    "ord-one-less",
		Fault:   "One Read less is begun than ORD allows.",
		Clauses: []string{"rfc5040-6.1-3"},
		Edits: one("rdmap/reads.go",
			`return d.orq.Len() < d.ord`,
			`return d.orq.Len()+1 < d.ord`),
	},
	{
		Name:    "terminate-on-queue-0",
		Fault:   "A Terminate is sent to the queue of Sends.",
		Clauses: []string{"rfc5040-5.4-2"},
		Edits: one("rdmap/stream_send.go", `	s.beginOwn(OpTerminate, b)
`, `	s.beginOwn(OpTerminate, b)
	s.sending.msg.QN = QueueSend
`),
	},
	{
		Name:    "terminate-not-delivered",
		Fault:   "The peer's Terminate silences the stream, and the ULP is not told of it.",
		Clauses: []string{"rfc5040-5.4-6", "rfc5040-5.4-5"},
		Edits: one("rdmap/stream_recv.go", `	r.ulp.Terminated(t)
	return nil
`, `	_ = t
	return nil
`),
	},
	{
		Name:    "sends-after-terminate",
		Fault:   "Messages follow the Terminate that was sent, and the stream stays open.",
		Clauses: []string{"rfc5040-5.4-7", "rfc5040-7-1", "rfc5040-7-3"},
		Edits: one("rdmap/stream_send.go", `		s.closed.Store(true) // "MUST NOT send any more Messages": §5.4
`, `		s.terminate.Store(nil) // the peer knows now
`),
	},
	{
		Name:    "open-after-terminate",
		Fault:   "After a Terminate, the connection is left for the peer to tear down.",
		Clauses: []string{"rfc5040-7-2", "rfc5041-3-12"},
		Edits: one("rnic/internal/life/closing.go", `	case !ending && !s.Terminated:
`, `	case !ending:
`),
	},
	{
		Name:    "reset-after-terminate",
		Fault:   "The connection is reset as soon as the Terminate is out, whether it has arrived or not.",
		Clauses: []string{"rfc5040-6.2.1-3"},
		Edits: one("rnic/link_end.go", `		err := l.rdmap.Discard() // which a reset ends
		l.happen(func(m *life.Machine) life.Effects {
			orderly = m.Lingered(err)
			return life.Effects{}
		})
`, ``),
	},
}
