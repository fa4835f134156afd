package mutants

// windows breaks memory windows: what a binding may open, for whom, and until when (RFC
// 5040 §8.1.1, RFC 5041 §8.3, RFC 5042 §7.3).
var windows = []Mutant{
	{
		Name:    "window-beyond-its-region",
		Fault:   "A window may reach beyond the end of its region: what is beyond is cut off.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-beyond-its-region",
		Edits: []Edit{
			{
				"stag/window.go",
				`case b.Base < r.base || b.Base-r.base > uint64(len(r.mem)) || b.Len > uint64(len(r.mem))-(b.Base-r.base):`,
				`case b.Base < r.base || b.Base-r.base > uint64(len(r.mem)):`,
			},
			{"stag/window.go", `Mem: r.mem[off : off+b.Len : off+b.Len]`, `Mem: r.mem[off:min(off+b.Len, uint64(len(r.mem)))]`},
		},
	},
	{
		Name:    "window-one-byte-beyond-its-region",
		Fault:   "A window may reach one byte beyond the end of its region; that byte is cut off.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-one-byte-beyond-its-region",
		Edits: []Edit{
			{
				"stag/window.go",
				`b.Len > uint64(len(r.mem))-(b.Base-r.base):`,
				`b.Len > uint64(len(r.mem))-(b.Base-r.base)+1:`,
			},
			{"stag/window.go", `Mem: r.mem[off : off+b.Len : off+b.Len]`, `Mem: r.mem[off:min(off+b.Len, uint64(len(r.mem)))]`},
		},
	},
	{
		Name:    "window-before-its-region",
		Fault:   "A window may begin before its region: what is before that is cut off.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-before-its-region",
		Edits: []Edit{
			{"stag/window.go", `	case b.Base < r.base || b.Base-r.base > uint64(len(r.mem)) ||`, `	case b.Base < r.base: // it begins with the region
	case b.Base-r.base > uint64(len(r.mem)) ||`},
			{"stag/window.go", `off := b.Base - r.base`, `off := max(b.Base, r.base) - r.base`},
			{"stag/window.go", `Mem: r.mem[off : off+b.Len : off+b.Len]`, `Mem: r.mem[off:min(off+b.Len, uint64(len(r.mem)))]`},
		},
	},
	{
		Name:    "window-opens-its-region",
		Fault:   "A window opens the whole of its region, wherever it was bound.",
		Clauses: []string{"rfc5042-6.2.1-1", "rfc5040-8.1.1-4", "rfc5041-8.3.1-4"},
		Edits: one("stag/window.go", `	off := b.Base - r.base
	e.region = r
	e.validate(Memory{Mem: r.mem[off : off+b.Len : off+b.Len], Base: b.Base,`, `	e.region = r
	e.validate(Memory{Mem: r.mem, Base: r.base,`),
	},
	{
		Name:    "window-one-byte-longer",
		Fault:   "A window opens one byte more than it was bound to, where its region goes on.",
		Clauses: []string{"rfc5042-6.2.1-1", "rfc5040-8.1.1-4", "rfc5041-8.3.1-4"},
		Case:    "rfc5042-6.2.1-1/write-window-1-one-octet-behind-it",
		Edits: one("stag/window.go",
			`Mem: r.mem[off : off+b.Len : off+b.Len]`,
			`Mem: r.mem[off:min(off+b.Len+1, uint64(len(r.mem)))]`),
	},
	{
		Name:    "window-at-the-regions-start",
		Fault:   "A window opens the first bytes of its region, as many as it was bound to, and not those that it was bound to.",
		Clauses: []string{"rfc5040-8.1.1-5", "rfc5041-8.3-1", "rfc5041-8.3.1-5"},
		Case:    "rfc5040-8.1.1-5/window-1-opens-what-it-was-bound-to",
		Edits: one("stag/window.go",
			`off := b.Base - r.base`,
			`off := uint64(0)`),
	},
	{
		Name:    "window-for-writes-of-memory-for-reads",
		Fault:   "A window for remote writes and atomics may be bound to memory that not even its program may write to.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-that-writes-what-its-region-may-not",
		Edits: one("stag/window.go", `	case b.Access&(RemoteWrite|RemoteAtomic) != 0 && r.access&LocalWrite == 0:
		return fail("access rights", "remote write and atomic access want a region with local write access")
`, ``),
	},
	{
		Name:    "window-for-atomics-on-memory-for-reads",
		Fault:   "A window for atomics may be bound to memory that not even its program may write to.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-for-atomics-on-what-its-region-may-not",
		Edits: one("stag/window.go",
			`case b.Access&(RemoteWrite|RemoteAtomic) != 0 && r.access&LocalWrite == 0:`,
			`case b.Access&RemoteWrite != 0 && r.access&LocalWrite == 0:`),
	},
	{
		Name:    "window-with-its-regions-rights",
		Fault:   "A window grants what its region grants to peers, besides what it was bound for.",
		Clauses: []string{"rfc5040-8.1.1-6", "rfc5041-8.3.1-6", "rfc5042-6.3.5-1"},
		Case:    "rfc5040-8.1.1-6/window-1-with-fewer-rights-than-its-region",
		Edits: one("stag/window.go",
			`Access: b.Access, Stream: stream}, key)`,
			`Access: b.Access | r.access&remoteAccess, Stream: stream}, key)`),
	},
	{
		Name:    "window-writes-where-it-reads",
		Fault:   "A window that is bound for remote reads grants remote writes too.",
		Clauses: []string{"rfc5040-8.1.1-6", "rfc5041-8.3.1-6"},
		Edits: one("stag/window.go",
			`Access: b.Access, Stream: stream}, key)`,
			`Access: b.Access | b.Access&RemoteRead<<1, Stream: stream}, key)`),
	},
	{
		Name:    "window-on-a-region-that-wants-none",
		Fault:   "A window may be bound to a region that does not allow windows.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-to-a-region-that-wants-none",
		Edits: one("stag/window.go", `	case r.access&BindWindow == 0:
		return fail("access rights", "the region does not allow windows")
`, ``),
	},
	{
		Name:    "window-on-another-domains-region",
		Fault:   "A window may be bound to a region of another protection domain.",
		Clauses: []string{"rfc5042-7.3-1", "rfc5041-8.3.2-5"},
		Case:    "rfc5042-7.3-1/window-to-another-domains-region",
		Edits: []Edit{
			{"stag/window.go", `	case r.domain != e.domain:
		return fail("protection domain", "window and region belong to different ones")
`, ``},
			{"rnic/mw.go", `case b.MW.pd != p || b.MR != nil && b.MR.pd != p:`, `case b.MW.pd != p:`},
		},
	},
	{
		Name:    "window-open-after-unbinding",
		Fault:   "A window of type 1 that is unbound goes on opening what it was bound to.",
		Clauses: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7", "rfc5042-6.2.2-1", "rfc5041-8.3-2"},
		Case:    "rfc5040-8.1.1-7/write-window-1-unbound",
		Edits: one("stag/window.go",
			`if e.state == valid { // type 1 only`,
			`if e.state == valid && b.Len != 0 { // type 1 only`),
	},
	{
		Name:    "window-key-kept",
		Fault:   "A window of type 1 that is bound anew keeps its key: who knows the STag before gets at what it is bound to now.",
		Clauses: []string{"rfc5042-6.2.2-1", "rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Case:    "rfc5042-6.2.2-1/write-window-1-bound-anew",
		Edits: one("stag/window.go",
			`key = e.nextKey()`,
			`key = e.lastKey`),
	},
	{
		Name:    "window-2-bound-while-valid",
		Fault:   "A window of type 2 may be bound anew without having been invalidated.",
		Clauses: []string{"rfc5041-8.3-2", "rfc5040-8.1.1-5"},
		Case:    "rfc5041-8.3-2/window-2-bound-while-valid",
		Edits: one("stag/window.go", `	case e.kind == Window2 && e.state != invalid:
		return fail("STag not in invalid state", "invalidate the type 2 window first")
`, ``),
	},
	{
		Name:    "window-2-with-the-same-key",
		Fault:   "A window of type 2 may be bound anew with the key that it had: STags of before work again.",
		Clauses: []string{"rfc5042-6.2.2-1", "rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Case:    "rfc5042-6.2.2-1/window-2-bound-with-its-last-key",
		Edits: one("stag/window.go", `	case e.kind == Window2 && b.Key == e.lastKey:
		return fail("key", "the window's last STag had the same key: choose another")
`, ``),
	},
	{
		Name:    "window-2-of-the-domain",
		Fault:   "A window of type 2 is open to all streams of its protection domain, not only to the one that has bound it.",
		Clauses: []string{"rfc5042-6.1.1-3", "rfc5040-8.1.1-3", "rfc5041-8.3.1-3"},
		Edits: one("stag/window.go", `	if e.kind == Window1 {
		stream = 0
		if !b.Drawn {
			key = e.nextKey()
		}
	}
`, `	stream = 0
	if e.kind == Window1 && !b.Drawn {
		key = e.nextKey()
	}
`),
	},
	{
		Name:    "window-1-of-the-stream",
		Fault:   "A window of type 1 is open only to the stream that has bound it.",
		Clauses: []string{"rfc5041-8.2-3"},
		Case:    "rfc5041-8.2-3/window-1-of-the-domain",
		Edits: one("stag/window.go", `		stream = 0
`, ``),
	},
	{
		Name:    "window-keeps-no-region",
		Fault:   "A region can be deregistered while a window opens a part of it, and the window goes on opening that.",
		Clauses: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7", "rfc5042-6.2.2-1"},
		Case:    "rfc5040-8.1.1-7/region-deregistered-under-a-window",
		Edits: one("stag/table.go", `	case e.windows > 0:
		return &RegisterError{Rule: RuleInUse, Reason: "memory windows are bound to it", STag: Make(e.index, e.lastKey)}
`, ``),
	},
	{
		Name:    "window-survives-invalidation-of-region",
		Fault:   "A region can be invalidated while a window opens a part of it, and the window goes on opening that.",
		Clauses: []string{"rfc5040-8.1.1-7", "rfc5041-8.3.1-7", "rfc5042-6.2.2-1"},
		Case:    "rfc5040-8.1.1-7/region-invalidated-under-a-window",
		Edits: one("stag/table.go", `	case e.windows > 0:
		return &RegisterError{Rule: RuleInUse, Reason: "memory windows are bound to it", STag: s}
`, ``),
	},
	{
		Name:    "window-keys-count-up",
		Fault:   "The keys of a window of type 1 count up: who knows one STag knows the next.",
		Clauses: []string{"rfc5040-8.1.1-9", "rfc5042-6.1.1-6"},
		Case:    "rfc5040-8.1.1-9/of-a-window-bound-again",
		Edits: one("stag/window.go",
			`			e.keys[i], e.keys[at] = e.keys[at], uint8(i)
`, `			e.keys[i] = uint8(i) + e.lastKey + 1
			_ = at
`),
	},
}
