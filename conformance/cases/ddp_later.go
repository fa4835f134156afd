package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ddpLater is the checks of segments in later messages (RFC 5041 §4, §7.1).
func ddpLater() []conformance.Case {
	cases := []conformance.Case{laterVersion, laterMSN, laterRepeat, laterGap, laterGapRead, laterSends, laterManySends}
	for _, o := range outliers {
		cases = append(cases, o.later())
	}
	for _, o := range overruns {
		cases = append(cases, o.later())
	}
	return append(cases, laterWrites()...)
}

// later is the Write that lies outside the buffer, behind many that lie in it.
func (o outlier) later() conformance.Case {
	return conformance.Case{
		Clause: o.clause, Name: o.name + "-later", Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("After %d Writes to a buffer, one of %d octets that %s is refused, Terminate 0x1101, and nothing of it is placed", before, o.n, o.what),
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			m := openLater(t, conformance.BufferSpec{Length: 64, AtEnd: o.atEnd})
			w := wire.Tagged(wire.Write, m.b.STag, o.to(m.b), conformance.Pattern(o.n))
			w.Wrong = "it " + o.what
			m.s.Post(w)
			codes := []wire.Code{wire.DDPBounds}
			if w.TO+uint64(o.n) < w.TO {
				codes = wrapCodes
			}
			m.s.AwaitTerminate(codes...)
			m.s.AwaitUntouched(m.b)
		},
	}
}

// laterWrites is Writes that are wrong, behind more of them than 16 bits count.
func laterWrites() []conformance.Case {
	var cases []conformance.Case
	for _, c := range []struct {
		clause, name, what string
		spoil              func(w *wire.Segment, b *conformance.Buffer)
		codes              []wire.Code
	}{
		{"rfc5041-7.1-6", "stag", "to an STag that nobody gave", func(w *wire.Segment, _ *conformance.Buffer) { w.STag ^= 1 }, []wire.Code{wire.DDPInvalidSTag}},
		{"rfc5041-7.1-9", "end", "that ends one octet beyond the buffer", func(w *wire.Segment, b *conformance.Buffer) {
			w.TO = b.TO + uint64(b.Length) - 7
		}, []wire.Code{wire.DDPBounds}},
		{"rfc5041-7.1-10", "wrap", "whose TO wraps", func(w *wire.Segment, _ *conformance.Buffer) { w.TO = 1<<64 - 4 }, wrapCodes},
		{"rfc5041-4.1-10", "version", "with DV 0", func(w *wire.Segment, _ *conformance.Buffer) { w.Version = 0 }, []wire.Code{wire.DDPTaggedVersion}},
	} {
		cases = append(cases, conformance.Case{
			Clause: c.clause, Name: fmt.Sprintf("%s-after-%d-writes", c.name, many), Also: []string{"rfc5041-7.2-1"}, Needs: conformance.NeedBuffer,
			Title: fmt.Sprintf("After %d Writes, one %s is refused, Terminate with %s, and not placed", many, c.what, conformance.Codes(c.codes...)),
			Run: func(t *conformance.T) {
				s := rdmapReading(t, conformance.Setup{})
				m := openMemoryOf(t, s, conformance.BufferSpec{Length: 8, AtEnd: true})
				repeats(s, m.write(0, m.want[:8]), many)
				m.check()
				w := wire.Tagged(wire.Write, m.b.STag, m.b.TO, conformance.Pattern(8))
				c.spoil(&w, m.b)
				w.Wrong = "it is one " + c.what
				s.Post(w)
				s.AwaitTerminate(c.codes...)
				s.AwaitUntouched(m.b)
			},
		})
	}
	return cases
}

