package mutants

// placement puts payload where it does not belong: RFC 5041 §5.2 and §7.1, RFC 5040 §5.2.2.
var placement = []Mutant{
	{
		Name:    "write-placed-one-byte-on",
		Fault:   "A Write is placed one byte behind its TO; what reaches beyond the buffer is cut off.",
		Clauses: []string{"rfc5041-5.2-5", "rfc5041-7.1-8"},
		Case:    "rfc5041-5.2-5/write-to-the-some-octets",
		Edits: one("stag/lease.go",
			`return h.entry.mem[off : off+n : off+n], nil`,
			`off = min(off+1, uint64(len(h.entry.mem)))
	return h.entry.mem[off:min(off+n, uint64(len(h.entry.mem)))], nil`),
	},
	{
		Name:    "write-placed-at-message-start",
		Fault:   "Every segment of a Write is placed where the first one was.",
		Clauses: []string{"rfc5041-5.2-5"},
		Case:    "rfc5041-5.2-5/write-in-segments-of-8",
		Edits: one("rdmap/stream_recv.go", `	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, h.TO, n)
`, `	to := h.TO
	if m := &r.intake.tagged; m.begun {
		to = m.to
	}
	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, to, n)
`),
	},
	{
		Name:    "write-placed-behind-the-one-before",
		Fault:   "A segment of a Write is placed behind the one before it, whatever its TO is.",
		Clauses: []string{"rfc5041-5.2-5"},
		Case:    "rfc5041-5.2-5/segments-in-falling-to-order",
		Edits: one("rdmap/stream_recv.go", `	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, h.TO, n)
`, `	to := h.TO
	if m := &r.intake.tagged; m.begun {
		to = m.to + m.length
	}
	mem, err := r.intake.lease.Open(r.cfg.Memory, h.STag, r.cfg.Scope, need, to, n)
`),
	},
	{
		Name:    "write-placed-short",
		Fault:   "The last byte of each segment of a Write is not placed.",
		Clauses: []string{"rfc5041-5.2-5"},
		Case:    "rfc5041-5.2-5/write-to-the-all-octets",
		Edits: one("rdmap/stream_recv.go",
			`memfault.Copy(mem, payload); err`,
			`memfault.Copy(mem[:n-1], payload[:n-1]); err`),
	},
	{
		Name:    "write-placed-reversed-words",
		Fault:   "The bytes of each aligned word of a Write are placed in reverse, as a machine of another byte order would.",
		Clauses: []string{"rfc5041-5.2-5"},
		Case:    "rfc5041-5.2-5/write-to-the-all-octets",
		Edits: one("rdmap/stream_recv.go", `	if err := memfault.Copy(mem, payload); err != nil {
`, `	for i := 0; i+4 <= len(payload); i += 4 {
		w := payload[i : i+4]
		w[0], w[1], w[2], w[3] = w[3], w[2], w[1], w[0]
	}
	if err := memfault.Copy(mem, payload); err != nil {
`),
	},
	{
		Name:    "send-placed-without-mo",
		Fault:   "Every segment of a Send is placed at the beginning of the receive buffer.",
		Clauses: []string{"rfc5041-5.2-5", "rfc5041-5.4-2"},
		Case:    "rfc5041-5.2-5/send-in-segments-of-99",
		Edits: one("ddp/sink.go",
			`return buf.Place(h.MO, payload)`,
			`return buf.Place(0, payload)`),
	},
	{
		Name:    "send-placed-behind-the-segment-before",
		Fault:   "A segment of a Send is placed behind the one before it, whatever its MO is.",
		Clauses: []string{"rfc5041-5.2-5"},
		Case:    "rfc5041-5.2-5/segments-in-mixed-mo-order",
		Edits: []Edit{
			{"ddp/sink.go", `return buf.Place(h.MO, payload)`, `mo := q.placed
	if q.placed += uint32(len(payload)); h.Control.Last() {
		q.placed = 0
	}
	return buf.Place(mo, payload)`},
			{"ddp/sink.go", `	covered extent // of that message, as far as it is in turn
`, `	covered extent // of that message, as far as it is in turn
	placed  uint32
`},
		},
	},
	{
		Name:    "send-placed-into-the-next-receive",
		Fault:   "A Send is placed into the receive behind the oldest one, if there is one, and completes the oldest.",
		Clauses: []string{"rfc5041-5.3-4", "rfc5041-5.2-5", "rfc5040-5.3-2"},
		Edits: one("rnic/recvqueue.go", `			w = q.rq.ring.at(int(ahead))
`, `			w = q.rq.ring.at(min(int(ahead)+1, q.rq.ring.Len()-1))
`),
	},
	{
		Name:    "pieces-of-a-receive-one-byte-on",
		Fault:   "In each piece of a receive's memory but the first one, data are placed one byte behind its beginning.",
		Clauses: []string{"rfc5041-5.2-5", "rfc5040-5.3-2"},
		Case:    "rfc5041-5.2-5/send-into-three-pieces",
		Edits: one("rnic/recv.go",
			`p, at = p[n:], 0`,
			`p, at = p[n:], 1`),
	},
	{
		Name:    "write-placed-late",
		Fault:   "A Write is placed some time after it has come: the Send behind it is delivered before.",
		Clauses: []string{"rfc5041-4.1-7", "rfc5040-5.5-7"},
		Case:    "rfc5041-4.1-7/after-the-writes-before-it",
		Edits: []Edit{
			{"rdmap/stream_recv.go", `	if err := memfault.Copy(mem, payload); err != nil {
		return &ddp.Error{Code: ddp.CodeBaseBounds, Clause: "RFC 5041 §7.1", Err: err}
	}
	return nil
`, `	late := append([]byte(nil), payload...)
	time.AfterFunc(200*time.Millisecond, func() {
		var lost error // the memory may be gone by then
		defer memfault.End(memfault.Begin(), &lost)
		copy(mem, late)
	})
	return nil
`},
			{"rdmap/stream_recv.go", `	"fmt"
	"unsafe"
`, `	"fmt"
	"time"
	"unsafe"
`},
		},
	},
	{
		Name:    "send-placed-late",
		Fault:   "A Send is placed some time after its receive has completed.",
		Clauses: []string{"rfc5041-5.4-1", "rfc5041-5.2-5"},
		Case:    "rfc5041-5.2-5/send-in-segments-of-99",
		Edits: []Edit{
			{"rnic/recv.go", `		if err := memfault.Copy(mem, p[:n]); err != nil {
			w.Refuse(life.LocalProtection, err)
			return &rdmap.Error{Code: rdmap.CodeLocalCatastrophic, Clause: "RFC 5040 §4.8", Err: err}
		}
`, `		late := append([]byte(nil), p[:n]...)
		time.AfterFunc(200*time.Millisecond, func() {
			var lost error // the memory may be gone by then
			defer memfault.End(memfault.Begin(), &lost)
			copy(mem, late)
		})
`},
			{"rnic/recv.go", `	"sync/atomic"

`, `	"sync/atomic"
	"time"

`},
		},
	},
	{
		Name:    "read-response-placed-at-the-sinks-start",
		Fault:   "Every segment of a Read Response is placed at the beginning of the Read's sink.",
		Clauses: []string{"rfc5041-5.2-5", "rfc5042-6.2.1-1", "rfc5040-5.5-2"},
		Case:    "rfc5040-5.5-2/sink-is-there-when-a-send-is",
		Edits: one("rdmap/stream_recv.go", `		need = stag.LocalWrite
	}
`, `		need = stag.LocalWrite
		if first, ok := r.depths.firstOutbound(); ok && first.op != nil && n <= first.op.Length {
			at := *h
			at.TO, h = first.op.SinkTO, &at
		}
	}
`),
	},
	{
		Name:    "stale-response-placed",
		Fault:   "A response to the Read that was answered last is placed once more, before it is refused.",
		Clauses: []string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4", "rfc5042-6.2.2-1"},
		Case:    "rfc5040-8.1.1-4/response-after-the-read",
		Edits: []Edit{
			{"rdmap/reads.go", `	orq     ring.Ring[outbound]
`, `	orq     ring.Ring[outbound]
	last    *Operation
`},
			{"rdmap/reads.go", `		d.atomics--
	}
	d.orq.Pop()
`, `		d.atomics--
	}
	d.last = d.orq.At(0).op
	d.orq.Pop()
`},
			{"rdmap/reads.go", `	return false, waiting
}`, `	return d.last != nil && d.last.SinkSTag == h.STag && d.last.SinkTO == h.TO, waiting
}`},
		},
	},
	{
		Name:    "stale-response-answers-the-next-read",
		Fault:   "While a Read is outstanding, a second response to the one before it is placed there.",
		Clauses: []string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4", "rfc5042-6.2.2-1"},
		Case:    "rfc5040-8.1.1-4/stale-response-during-the-next-read",
		Edits: []Edit{
			{"rdmap/reads.go", `	orq     ring.Ring[outbound]
`, `	orq     ring.Ring[outbound]
	last    Operation
`},
			{"rdmap/reads.go", `		d.atomics--
	}
	d.orq.Pop()
`, `		d.atomics--
	}
	if o := d.orq.At(0).op; o != nil {
		d.last = *o
	}
	d.orq.Pop()
`},
			{"rdmap/reads.go", `	return false, waiting
}`, `	return waiting && d.last.SinkSTag == h.STag && d.last.SinkTO == h.TO, waiting
}`},
		},
	},
	{
		Name:    "original-value-beside-its-place",
		Fault:   "The original value of an atomic is stored 8 bytes behind its place, if there is room.",
		Clauses: []string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4"},
		Case:    "rfc5040-8.1.1-4/atomic-original-beside-the-result",
		Edits: one("rnic/send.go",
			`stag.LocalWrite, w.sgl[0].Addr, rdmap.AtomicLen)`,
			`stag.LocalWrite, w.sgl[0].Addr+rdmap.AtomicLen, rdmap.AtomicLen)`),
	},
}
