package mutants

// revocation leaves memory open that was taken back while something is under way: RFC 5041
// §8.3.1, RFC 5040 §8.1.1, RFC 5042 §6.2.2.
var revocation = []Mutant{
	{
		Name:    "long-read-not-revoked",
		Fault:   "A Read's source is looked up once: what is deregistered or invalidated during the response goes on being sent.",
		Clauses: []string{"rfc5040-7.2-9", "rfc5041-8.3-2", "rfc5041-8.3.1-5"},
		Case:    "rfc5040-7.2-9/deregistered-during-a-long-read",
		Edits:   longReadEdits,
	},
	{
		Name:    "long-read-not-revoked-by-invalidation",
		Fault:   "During a Read, the STag of its source is compared with nothing: an invalidation in the midst does not stop the response.",
		Clauses: []string{"rfc5040-7.2-9", "rfc5041-8.3-2"},
		Case:    "rfc5040-7.2-9/invalidated-during-a-long-read",
		Edits: []Edit{
			{"rdmap/stream_send.go", `	pin   stag.Pin
}
`, `	pin   stag.Pin
	whole []byte
	size  uint64
}
`},
			{"rdmap/stream_send.go", `	p.pin, err = p.table.Acquire(p.stag, p.scope, stag.RemoteRead, p.to+uint64(off), uint64(n))
	if err != nil {
		return pieces, err
	}
	return append(pieces, p.pin.Bytes()), nil
`, `	if p.pin, err = p.table.Acquire(p.stag, p.scope, stag.RemoteRead, p.to, p.size); err == nil {
		p.whole = p.pin.Bytes()
	} else if p.whole == nil || !p.table.Exists(p.stag) {
		return pieces, err
	}
	return append(pieces, p.whole[off:off+n]), nil
`},
			{"rdmap/stream_send.go", `stag: in.read.SrcSTag, to: in.read.SrcTO}`, `stag: in.read.SrcSTag, to: in.read.SrcTO, size: uint64(in.read.Size)}`},
		},
	},
	{
		Name:    "sink-open-until-the-read-ends",
		Fault:   "The sink of a Read is looked up with the first segment of the response: what is deregistered or invalidated after that goes on being written to.",
		Clauses: []string{"rfc5042-6.2.2-1", "rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Case:    "rfc5042-6.2.2-1/deregistered-within-a-read-response",
		Edits:   keptOpen(`need == stag.LocalWrite`),
	},
	{
		Name:    "write-goes-on-after-revocation",
		Fault:   "The STag of a Write is looked up with its first segment: what is deregistered or invalidated after that goes on being written to.",
		Clauses: []string{"rfc5042-6.2.2-1", "rfc5040-8.1.1-7", "rfc5041-8.3.1-7"},
		Case:    "rfc5042-6.2.2-1/deregistered-within-a-write",
		Edits:   keptOpen(`need == stag.RemoteWrite`),
	},
}

var longReadEdits = []Edit{
	{"rdmap/stream_send.go", `	pin   stag.Pin
}
`, `	whole []byte
	size  uint64
}
`},
	{"rdmap/stream_send.go", `	p.pin, err = p.table.Acquire(p.stag, p.scope, stag.RemoteRead, p.to+uint64(off), uint64(n))
	if err != nil {
		return pieces, err
	}
	return append(pieces, p.pin.Bytes()), nil
}
func (p *readPayload) Release()   { p.pin.Release() }
func (*readPayload) Stable() bool { return false }
`, `	if p.whole == nil {
		pin, err := p.table.Acquire(p.stag, p.scope, stag.RemoteRead, p.to, p.size)
		if err != nil {
			return pieces, err
		}
		p.whole = pin.Bytes()
		pin.Release()
	}
	return append(pieces, p.whole[off:off+n]), nil
}
func (*readPayload) Release()     {}
func (*readPayload) Stable() bool { return false }
`},
	{"rdmap/stream_send.go", `stag: in.read.SrcSTag, to: in.read.SrcTO}`, `stag: in.read.SrcSTag, to: in.read.SrcTO, size: uint64(in.read.Size)}`},
}

// keptOpen has what was opened for the first segment of a tagged message stay open for the
// segments behind it, where a condition holds.
func keptOpen(condition string) []Edit {
	return []Edit{
		{"rdmap/stream_recv.go", `	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, h.TO, n)
`, `	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, h.TO, n)
	if first := &r.intake.first; ` + condition + ` && !r.intake.tagged.begun {
		first.mem, first.to = mem, h.TO
	} else if err != nil && ` + condition + ` && first.mem != nil {
		mem, err = unsafe.Slice(unsafe.SliceData(first.mem), h.TO-first.to+n)[h.TO-first.to:], nil
	}
`},
		{"rdmap/stream_recv.go", `	lease stag.Lease // of what is placed into, as long as there is something at hand
`, `	lease stag.Lease // of what is placed into, as long as there is something at hand

	first struct {
		mem []byte
		to  uint64
	}
`},
	}
}
