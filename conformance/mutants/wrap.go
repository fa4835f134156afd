package mutants

// nearWrap is the stack with MSNs that begin near 2^32, in both directions: a few messages
// later they wrap to zero (RFC 5041 §4.3), which from 1 on takes more than an hour.
var nearWrap = &Build{
	Name:     "msn-near-wrap",
	FirstMSN: 0xFFFFFFFD,
	Edits: []Edit{
		{"ddp/source.go", `		s.next[i] = 1 // "The initial`, `		s.next[i] = 0xFFFFFFFD // "The initial`},
		{"ddp/sink.go", `		s.queues[i].first = 1
`, `		s.queues[i].first = 0xFFFFFFFD
`},
	},
}

// wrap breaks the wrap of the MSN: RFC 5041 §4.3. The faults show only near 2^32.
var wrap = []Mutant{
	{
		Name:    "msn-skips-zero",
		Fault:   "The MSN behind 0xFFFFFFFF is 1: zero is left out.",
		Clauses: []string{"rfc5041-4.3-7"},
		Base:    nearWrap,
		Case:    "rfc5041-4.3-7/eight-sends",
		Edits: one("ddp/source.go", `		s.next[m.QN]++ // modulo 2^32
`, `		if s.next[m.QN]++; s.next[m.QN] == 0 {
			s.next[m.QN] = 1
		}
`),
	},
	{
		Name:    "msn-skips-zero-on-queue-1",
		Fault:   "On the queue of Read Requests, the MSN behind 0xFFFFFFFF is 1.",
		Clauses: []string{"rfc5041-4.3-7"},
		Base:    nearWrap,
		Case:    "rfc5041-4.3-7/eight-reads",
		Edits: one("ddp/source.go", `		s.next[m.QN]++ // modulo 2^32
`, `		if s.next[m.QN]++; s.next[m.QN] == 0 && m.QN == 1 {
			s.next[m.QN] = 1
		}
`),
	},
	{
		Name:    "msn-skips-zero-on-queue-3",
		Fault:   "On the queue of Atomic Responses, the MSN behind 0xFFFFFFFF is 1.",
		Clauses: []string{"rfc5041-4.3-7"},
		Base:    nearWrap,
		Case:    "rfc5041-4.3-7/eight-atomic-responses",
		Edits: one("ddp/source.go", `		s.next[m.QN]++ // modulo 2^32
`, `		if s.next[m.QN]++; s.next[m.QN] == 0 && m.QN == 3 {
			s.next[m.QN] = 1
		}
`),
	},
	{
		Name:    "msn-stays-at-its-highest",
		Fault:   "All messages behind the one with MSN 0xFFFFFFFF have that MSN too.",
		Clauses: []string{"rfc5041-4.3-7"},
		Base:    nearWrap,
		Case:    "rfc5041-4.3-7/eight-sends",
		Edits: one("ddp/source.go", `		s.next[m.QN]++ // modulo 2^32
`, `		s.next[m.QN] = max(s.next[m.QN]+1, s.next[m.QN])
`),
	},
	{
		Name:    "msn-of-31-bits",
		Fault:   "The MSN is sent without its highest bit.",
		Clauses: []string{"rfc5041-4.3-7", "rfc5041-4.3-1"},
		Base:    nearWrap,
		Case:    "rfc5041-4.3-7/eight-sends",
		Edits:   one("ddp/source.go", `MSN: m.msn, MO: m.sent,`, `MSN: m.msn & 0x7FFFFFFF, MO: m.sent,`),
	},
	{
		Name:    "msn-ends-at-its-highest",
		Fault:   "No message can be sent behind the one with MSN 0xFFFFFFFF: the stream ends instead.",
		Clauses: []string{"rfc5041-4.3-7"},
		Base:    nearWrap,
		Case:    "rfc5041-4.3-7/eight-sends",
		Edits: one("ddp/source.go", `	case m.Length > 0 && m.Payload == nil:
`, `	case !m.Tagged && m.QN < uint32(len(s.next)) && s.next[m.QN] == 0:
		return errors.New("ddp: all sequence numbers are used up")
	case m.Length > 0 && m.Payload == nil:
`),
	},
	{
		Name:    "sink-skips-zero",
		Fault:   "Behind a message with MSN 0xFFFFFFFF the sink waits for 1, and refuses zero.",
		Clauses: []string{"rfc5041-7.1-5", "rfc5041-5.2-5"},
		Base:    nearWrap,
		Case:    "rfc5041-7.1-5/eight-sends-in-turn",
		Edits: one("ddp/sink.go", `	q.first++ // modulo 2^32
`, `	if q.first++; q.first == 0 {
		q.first = 1
	}
`),
	},
	{
		Name:    "sink-stays-at-its-highest",
		Fault:   "Behind a message with MSN 0xFFFFFFFF the sink waits for that once more.",
		Clauses: []string{"rfc5041-7.1-5", "rfc5041-5.3-3"},
		Base:    nearWrap,
		Case:    "rfc5041-7.1-5/eight-sends-in-turn",
		Edits: one("ddp/sink.go", `	q.first++ // modulo 2^32
`, `	q.first = max(q.first+1, q.first)
`),
	},
	{
		Name:    "sink-skips-zero-on-queue-1",
		Fault:   "Behind a Read Request with MSN 0xFFFFFFFF the sink waits for 1, and refuses zero.",
		Clauses: []string{"rfc5041-7.1-5"},
		Base:    nearWrap,
		Case:    "rfc5041-7.1-5/eight-reads-in-turn",
		Edits: one("ddp/sink.go", `	q.first++ // modulo 2^32
`, `	if q.first++; q.first == 0 && h.QN == 1 {
		q.first = 1
	}
`),
	},
	{
		Name:    "sink-skips-zero-on-queue-3",
		Fault:   "Behind an Atomic Response with MSN 0xFFFFFFFF the sink waits for 1, and refuses zero.",
		Clauses: []string{"rfc5041-7.1-5"},
		Base:    nearWrap,
		Case:    "rfc5041-7.1-5/eight-atomic-responses-in-turn",
		Edits: one("ddp/sink.go", `	q.first++ // modulo 2^32
`, `	if q.first++; q.first == 0 && h.QN == 3 {
		q.first = 1
	}
`),
	},
}
