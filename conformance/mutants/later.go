package mutants

// later breaks rules that it follows at first: in the first Marker, FPDU, segment,
// message or window. The cases that find it are those whose names say later, again, or
// after how many.
var later = []Mutant{
	{
		Name:    "marker-checked-near-the-front",
		Fault:   "Markers are checked only in the first 600 octets of an FPDU.",
		Clauses: []string{"rfc5044-8-9", "rfc5044-8-3"},
		Edits: one("mpa/deframer.go",
			`for at := d.firstInner(lead); at < len(fpdu); at += MarkerInterval {`,
			`for at := d.firstInner(lead); at < min(len(fpdu), 600); at += MarkerInterval {`),
	},
	{
		Name:    "marker-unchecked-near-the-end",
		Fault:   "Markers are not checked more than 60000 octets into an FPDU.",
		Clauses: []string{"rfc5044-8-9", "rfc5044-8-3"},
		Edits: one("mpa/deframer.go",
			`for at := d.firstInner(lead); at < len(fpdu); at += MarkerInterval {`,
			`for at := d.firstInner(lead); at < min(len(fpdu), 60_000); at += MarkerInterval {`),
	},
	{
		Name:    "marker-checked-in-10000-fpdus",
		Fault:   "Markers are checked in the first 10000 FPDUs, and only taken out of later ones.",
		Clauses: []string{"rfc5044-8-9", "rfc5044-8-3"},
		Edits: []Edit{
			countsFPDUs,
			{"mpa/deframer.go", `if err := d.checkMarkers(fpdu, lead); err != nil {`, `if err := d.checkMarkers(fpdu, lead); err != nil && d.fpdus < 10_000 {`},
			{"mpa/deframer.go", `	d.clock = d.clock.after(total)
`, `	d.clock = d.clock.after(total)
	d.fpdus++
`},
		},
	},
	{
		Name:    "marker-low-bits-checked-later",
		Fault:   "A Marker 600 octets into an FPDU or more is refused if one of the low two bits of its FPDUPTR is set.",
		Clauses: []string{"rfc5044-4.2-4", "rfc5044-4.3-6"},
		Edits: one("mpa/marker.go",
			`if ptr := binary.BigEndian.Uint16(m[2:]) &^ 3; ptr != uint16(distance) {`,
			`if ptr := binary.BigEndian.Uint16(m[2:]); ptr&^3 != uint16(distance) || distance > 600 && ptr&3 != 0 {`),
	},
	{
		Name:    "marker-reserved-checked-later",
		Fault:   "A Marker 600 octets into an FPDU or more is refused if its reserved field is not zero.",
		Clauses: []string{"rfc5044-4.2-2"},
		Edits: one("mpa/marker.go",
			`ptr != uint16(distance) {`,
			`ptr != uint16(distance) || distance > 600 && m[0]|m[1] != 0 {`),
	},
	{
		Name:    "marker-wrong-later",
		Fault:   "FPDUPTR is 4, and not 0, in the Markers before FPDUs, from the hundredth such Marker on.",
		Clauses: []string{"rfc5044-4.3-10", "rfc5044-4.3-3", "rfc5044-4.3-2"},
		Edits: []Edit{
			countsSentFPDUs,
			{"mpa/fpdu.go", `		b = appendMarker(b, 0)
`, `		if f.fpdus++; f.fpdus < 100 {
			b = appendMarker(b, 0)
		} else {
			b = appendMarker(b, 4)
		}
`},
		},
	},
	{
		Name:    "crc-unchecked-after-10000-fpdus",
		Fault:   "The CRCs of the first 10000 FPDUs are checked, and no others.",
		Clauses: []string{"rfc5044-4.4-12", "rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-8-2"},
		Edits: []Edit{
			countsFPDUs,
			{"mpa/deframer.go", `UpdateCRC(0, fpdu[:total-CRCLen]); got != want {`, `UpdateCRC(0, fpdu[:total-CRCLen]); got != want && d.fpdus < 10_000 {`},
			{"mpa/deframer.go", `	length := int(binary.BigEndian.Uint16(fpdu[lead:]))
`, `	length := int(binary.BigEndian.Uint16(fpdu[lead:]))
	d.fpdus++
`},
		},
	},
	{
		Name:    "crc-checked-at-the-front",
		Fault:   "Of the FPDUs that come at once, the CRCs of those in the first 200 octets are checked, and no others.",
		Clauses: []string{"rfc5044-4.4-12", "rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-8-2"},
		Edits: one("mpa/conn_recv.go", `		ulpdu, n, err := c.deframer.Next(b)
`, `		d := c.deframer
		d.CRC = d.CRC && in.n-len(b) < 200
		ulpdu, n, err := d.Next(b)
		c.deframer.clock = d.clock
`),
	},
	{
		Name:    "crc-unchecked-of-pieces",
		Fault:   "The CRC of an FPDU that comes in two TCP segments is not checked.",
		Clauses: []string{"rfc5044-4.4-12", "rfc5044-4.4-11", "rfc5044-6-1", "rfc5044-8-2"},
		Edits: one("mpa/conn_recv.go", `		ulpdu, n, err := c.deframer.Next(b)
`, `		d := c.deframer
		d.CRC = d.CRC && (len(b) < in.n || len(in.stash) == 0)
		ulpdu, n, err := d.Next(b)
		c.deframer.clock = d.clock
`),
	},
	{
		Name:    "crc-wrong-after-10000-fpdus",
		Fault:   "The CRCs of the first 10000 FPDUs are sent, and zero in those that follow.",
		Clauses: []string{"rfc5044-4.4-9", "rfc5044-4.1-1"},
		Edits: []Edit{
			countsSentFPDUs,
			{"mpa/fpdu.go", `	return UpdateCRC(0, b)
`, `	if f.fpdus++; f.fpdus > 10_000 {
		return 0
	}
	return UpdateCRC(0, b)
`},
		},
	},
	{
		Name:    "pad-not-zero-later",
		Fault:   "The pad is zero in the first 10000 FPDUs, and not in those that follow.",
		Clauses: []string{"rfc5044-4.1-2"},
		Edits: []Edit{
			countsSentFPDUs,
			{"mpa/fpdu.go", `	b = append(b, zeroPad[:padLen(n)]...) // PAD
`, `	pad := zeroPad
	if f.fpdus++; f.fpdus > 10_000 {
		pad[0] = 1
	}
	b = append(b, pad[:padLen(n)]...) // PAD
`},
		},
	},
	{
		Name:    "pad-checked-later",
		Fault:   "A pad that is not zero is refused, from the eleventh FPDU on.",
		Clauses: []string{"rfc5044-4.1-2"},
		Edits: []Edit{
			countsFPDUs,
			{"mpa/deframer.go", `	if !d.Markers {
		return fpdu[lengthLen`, `	if d.fpdus++; d.fpdus > 10 && !d.Markers && string(fpdu[lengthLen+length:total-CRCLen]) != string(zeroPad[:padLen(length)]) {
		return nil, 0, &Error{Code: CodeCRC, Clause: "RFC 5044 §4.1", Reason: "the pad is not zero"}
	}
	if !d.Markers {
		return fpdu[lengthLen`},
		},
	},
	{
		Name:    "msn-8-bits",
		Fault:   "The MSNs of what is sent count up to 255, and then from 0 on.",
		Clauses: []string{"rfc5041-4.3-7"},
		Edits: one("ddp/source.go",
			`		s.next[m.QN]++ // modulo 2^32
`, `		s.next[m.QN] = uint32(uint8(s.next[m.QN] + 1))
`),
	},
	{
		Name:    "msn-16-bits-expected",
		Fault:   "The MSNs that are expected count up to 65535, and then from 0 on.",
		Clauses: []string{"rfc5041-7.1-5"},
		Edits: one("ddp/sink.go",
			`	q.first++ // modulo 2^32
`, `	q.first = uint32(uint16(q.first + 1))
`),
	},
	{
		Name:    "msn-ahead-taken-later",
		Fault:   "A message whose MSN is ahead of its turn is delivered at once, from the tenth on.",
		Clauses: []string{"rfc5041-7.1-5", "rfc5041-5.3-4"},
		Edits: []Edit{
			{"ddp/sink.go", `if delivered || uint64(ahead) > early {`, `if delivered || uint64(ahead) > early && h.MSN < 10 {`},
			{"ddp/sink.go", `if h.MSN != q.first {`, `if h.MSN != q.first && h.MSN < 10 {`},
		},
	},
	{
		Name:    "gap-overlooked-later",
		Fault:   "What is there of a message counts as there for the next one of its queue, too: gaps in it are overlooked.",
		Clauses: []string{"rfc5041-5.4-1"},
		Edits: []Edit{
			{"ddp/extent.go", `return e.upto == end &&`, `return e.upto >= end &&`},
			{"ddp/extent.go", `e.upto, e.beyond = 0, e.beyond[:0]`, `e.beyond = e.beyond[:0]`},
		},
	},
	{
		Name:    "ddp-version-unchecked-later",
		Fault:   "DV is checked in the first 15 segments, and in no others.",
		Clauses: []string{"rfc5041-4.1-10"},
		Edits: one("ddp/sink.go",
			`v := seg.Control.Version(); v != Version {`,
			`v := seg.Control.Version(); v != Version && s.next < 15 {`),
	},
	{
		Name:    "ddp-version-unchecked-after-many",
		Fault:   "DV is checked in the first 10000 segments, and in no others.",
		Clauses: []string{"rfc5041-4.1-10"},
		Edits: one("ddp/sink.go",
			`v := seg.Control.Version(); v != Version {`,
			`v := seg.Control.Version(); v != Version && s.next < 10_000 {`),
	},
	{
		Name:    "bounds-overlooked-later",
		Fault:   "A Write that leaves the buffer is dropped silently, once 15 Reads have come.",
		Clauses: []string{"rfc5041-7.1-8", "rfc5041-7.1-9"},
		Edits: one("ddp/sink.go",
			`	return s.ulp.PlaceTagged(&seg.Tagged, seg.Payload)
`, `	err := s.ulp.PlaceTagged(&seg.Tagged, seg.Payload)
	var e *Error
	if s.queues[1].first > 15 && errors.As(err, &e) && e.Code == CodeBaseBounds {
		return nil
	}
	return err
`),
	},
	{
		Name:    "tagged-overlooked-after-many",
		Fault:   "Writes that must not be placed are dropped silently, from the ten thousandth segment of a stream on.",
		Clauses: []string{"rfc5041-7.1-6", "rfc5041-7.1-9", "rfc5041-7.1-10"},
		Edits: one("ddp/sink.go",
			`	return s.ulp.PlaceTagged(&seg.Tagged, seg.Payload)
`, `	err := s.ulp.PlaceTagged(&seg.Tagged, seg.Payload)
	if s.next > 10_000 {
		return nil
	}
	return err
`),
	},
	{
		Name:    "send-cut-later",
		Fault:   "A Send that is longer than its receive is cut to fit, from the eleventh on.",
		Clauses: []string{"rfc5041-7.1-4"},
		Edits: one("ddp/sink.go",
			`		case n == 0: // judged for non-empty segments only
`, `		case n == 0: // judged for non-empty segments only
		case h.QN == 0 && h.MSN > 10 && uint64(h.MO) < size:
			payload = payload[:min(n, size-uint64(h.MO))]
`),
	},
	{
		Name:    "mo-overlooked-later",
		Fault:   "A segment whose MO lies behind the receive is dropped silently, from the eleventh Send on.",
		Clauses: []string{"rfc5041-7.1-3"},
		Edits: one("ddp/sink.go",
			`		case n == 0: // judged for non-empty segments only
`, `		case n == 0: // judged for non-empty segments only
		case h.QN == 0 && h.MSN > 10 && uint64(h.MO) >= size:
			payload = nil
`),
	},
	{
		Name:    "terminate-of-the-first-message",
		Fault:   "In the Terminate for a segment that many have preceded, MSN is 1 and TO is 0.",
		Clauses: []string{"rfc5040-7.1-3", "rfc5040-7.1-4", "rfc5040-4.8-7"},
		Edits: one("ddp/sink.go",
			`	s.err = s.turn.describe(err)
`, `	if s.next > 15 {
		s.turn.tagged.TO, s.turn.untagged.MSN = 0, 1
	}
	s.err = s.turn.describe(err)
`),
	},
	{
		Name:    "read-of-anything-later",
		Fault:   "A Read of what is no memory for it gets an empty response, from the sixteenth on.",
		Clauses: []string{"rfc5040-7.2-9", "rfc5040-7.2-10", "rfc5040-5.2.1-11", "rfc5040-7.2-11", "rfc5040-7.2-12", "rfc5040-7.2-13"},
		Edits: one("rdmap/stream_recv.go", `		if err != nil {
			e := protectionError(err)
`, `		if err != nil && h.MSN > 15 {
			req.Size = 0
		} else if err != nil {
			e := protectionError(err)
`),
	},
	{
		Name:    "ird-grows",
		Fault:   "Each Read that is answered makes room for one more than before.",
		Clauses: []string{"rfc5040-6.1-5"},
		Edits: one("rdmap/reads.go", `	d.irq.Pop()
`, `	d.irq.Pop()
	d.ird++
`),
	},
	{
		Name:    "ord-grows",
		Fault:   "After each Read that is over, from the sixth on, one more than before may be outstanding.",
		Clauses: []string{"rfc5040-6.1-4"},
		Edits: []Edit{
			countsReads,
			{"rdmap/reads.go", `	d.orq.Pop()
`, `	d.orq.Pop()
	if d.over++; d.over > 5 {
		d.ord++
	}
`},
		},
	},
	{
		Name:    "reads-mixed-up-later",
		Fault:   "Once a Read has been answered, the third and the fourth that wait change places.",
		Clauses: []string{"rfc5040-5.5-10"},
		Case:    "rfc5040-5.5-10/in-order-later",
		Edits: []Edit{
			countsReads,
			{"rdmap/reads.go", `	d.irq.Pop()
`, `	d.irq.Pop()
	d.over++
`},
			{"rdmap/reads.go", `	d.irq.Push(in)
`, `	d.irq.Push(in)
	if d.over > 0 && d.irq.Len() == 4 && in.read.Size > 0 {
		c, d := d.irq.At(2), d.irq.At(3)
		*c, *d = *d, *c
	}
`},
		},
	},
	{
		Name:    "responses-mixed-up-later",
		Fault:   "Once a Read is over, the eighth and the ninth that are outstanding change places.",
		Clauses: []string{"rfc5040-5.5-2", "rfc5040-5.5-6"},
		Case:    "rfc5040-5.5-2/responses-in-order-later",
		Edits: []Edit{
			countsReads,
			{"rdmap/reads.go", `	d.orq.Pop()
`, `	d.orq.Pop()
	d.over++
`},
			{"rdmap/reads.go", `	d.orq.Push(o)
`, `	d.orq.Push(o)
	if d.over > 0 && d.orq.Len() == 9 {
		h, i := d.orq.At(7), d.orq.At(8)
		*h, *i = *i, *h
	}
`},
		},
	},
	{
		Name:    "response-anywhere-later",
		Fault:   "Once 15 Reads are over, a Read Response is placed into any memory of the stream's, while a Read is outstanding.",
		Clauses: []string{"rfc5040-7.2-1"},
		Edits: []Edit{
			countsReads,
			{"rdmap/reads.go", `	d.orq.Pop()
`, `	d.orq.Pop()
	d.over++
`},
			{"rdmap/reads.go", `if o.SinkSTag == h.STag &&`, `if d.over > 15 || o.SinkSTag == h.STag &&`},
		},
	},
	{
		Name:    "invalidate-ignored-later",
		Fault:   "Sends with Invalidate invalidate nothing, from the fifteenth Send on.",
		Clauses: []string{"rfc5040-5.3-9"},
		Edits: one("rdmap/stream_recv.go",
			`case op.Invalidates():`,
			`case op.Invalidates() && h.MSN < 15:`),
	},
	{
		Name:    "invalidate-of-anything-later",
		Fault:   "That an STag can't be invalidated is overlooked, from the fifteenth Send on.",
		Clauses: []string{"rfc5040-7.2-4", "rfc5040-7.2-5"},
		Edits: one("rdmap/stream_recv.go",
			`RemoteInvalidate(d.Invalidated, r.cfg.Scope); err != nil {`,
			`RemoteInvalidate(d.Invalidated, r.cfg.Scope); err != nil && h.MSN < 15 {`),
	},
	{
		Name:    "opcode-overlooked-later",
		Fault:   "An untagged message whose opcode or version is wrong is dropped silently, from the sixteenth of its queue on.",
		Clauses: []string{"rfc5040-7.2-2", "rfc5040-7.2-3", "rfc5040-7.2-7", "rfc5040-7.2-8"},
		Edits: []Edit{
			{"rdmap/stream_recv.go", `	if err := r.admit(c, false, h.QN); err != nil {
`, `	if err := r.admit(c, false, h.QN); err != nil && h.MSN < 16 {
`},
			{"rdmap/stream_recv.go", `	if err := r.admit(c, false, h.QN); err != nil { // the last segment decides, if they differ
`, `	if err := r.admit(c, false, h.QN); err != nil && h.MSN > 15 {
		return nil
	} else if err != nil {
`},
		},
	},
	{
		Name:    "tagged-opcode-overlooked-later",
		Fault:   "An empty tagged message whose opcode or version is wrong is taken, after 15 Writes.",
		Clauses: []string{"rfc5040-7.2-2", "rfc5040-7.2-3"},
		Edits: one("rdmap/stream_recv.go", `	c, m := Control(h.RsvdULP), &r.intake.tagged
	if err := r.admit(c, true, 0); err != nil {
`, `	c, m := Control(h.RsvdULP), &r.intake.tagged
	if err := r.admit(c, true, 0); err != nil && r.counts.received.load(int(OpWrite)).Messages < 15 {
`),
	},
	{
		Name:    "atomic-unaligned-later",
		Fault:   "Atomics at addresses that are not aligned are carried out, from the sixteenth request on.",
		Clauses: []string{"rfc7306-8.2-5", "rfc7306-8.2-4"},
		Edits: []Edit{
			{"rdmap/stream_recv.go", `	if !aligned {
`, `	if !aligned && h.MSN < 16 {
`},
			{"rdmap/stream_send.go", `	if uintptr(target)%AtomicLen != 0 {
`, `	if target == nil {
`},
		},
	},
	{
		Name:    "atomic-response-to-any-later",
		Fault:   "The Request Identifier of an Atomic Response is compared for the first 15 atomics, and for no others.",
		Clauses: []string{"rfc7306-8.1-2"},
		Edits: one("rdmap/stream_recv.go",
			`first.requestID != resp.RequestID {`,
			`first.requestID != resp.RequestID && first.requestID < 16 {`),
	},
	{
		Name:    "immediate-of-any-length-later",
		Fault:   "Immediate Data of another length than 8 octets are taken, from the sixteenth message on.",
		Clauses: []string{"rfc7306-6.3-7"},
		Edits: one("rdmap/stream_recv.go",
			`length != ImmediateLen:`,
			`length != ImmediateLen && h.MSN < 16:`),
	},
	{
		Name:    "msn-16-bits-sent",
		Fault:   "The MSNs of what is sent count up to 65535, and then from 0 on.",
		Clauses: []string{"rfc5041-4.3-7"},
		Case:    "rfc5041-4.3-7/65552-sends",
		Edits: one("ddp/source.go",
			`		s.next[m.QN]++ // modulo 2^32
`, `		s.next[m.QN] = uint32(uint16(s.next[m.QN] + 1))
`),
	},
}

// countsFPDUs, countsSentFPDUs and countsReads add a field: a count of FPDUs, in either
// direction, and of Reads that are over.
var (
	countsFPDUs     = Edit{"mpa/deframer.go", "	clock markerClock\n}", "	clock markerClock\n	fpdus int\n}"}
	countsSentFPDUs = Edit{"mpa/fpdu.go", "	clock markerClock\n}", "	clock markerClock\n	fpdus int\n}"}
	countsReads     = Edit{"rdmap/reads.go", "	atomics int // in the ORQ\n", "	atomics int // in the ORQ\n	over    int\n"}
)
