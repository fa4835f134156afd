package mutants

// completion completes requests and delivers messages too early, or in another order:
// RFC 5041 §5.4, RFC 5040 §5.5, RFC 7306 §5.4.
var completion = []Mutant{
	{
		Name:    "send-delivered-by-its-first-segment",
		Fault:   "A Send is delivered when its first segment is placed.",
		Clauses: []string{"rfc5041-5.4-1", "rfc5041-4.1-7", "rfc5040-5.5-7"},
		Edits: one("ddp/sink.go", `	if !h.Control.Last() {
		return nil
	}
	// Delivered`, `	if !h.Control.Last() && h.MO > 0 {
		return nil
	}
	// Delivered`),
	},
	{
		Name:    "send-delivered-with-a-gap",
		Fault:   "A Send is delivered with its last segment, whether all before it have come or not.",
		Clauses: []string{"rfc5041-5.4-1"},
		Case:    "rfc5041-5.4-1/gap-in-a-send",
		Edits: one("ddp/sink.go", `	if !q.covered.is(end) {
		return badMO(h, fmt.Sprintf("the message ends at octet %d, but its segments cover something else", end))
	}
`, ``),
	},
	{
		Name:    "read-completes-when-it-is-sent",
		Fault:   "A Read completes when its Request is sent.",
		Clauses: []string{"rfc5040-5.5-9", "rfc5040-5.5-11"},
		Case:    "rfc5040-5.5-9/not-before-the-response",
		Edits: []Edit{
			{"rnic/internal/life/sendqueue.go", `r.posts == len(r.Messages) && !r.isRead() {`, `r.posts == len(r.Messages) {`},
			{"rnic/link_transmit.go", `	if w.op.isRead() {
		return
	}
`, ``},
		},
	},
	{
		Name:    "read-completes-with-its-first-segment",
		Fault:   "A Read completes when the first segment of its response is placed.",
		Clauses: []string{"rfc5040-5.5-9", "rfc5041-5.4-1"},
		Case:    "rfc5040-5.5-9/not-before-the-last-segment",
		Edits: []Edit{
			{"rdmap/stream_recv.go", `	if !h.Control.Last() {
		return nil
	}
	m.begun = false
`, `	if !h.Control.Last() {
		if read == nil {
			return nil
		}
		return r.completed(read)
	}
	m.begun = false
`},
			{"rdmap/stream_recv.go", `	if !h.Control.Last() {
		return nil, nil
	}
	if uint64`, `	if !h.Control.Last() && uint64(o.received) == n {
		return o, nil
	}
	if uint64`},
		},
	},
	{
		Name:    "requests-complete-out-of-order",
		Fault:   "A Send that is out completes before the Read that was posted before it.",
		Clauses: []string{"rfc5040-5.5-6"},
		Case:    "rfc5040-5.5-6/send-behind-a-read",
		Edits: one("rnic/internal/life/sendqueue.go", `	for m.begun > 0 && m.isDone(*m.queue.At(0)) {
`, `	next := func() *Request {
		first := m.queue.At(0)
		for i := 1; i < m.begun && (*first).isRead() && (*first).progress != done; i++ {
			if behind := m.queue.At(i); (*behind).progress == posted && m.isDone(*behind) {
				*first, *behind = *behind, *first
			}
		}
		return *first
	}
	for m.begun > 0 && m.isDone(next()) {
`),
	},
	{
		Name:    "fence-ignored",
		Fault:   "A request that is to wait for the Reads before it is sent at once.",
		Clauses: []string{"rfc5040-5.5-9"},
		Case:    "rfc5040-5.5-9/read-fence",
		Edits: one("rnic/internal/life/turn.go",
			`r.Flags&ReadFence != 0 && m.reads > 0 && fresh:`,
			`r.Flags&ReadFence != 0 && m.reads > m.queue.Len() && fresh:`),
	},
	{
		Name:    "write-delivered",
		Fault:   "An RDMA Write completes a receive, as if it were a Send.",
		Clauses: []string{"rfc5040-5.1-2", "rfc5041-4.1-1"},
		Edits: one("rdmap/stream_recv.go", `		if _, err := r.expected(OpWrite, m.length); err != nil {
			return err
		}
`, `		if rtr, err := r.expected(OpWrite, m.length); err != nil {
			return err
		} else if !rtr && m.length > 0 {
			if b, _ := r.ulp.ReceiveBuffer(0, false); b != nil {
				return r.ulp.Deliver(Delivery{Op: OpSend, Length: uint32(m.length)})
			}
		}
`),
	},
	{
		Name:    "receives-complete-with-the-length-before",
		Fault:   "A receive completes with the length of the last segment, and not of the message.",
		Clauses: []string{"rfc5041-5.4-2"},
		Edits: one("ddp/sink.go",
			`return s.ulp.DeliverUntagged(h, uint32(end))`,
			`return s.ulp.DeliverUntagged(h, uint32(a.n))`),
	},
	{
		Name:    "atomic-completes-when-it-is-sent",
		Fault:   "An atomic completes when its Request is sent, with an original value of zero.",
		Clauses: []string{"rfc7306-5.4-5", "rfc7306-5.4-1"},
		Edits: []Edit{
			{"rnic/internal/life/sendqueue.go", `package life
`, `package life

import "urnic/rdmap"
`},
			{
				"rnic/internal/life/sendqueue.go", `r.posts == len(r.Messages) && !r.isRead() {`,
				`r.posts == len(r.Messages) && (!r.isRead() || r.Messages[0].Op == rdmap.OpAtomicRequest) {`,
			},
			{"rnic/link_transmit.go", `	if w.op.isRead() {
		return
	}
`, `	if w.op.isRead() && !w.op.isAtomic() {
		return
	}
`},
		},
	},
	{
		Name:    "flushed-with-success",
		Fault:   "What is outstanding when a stream ends completes with success.",
		Clauses: []string{"rfc5040-6.2.1-2", "rfc5041-6.2.2-6"},
		Edits: one("rnic/internal/life/sendqueue.go",
			`r.Status, r.Cause = Flushed, nil`,
			`r.Status, r.Cause = Success, nil`),
	},
}
