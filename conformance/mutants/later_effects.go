package mutants

// laterEffects breaks fences, solicited events, and what the peer's Terminate brings
// about, behind many other messages.
var laterEffects = []Mutant{
	{
		Name:    "read-fence-ignored-later",
		Fault:   "A read fence holds the first 15 requests back that have one, and no others.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-again-and-again",
		Edits: []Edit{
			countsFences,
			{
				"rnic/internal/life/turn.go", `r.Flags&ReadFence != 0 && m.reads > 0 && fresh:`,
				`r.Flags&ReadFence != 0 && m.reads > 0 && fresh && m.fences < 15:`,
			},
			{"rnic/internal/life/turn.go", `	r.progress = begun
`, `	r.progress = begun
	if r.Flags&ReadFence != 0 {
		m.fences++
	}
`},
		},
	},
	{
		Name:    "read-fence-of-a-read-ignored",
		Fault:   "A read fence holds Sends and Writes back, and Reads do not wait.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-again-and-again",
		Edits: one("rnic/internal/life/turn.go",
			`r.Flags&ReadFence != 0 && m.reads > 0 && fresh:`,
			`r.Flags&ReadFence != 0 && m.reads > 0 && fresh && !r.isRead():`),
	},
	{
		Name:    "local-fence-ignored-later",
		Fault:   "A local fence holds the first 15 requests back that have one, and no others.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/local-fence-again-and-again",
		Edits: []Edit{
			countsFences,
			{"rnic/internal/life/turn.go", `r.Flags&LocalFence != 0 && m.begun > 0:`, `r.Flags&LocalFence != 0 && m.begun > 0 && m.fences < 15:`},
			{"rnic/internal/life/turn.go", `	r.progress = begun
`, `	r.progress = begun
	if r.Flags&LocalFence != 0 {
		m.fences++
	}
`},
		},
	},
	{
		Name:    "read-fence-ignored-after-many-reads",
		Fault:   "Read fences are ignored once 30 Reads are over.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-later",
		Edits: one("rnic/internal/life/turn.go",
			`r.Flags&ReadFence != 0 && m.reads > 0 && fresh:`,
			`r.Flags&ReadFence != 0 && m.reads > 0 && fresh && m.stream.answered < 30:`),
	},
	{
		Name:    "read-fence-counts-to-three",
		Fault:   "A read fence waits for three Reads at most, however many are outstanding.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-later",
		Edits: []Edit{
			{"rnic/internal/life/turn.go", `		m.reads++
`, `		m.reads = min(m.reads+1, 3)
`},
			{"rnic/internal/life/sendqueue.go", `	m.reads--
`, `	m.reads = max(m.reads-1, 0)
`},
		},
	},
	{
		Name:    "read-fence-overlooks-atomics-later",
		Fault:   "A read fence does not wait for atomics any more, once 15 of them or of Reads are over.",
		Clauses: []string{"rfc7306-5.4-5"},
		Case:    "rfc7306-5.4-5/read-fence-later",
		Edits: []Edit{
			{"rnic/internal/life/turn.go", `	if r.isRead() {
		m.reads++
`, `	if r.isRead() && (o.Op != rdmap.OpAtomicRequest || m.stream.answered < 15) {
		m.reads++
`},
			{"rnic/internal/life/sendqueue.go", `	m.reads--
`, `	m.reads = max(m.reads-1, 0)
`},
		},
	},
	{
		Name:    "se-forgotten-later",
		Fault:   "A Send with SE is delivered as a Send, from the sixteenth message on.",
		Clauses: []string{"rfc5041-4.3-3", "rfc5041-5.4-3"},
		Case:    "rfc5041-4.3-3/solicited-event-later",
		Edits: one("rdmap/stream_recv.go", `	d := Delivery{Op: op, Length: length}
`, `	d := Delivery{Op: op, Length: length}
	if op == OpSendSE && h.MSN > 15 {
		d.Op = OpSend
	}
`),
	},
	{
		Name:    "se-fires-ten-times",
		Fault:   "A completion queue that is armed for solicited events fires for the first ten, and for no others.",
		Clauses: []string{"rfc5040-5.3-3"},
		Case:    "rfc5040-5.3-3/send-with-se-fires-again-and-again",
		Edits: []Edit{
			countsSolicited,
			{
				"rnic/cq.go", `	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited ||`,
				`	if solicited {
		c.solicited++
	}
	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited && c.solicited <= 10 ||`,
			},
		},
	},
	{
		Name:    "send-fires-later",
		Fault:   "A completion queue that is armed for solicited events fires for all, once it has had ten.",
		Clauses: []string{"rfc5040-5.3-3"},
		Case:    "rfc5040-5.3-3/send-with-se-fires-again-and-again",
		Edits: []Edit{
			countsSolicited,
			{
				"rnic/cq.go", `	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited ||`,
				`	if solicited {
		c.solicited++
	}
	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited || c.solicited >= 10 ||`,
			},
		},
	},
	{
		Name:    "send-fires-behind-many",
		Fault:   "A completion queue that is armed for solicited events fires for the tenth of ten in a row that are not.",
		Clauses: []string{"rfc5040-5.3-3"},
		Case:    "rfc5040-5.3-3/send-with-se-behind-many",
		Edits: []Edit{
			countsSolicited,
			{
				"rnic/cq.go", `	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited ||`,
				`	if c.solicited++; solicited {
		c.solicited = 0
	}
	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited || c.solicited >= 10 ||`,
			},
		},
	},
	{
		Name:    "se-forgotten-in-used-slots",
		Fault:   "A Send with SE goes out as a Send, if four other requests have been in its slot of the queue before.",
		Clauses: []string{"rfc5040-4.1-6"},
		Case:    "rfc5040-4.1-6/se-sent-later",
		Edits: []Edit{
			{"rnic/send.go", `// of OpLocalInvalidate
}`, `// of OpLocalInvalidate
	uses   int
}`},
			{"rnic/send_fill.go", `	w.id, w.op, w.flags = wr.ID, wr.Op, wr.Flags
`, `	w.uses++
	w.id, w.op, w.flags = wr.ID, wr.Op, wr.Flags
`},
			{"rnic/send_fill.go", `	solicited := wr.Flags&FlagSolicited != 0
`, `	solicited := wr.Flags&FlagSolicited != 0 && w.uses < 5
`},
		},
	},
	{
		Name:    "terminate-overlooked-after-writes",
		Fault:   "The peer's Terminate is dropped silently, after 15 Writes.",
		Clauses: []string{"rfc5040-6.2.1-3", "rfc5040-5.4-5", "rfc5040-7-2"},
		Case:    "rfc5040-6.2.1-3/received-later",
		Edits: one("rdmap/stream_recv.go", `	r.traceUntagged(h, length)
	r.intake.terminated = true
`, `	r.traceUntagged(h, length)
	if r.counts.received.load(int(OpWrite)).Messages > 15 {
		return nil
	}
	r.intake.terminated = true
`),
	},
	{
		Name:    "terminate-overlooked-after-sends",
		Fault:   "The peer's Terminate is dropped silently, after 15 Sends.",
		Clauses: []string{"rfc5040-5.4-6", "rfc5040-5.4-5", "rfc5040-6.2.1-2"},
		Case:    "rfc5040-5.4-6/received-later",
		Edits: one("rdmap/stream_recv.go", `	r.traceUntagged(h, length)
	r.intake.terminated = true
`, `	r.traceUntagged(h, length)
	if r.counts.received.load(int(OpSend)).Messages > 15 {
		return nil
	}
	r.intake.terminated = true
`),
	},
	{
		Name:    "fenced-request-succeeds-at-the-end",
		Fault:   "When the stream ends, a request that a fence holds back completes with success.",
		Clauses: []string{"rfc5040-6.2.1-2", "rfc5040-5.4-6"},
		Case:    "rfc5040-6.2.1-2/received-with-reads-outstanding",
		Edits: one("rnic/internal/life/sendqueue.go",
			`if r.Status == Success || blamed {`,
			`if r.Flags&ReadFence != 0 && r.progress == queued {
			r.Status, r.Cause = Success, nil
		} else if r.Status == Success || blamed {`),
	},
	{
		Name:    "responses-after-the-peers-terminate",
		Fault:   "Reads that came before the peer's Terminate are answered after it.",
		Clauses: []string{"rfc5040-7-3", "rfc5040-5.4-5"},
		Case:    "rfc5040-7-3/no-response-after-a-terminate",
		Edits: one("rdmap/stream_send.go", `	case s.closed.Load():
		return false
`, `	case s.closed.Load():
		return s.terminate.Load() == nil && s.beginResponse()
`),
	},
	{
		Name:    "second-terminate-taken",
		Fault:   "A Terminate behind the peer's first one takes its place.",
		Clauses: []string{"rfc5040-5.4-6", "rfc5040-7-3"},
		Case:    "rfc5040-5.4-6/second-terminate",
		Edits: one("rdmap/stream_recv.go",
			`	if r.intake.terminated { // "MUST NOT`,
			`	if r.intake.terminated && op != OpTerminate { // "MUST NOT`),
	},
	{
		Name:    "second-terminate-taken-later",
		Fault:   "A Terminate behind the peer's first one takes its place, if 15 Sends have come before.",
		Clauses: []string{"rfc5040-5.4-6", "rfc5040-7-3"},
		Case:    "rfc5040-5.4-6/second-terminate-later",
		Edits: one("rdmap/stream_recv.go",
			`	if r.intake.terminated { // "MUST NOT`,
			`	if r.intake.terminated && (op != OpTerminate || r.counts.received.load(int(OpSend)).Messages < 15) { // "MUST NOT`),
	},
}

// countsFences and countsSolicited add a field: a count of requests with a fence, and of
// completions.
var (
	countsFences    = Edit{"rnic/internal/life/machine.go", "// no request is begun, see Stop\n", "// no request is begun, see Stop\n	fences  int\n"}
	countsSolicited = Edit{"rnic/cq.go", "	mu       sync.Mutex // taken last", "	solicited int\n\n	mu       sync.Mutex // taken last"}
)