// later is the Send that does not fit, behind many that do.
func (o overrun) later() conformance.Case {
	return conformance.Case{
		Clause: o.clause, Name: o.name + "-later", Also: []string{"rfc5041-7.2-1"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Sends, the first segment of one that %s is refused: Terminate with %s", before, o.what, conformance.Codes(o.codes...)),
		Run: func(t *conformance.T) {
			s := t.Open(laterReceives(conformance.RecvLen))
			sendsBefore(t, s)
			m := wire.Untagged(wire.Send, conformance.Pattern(o.n))
			m.MO, m.Wrong = o.mo, "it "+o.what
			m.Last = false // that it is not whole must not be what ends the stream
			s.Post(m)
			s.AwaitTerminate(o.codes...)
			drain(t, s)
			deliversNothing(t, s)
		},
	}
}

var laterVersion = conformance.Case{
	Clause: "rfc5041-4.1-10", Name: "read-request-with-version-0-later", Also: []string{"rfc5041-7.2-1"},
	Title: fmt.Sprintf("After %d Read Requests, one with DV 0 is refused: Terminate 0x1206", before),
	Run: func(t *conformance.T) {
		s := rdmapReading(t, conformance.Setup{})
		readsNothing(t, s, before)
		r := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
		r.Version, r.Wrong = 0, "DV is 0"
		s.Post(r)
		s.AwaitTerminate(wire.DDPUntaggedVersion)
	},
}

var laterMSN = conformance.Case{
	Clause: "rfc5041-7.1-5", Name: fmt.Sprintf("%d-read-requests", many), Also: []string{"rfc5041-4.3-7"}, Needs: conformance.NeedService,
	Title: fmt.Sprintf("MSNs have 32 bits: %d Read Requests in turn are answered, and one with the MSN of 65536 messages before is refused, Terminate 0x1203 or 0x1202", many),
	Run: func(t *conformance.T) {
		s := rdmapReading(t, deepReads())
		readsNothing(t, s, many)
		m := s.Due(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
		m.MSN, m.Wrong = m.MSN-1<<16, "an MSN that has been"
		s.PostExact(m, wire.Flaw{})
		s.AwaitTerminate(outOfRange...)
	},
}

var laterRepeat = conformance.Case{
	Clause: "rfc5041-7.1-5", Name: "send-one-ahead-later", Also: []string{"rfc5041-5.3-4"}, Needs: conformance.NeedService,
	Title: fmt.Sprintf("After %d Sends, one whose MSN is one more than what is due, with two receives posted, is refused, or delivered second", before),
	Run: func(t *conformance.T) {
		setup := laterReceives(conformance.RecvLen)
		setup.Recvs = append(setup.Recvs, conformance.RecvLen)
		s := t.Open(setup)
		sendsBefore(t, s)
		first := s.Due(wire.Untagged(wire.Send, conformance.Pattern(8)))
		second := wire.Untagged(wire.Send, conformance.Pattern(12))
		second.MSN, second.Wrong = first.MSN+1, "the MSN before it is in turn"
		s.PostExact(second, wire.Flaw{})
		if refuses(t, s, outOfRange...) {
			drain(t, s)
			deliversNothing(t, s)
			return
		}
		s.AwaitNoCompletion(service.RecvQueue, "as the message before it has not come")
		s.PostExact(first, wire.Flaw{})
		delivers(t, s, first.Payload)
		delivers(t, s, second.Payload)
	},
}

var laterGap = conformance.Case{
	Clause: "rfc5041-5.4-1", Name: "gap-later", Needs: conformance.NeedService,
	Title: fmt.Sprintf("After %d Sends of 16 octets, one that lacks its first 8, though its last 8 have L=1, is not delivered", before),
	Run: func(t *conformance.T) {
		s := t.Open(laterReceives(16))
		for range before {
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(16)))
			delivers(t, s, conformance.Pattern(16))
		}
		part := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(16)), 8)[1]
		part.Wrong = "the segment before it is missing"
		s.Post(part)
		if refuses(t, s, wire.DDPInvalidMO, wire.RDMAPCatastrophic, wire.RDMAPOther) {
			drain(t, s)
		}
		deliversNothing(t, s)
	},
}

