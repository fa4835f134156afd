package mutants

// security breaks protection: RFC 5042, with what RFC 5040 §8.1 and RFC 5041 §8 say
// of it too.
var security = []Mutant{
	{
		Name:    "stag-of-other-domain-taken",
		Fault:   "An STag of another protection domain opens memory.",
		Clauses: []string{"rfc5042-6.1.1-2", "rfc5041-8.3.1-2", "rfc5041-8.2-1", "rfc5040-8.1.1-2"},
		Edits: one("stag/access.go",
			`return s.Domain == user.Domain && (s.Stream == 0 || s.Stream == user.Stream)`,
			`return s.Stream == 0 || s.Stream == user.Stream`),
	},
	{
		Name:    "stag-of-other-stream-taken",
		Fault:   "An STag that is limited to one stream opens memory to others of its domain.",
		Clauses: []string{"rfc5042-6.1.1-3", "rfc5041-8.3.1-3", "rfc5041-8.2-2", "rfc5040-8.1.1-3"},
		Edits: one("stag/access.go",
			`return s.Domain == user.Domain && (s.Stream == 0 || s.Stream == user.Stream)`,
			`return s.Domain == user.Domain`),
	},
	{
		Name:    "write-by-local-right",
		Fault:   "A peer may write what this side may write: the right of remote write is not asked for.",
		Clauses: []string{"rfc5041-8.3.1-6", "rfc5040-8.1.1-6"},
		Edits: one("rdmap/stream_recv.go",
			`need := stag.RemoteWrite`,
			`need := stag.LocalWrite`),
	},
	{
		Name:    "read-without-right",
		Fault:   "A peer may read any memory that it knows an STag of.",
		Clauses: []string{"rfc5042-6.3.5-1", "rfc5041-8.3.1-6", "rfc5040-8.1.1-6"},
		Edits: one("stag/acquire.go",
			`case e.access&need != need, need == 0`,
			`case need != RemoteRead && e.access&need != need, need == 0`),
	},
	{
		Name:    "atomic-by-write-right",
		Fault:   "Atomics are allowed wherever RDMA Writes are.",
		Clauses: []string{"rfc5040-8.1.1-6"},
		Edits: []Edit{
			{
				"rdmap/stream_recv.go",
				`Open(req.STag, r.cfg.Scope, stag.RemoteAtomic, req.TO, AtomicLen)`,
				`Open(req.STag, r.cfg.Scope, stag.RemoteWrite, req.TO, AtomicLen)`,
			},
			{
				"rdmap/stream_send.go",
				`Acquire(r.STag, s.cfg.Scope, stag.RemoteAtomic, r.TO, AtomicLen)`,
				`Acquire(r.STag, s.cfg.Scope, stag.RemoteWrite, r.TO, AtomicLen)`,
			},
		},
	},
	{
		Name:    "stray-response-placed",
		Fault:   "A Read Response that nobody asked for is placed, before it is refused.",
		Clauses: []string{"rfc5042-6.2.1-1", "rfc5040-8.1.1-6"},
		Edits: one("rdmap/stream_recv.go", `		found, outstanding := r.depths.sinkOf(h, len(payload))
		if !found {
			return r.stray(h, n, outstanding)
		}
		need = stag.LocalWrite
`, `		need = stag.LocalWrite
`),
	},
	{
		Name:    "invalidated-stays-open",
		Fault:   "An STag that was invalidated, by either side, goes on opening its memory.",
		Clauses: []string{"rfc5042-6.2.2-1", "rfc5040-8.1.1-7", "rfc5041-8.3.1-7", "rfc5041-8.3-2", "rfc5040-5.3-9"},
		Edits: one("stag/table.go", `	e.close()
	return nil
}

// mayInvalidate`, `	return nil
}

// mayInvalidate`),
	},
	{
		Name:    "deregistered-stays-open",
		Fault:   "The STag of a region that was deregistered goes on opening its memory.",
		Clauses: []string{"rfc5042-6.2.2-1", "rfc5040-8.1.1-7", "rfc5041-8.3.1-7", "rfc5041-8.3-1", "rfc5041-8.3.1-5"},
		Edits: one("stag/table.go", `	case e.state == valid:
		e.close()
	}
	e.state = gone
	t.index.remove(e)
`, `	}
	e.state = gone
`),
	},
	{
		Name:    "invalidate-of-other-stream",
		Fault:   "A peer can invalidate STags of other streams and domains.",
		Clauses: []string{"rfc5040-7.2-5", "rfc5040-5.3-8"},
		Edits: one("stag/table.go", `	case !e.scope.admits(by):
		return &AccessError{Violation: NotAssociated, STag: s, Wanted: need}
`, ``),
	},
	{
		Name:    "invalidate-of-shared-stag",
		Fault:   "A peer can invalidate an STag that other streams use too.",
		Clauses: []string{"rfc5040-8.1.1-8"},
		Edits: one("stag/table.go", `	case need == RemoteInvalidate && e.scope.Stream == 0 && e.domain.Held(pd.QueuePairs) > 1:
		return &RegisterError{Rule: "shared STag", Reason: "other streams of the protection domain can use it", STag: s}
`, ``),
	},
	{
		Name:    "stag-counts-up",
		Fault:   "STags are given out in turn, from the first one on.",
		Clauses: []string{"rfc5042-6.1.1-6", "rfc5042-6.1.1-4", "rfc5040-8.1.1-9", "rfc5040-8.1.1-13"},
		Edits: one("stag/index.go", `	for {
		if i := randomUint32() & MaxIndex; i != 0 && x.find(i) == nil {
			return i
		}
	}
`, `	for i := uint32(1); ; i++ {
		if x.find(i) == nil {
			return i
		}
	}
`),
	},
	{
		Name:    "share-of-srq-exceeded",
		Fault:   "A peer may hold one receive more of a shared queue than its share.",
		Clauses: []string{"rfc5042-6.4.3.1-1"},
		Edits: one("rnic/recvqueue.go",
			`if q.shareLeft() < 1 {`,
			`if q.shareLeft() < 0 {`),
	},
	{
		Name:    "overflow-ends-all",
		Fault:   "The overflow of one completion queue ends every stream of the device.",
		Clauses: []string{"rfc5042-6.4.6-1"},
		Edits: one("rnic/cq_overflow.go", `		if q.sendCQ == c || q.recvCQ == c {
			q.catastrophe(c.noSlot())
		}
`, `		q.catastrophe(c.noSlot())
`),
	},
}
