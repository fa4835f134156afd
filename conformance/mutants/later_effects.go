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
				"rnic/link_send.go", `w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued:`,
				`w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued && s.fences < 15:`,
			},
			{"rnic/link_send.go", `		w.state, w.link = begun, l
		o, last := w.next()
`, `		w.state, w.link = begun, l
		if w.flags&FlagReadFence != 0 {
			s.fences++
		}
		o, last := w.next()
`},
		},
	},
	{
		Name:    "read-fence-of-a-read-ignored",
		Fault:   "A read fence holds Sends and Writes back, and Reads do not wait.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-again-and-again",
		Edits: one("rnic/link_send.go",
			`w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued:`,
			`w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued && !w.op.isRead():`),
	},
	{
		Name:    "local-fence-ignored-later",
		Fault:   "A local fence holds the first 15 requests back that have one, and no others.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/local-fence-again-and-again",
		Edits: []Edit{
			countsFences,
			{"rnic/link_send.go", `w.flags&FlagLocalFence != 0 && s.begun > 0:`, `w.flags&FlagLocalFence != 0 && s.begun > 0 && s.fences < 15:`},
			{"rnic/link_send.go", `		w.state, w.link = begun, l
		o, last := w.next()
`, `		w.state, w.link = begun, l
		if w.flags&FlagLocalFence != 0 {
			s.fences++
		}
		o, last := w.next()
`},
		},
	},
	{
		Name:    "read-fence-ignored-after-many-reads",
		Fault:   "Read fences are ignored once 30 Reads are over.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-later",
		Edits: one("rnic/link_send.go",
			`w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued:`,
			`w.flags&FlagReadFence != 0 && s.reads > 0 && w.state == queued && l.answered < 30:`),
	},
	{
		Name:    "read-fence-counts-to-three",
		Fault:   "A read fence waits for three Reads at most, however many are outstanding.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence-later",
		Edits: []Edit{
			{"rnic/link_send.go", `			s.reads++
`, `			s.reads = min(s.reads+1, 3)
`},
			{"rnic/link_recv.go", `	s.reads--
`, `	s.reads = max(s.reads-1, 0)
`},
		},
	},
	{
		Name:    "read-fence-overlooks-atomics-later",
		Fault:   "A read fence does not wait for atomics any more, once 15 of them or of Reads are over.",
		Clauses: []string{"rfc7306-5.4-5"},
		Case:    "rfc7306-5.4-5/read-fence-later",
		Edits: []Edit{
			{"rnic/link_send.go", `		if w.op.isRead() {
			s.reads++
`, `		if w.op.isRead() && (!w.op.isAtomic() || l.answered < 15) {
			s.reads++
`},
			{"rnic/link_recv.go", `	s.reads--
`, `	s.reads = max(s.reads-1, 0)
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
		Name:    "se-sent-from-new-slots",
		Fault:   "A Send with SE goes out as a Send, if another request has been in its slot of the queue before.",
		Clauses: []string{"rfc5040-4.1-6"},
		Case:    "rfc5040-4.1-6/se-sent-later",
		Edits: []Edit{
			{"rnic/send.go", `	w.state, w.mark, w.status, w.cause = queued, 0, StatusSuccess, nil
`, `	reused := w.state != queued
	w.state, w.mark, w.status, w.cause = queued, 0, StatusSuccess, nil
`},
			{"rnic/send.go", `	solicited := wr.Flags&FlagSolicited != 0
`, `	solicited := wr.Flags&FlagSolicited != 0 && !reused
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
		Edits: one("rnic/sendqueue.go",
			`w.status == StatusSuccess || blamed {`,
			`w.flags&FlagReadFence != 0 && w.state == queued {
			w.status, w.cause = StatusSuccess, nil
		} else if w.status == StatusSuccess || blamed {`),
	},
	{
		Name:    "responses-after-the-peers-terminate",
		Fault:   "Reads that came before the peer's Terminate are answered after it.",
		Clauses: []string{"rfc5040-7-3", "rfc5040-5.4-5"},
		Case:    "rfc5040-7-3/no-response-after-a-terminate",
		Edits: one("rdmap/stream_send.go", `	case s.closed.Load():
		return false
`, `	case s.closed.Load():
		return s.beginResponse()
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
	countsFences    = Edit{"rnic/sendqueue.go", "	stopped bool // no request is begun", "	fences int\n\n	stopped bool // no request is begun"}
	countsSolicited = Edit{"rnic/cq.go", "	mu       sync.Mutex // taken last", "	solicited int\n\n	mu       sync.Mutex // taken last"}
)