var laterGapRead = conformance.Case{
	Clause: "rfc5041-5.4-1", Name: "gap-in-a-later-read-request", Also: []string{"rfc5040-7.2-6"},
	Title: fmt.Sprintf("After %d Read Requests, one that lacks its first 14 octets, though its last 14 have L=1, is not answered", before),
	Run: func(t *conformance.T) {
		s := rdmapReading(t, conformance.Setup{})
		readsNothing(t, s, before)
		part := conformance.Segments(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0), 14)[1]
		part.Wrong = "the segment before it is missing"
		s.Post(part)
		a, err := s.Answer(t.Quiet())
		t.Check(err != nil || a.Opcode == wire.Terminate, "a Terminate, or nothing", "%s", a.Segment)
	},
}

var laterSends = conformance.Case{
	Clause: "rfc5041-4.3-7", Name: "300-sends", Also: []string{"rfc5041-4.3-10", "rfc5041-4.3-11", "rfc5041-5.2-6", "rfc5041-4.1-4"},
	Needs: conformance.NeedService,
	Title: "The MSNs of 300 Sends count up by one, and a long one after them is cut as the first would be: MSN, MO and L are right in each segment",
	Run: func(t *conformance.T) {
		const sends = 300 // more than 8 bits count
		need(t, t.Service().Hello().Limits.Depth > sends, fmt.Sprintf("a queue for %d requests", sends+1))
		setup := conformance.Setup{QP: service.QPAttr{SendDepth: sends + 1}}
		s := t.Open(setup)
		s.Hello()
		posts := make([]service.Post, sends+1)
		for i := range posts {
			posts[i] = service.Post{Op: service.OpSend, Data: []byte{byte(i)}, Unsignaled: true}
		}
		posts[sends].Data = conformance.Pattern(longMessage)
		s.Posts(posts...)
		for msn := uint32(1); msn <= sends; msn++ {
			a := s.Await(wire.Send)
			t.Check(a.MSN == msn && a.MO == 0 && a.Last, fmt.Sprintf("MSN %d, MO 0, L=1", msn), "%s", a.Segment)
		}
		segments := several(t, message(s, wire.Send))
		t.Check(segments[0].MSN == sends+1, fmt.Sprintf("MSN %d", sends+1), "%s", segments[0].Segment)
		breaks(t, segments, wire.FaultMSN, wire.FaultMO, wire.FaultMessage, wire.FaultVersion, wire.FaultReserved, wire.FaultRV, wire.FaultRDMAPReserved, wire.FaultInvalidate)
		n := len(payload(segments))
		t.Check(n == longMessage, fmt.Sprintf("L=1 with octet %d", longMessage), "L=1 with octet %d", n)
	},
}

var laterManySends = conformance.Case{
	Clause: "rfc5041-4.3-7", Name: fmt.Sprintf("%d-sends", many), Also: []string{"rfc5041-4.1-4"}, Needs: conformance.NeedService,
	Title: fmt.Sprintf("The MSNs of %d Sends count up by one: they have 32 bits", many),
	Run: func(t *conformance.T) {
		const batch = 1024
		need(t, t.Service().Hello().Limits.Depth >= batch, fmt.Sprintf("a queue for %d requests", batch))
		s := t.Open(conformance.Setup{QP: service.QPAttr{SendDepth: batch}})
		s.Hello()
		posts := make([]service.Post, batch)
		for i := range posts {
			posts[i] = service.Post{Op: service.OpSend, Data: []byte{byte(i)}, Unsignaled: i < batch-1}
		}
		for msn := t.FirstMSN(); msn-t.FirstMSN() < many; {
			n := min(batch, many-(msn-t.FirstMSN()))
			s.Posts(posts[batch-n:]...)
			for range n {
				a := s.Await(wire.Send)
				t.Check(a.MSN == msn && a.MO == 0 && a.Last, fmt.Sprintf("MSN %d, MO 0, L=1", msn), "%s", a.Segment)
				msn++
			}
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
		}
	},
}
