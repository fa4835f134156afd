package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapLater is the rules of RDMAP for later messages, and for windows of Reads that
// have been filled and emptied before (RFC 5040 §4.8, §5, §6.1, §7).
func rdmapLater() []conformance.Case {
	cases := slices.Clone(rdmapLaterRules)
	for _, r := range rdmapBadReads {
		cases = append(cases, r.later())
	}
	for i := range rdmapWrongdoings {
		if w := &rdmapWrongdoings[i]; w.headers != "" {
			cases = append(cases, w.later())
		}
	}
	return slices.Concat(cases, rdmapLaterFields(), rdmapLaterInvalidations(), rdmapLaterFences(), rdmapLaterSolicited, rdmapLaterTerminates)
}

// later is the Read whose source is no memory for it, behind many that have been
// answered.
func (r rdmapBadRead) later() conformance.Case {
	return conformance.Case{
		Clause: r.clause, Name: r.name + "-later", Needs: r.needs,
		Title: fmt.Sprintf("After %d Reads, one of %s is refused: Terminate %s", before, r.title, conformance.Codes(r.codes...)),
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			stag, to, n := r.source(t, s)
			if t.HasService() { // of other profiles, the one buffer is the source's
				b := s.Buffer(64)
				for range before {
					s.Read(b.STag, b.TO, 8)
				}
			} else {
				readsNothing(t, s, before)
			}
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, n, stag, to)
			m.Wrong = "it reads " + r.title
			s.Post(m)
			s.AwaitTerminate(r.codes...)
		},
	}
}

// later is the Terminate's headers for a message that many have preceded.
func (w *rdmapWrongdoing) later() conformance.Case {
	clause := "rfc5040-7.1-3"
	if w.headers == "MDR" {
		clause = "rfc5040-7.1-4"
	}
	return conformance.Case{
		Clause: clause, Name: "headers-later-for-" + w.name, Also: []string{"rfc5040-4.8-5", "rfc5040-4.8-7"}, Needs: w.needs,
		Title: fmt.Sprintf("Terminate for %s, after %d other messages: the headers are those of the one that was wrong", w.what, before),
		Run: func(t *conformance.T) {
			var setup conformance.Setup
			if t.HasService() {
				setup = laterReceives(64)
			}
			s := rdmapReading(t, setup)
			manyWrites(s, before)
			readsNothing(t, s, before)
			if t.HasService() {
				sendsBefore(t, s)
			}
			wrong := w.do(t, s)
			a := s.AwaitTerminate()
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(err == nil, "a whole Terminate", "one of %d octets", len(a.Payload))
			p, _ := rdmapTail(t, h)
			if p.m {
				t.Check(p.length == len(wrong.Octets()), fmt.Sprintf("a DDP Segment Length of %d", len(wrong.Octets())), "%d", p.length)
			}
			if p.d {
				t.Check(bytes.Equal(p.ddp, wrong.Header()), fmt.Sprintf("the DDP header %x", wrong.Header()), "%x", p.ddp)
			}
			if p.r && w.headers == "MDR" {
				t.Check(bytes.Equal(p.rdma, wrong.Payload), fmt.Sprintf("the RDMA header %x", wrong.Payload), "%x", p.rdma)
			}
		},
	}
}

// rdmapLaterFields is messages whose opcode or version is wrong, behind many that are
// right.
func rdmapLaterFields() []conformance.Case {
	version := func(m wire.Segment) wire.Segment {
		m.RV, m.Wrong = 2, "a version of RDMAP that does not exist"
		return m
	}
	onQueue := func(m wire.Segment, qn uint32) wire.Segment {
		m.QN, m.Wrong = qn, "the opcode is not for that queue"
		return m
	}
	tagged := wire.Tagged(wire.Send, 0, 0, nil)
	tagged.Wrong = "Sends are not tagged"
	read := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
	var out []conformance.Case
	for _, c := range []struct {
		clause, name, what string
		needs              conformance.Needs
		message            wire.Segment
		code               wire.Code
	}{
		{"rfc5040-7.2-3", "rv-10-in-empty-rdma-write", "an RDMA Write with RV 10b", 0, version(wire.Tagged(wire.Write, 0, 0, nil)), wire.RDMAPVersion},
		{"rfc5040-7.2-8", "rv-10-in-read-request", "a Read Request with RV 10b", 0, version(read), wire.RDMAPVersion},
		{"rfc5040-7.2-3", "rv-10-in-send", "a Send with RV 10b", conformance.NeedService, version(wire.Untagged(wire.Send, conformance.Pattern(8))), wire.RDMAPVersion},
		{"rfc5040-7.2-2", "opcode-3-tagged", "a Send in a tagged message", 0, tagged, wire.RDMAPOpcode},
		{"rfc5040-7.2-2", "opcode-1-on-queue-0", "a Read Request on queue 0", conformance.NeedService, onQueue(read, 0), wire.RDMAPOpcode},
		{"rfc5040-7.2-7", "opcode-3-on-queue-1", "a Send on queue 1", 0, onQueue(wire.Untagged(wire.Send, conformance.Pattern(28)), 1), wire.RDMAPOpcode},
	} {
		out = append(out, conformance.Case{
			Clause: c.clause, Name: c.name + "-later", Needs: c.needs,
			Title: fmt.Sprintf("After %d other messages, %s is refused: Terminate %s", before, c.what, c.code),
			Run: func(t *conformance.T) {
				var setup conformance.Setup
				if t.HasService() {
					setup = laterReceives(64)
				}
				s := rdmapReading(t, setup)
				manyWrites(s, before)
				readsNothing(t, s, before)
				if t.HasService() {
					sendsBefore(t, s)
				}
				s.Post(c.message)
				s.AwaitTerminate(c.code)
			},
		})
	}
	return out
}

// rdmapLaterInvalidations is Sends with Invalidate behind many others.
func rdmapLaterInvalidations() []conformance.Case {
	out := []conformance.Case{{
		Clause: "rfc5040-5.3-9", Name: "again-and-again", Needs: conformance.NeedService, Also: []string{"rfc5040-5.3-8"},
		Title: fmt.Sprintf("After %d Sends, each of three with Invalidate invalidates its STag", before),
		Run: func(t *conformance.T) {
			rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
			setup := laterReceives(16)
			setup.Recvs = append(setup.Recvs, 16, 16)
			s := rdmapSpeaking(t, setup)
			sendsBefore(t, s)
			for range 3 {
				tag := rdmapFast(t, s)
				s.Read(tag.stag, tag.to, 8) // it is open
				s.Post(rdmapInvalidating(wire.SendInvalidate, tag.stag, conformance.Pattern(8)))
				rdmapInvalidated(t, s, tag, conformance.Pattern(8))
			}
		},
	}}
	for _, c := range []struct {
		clause, name, what string
		codes              []wire.Code
		stag               func(t *conformance.T) uint32
	}{
		{"rfc5040-7.2-4", "stag-nobody-gave", "an STag that nobody gave", rdmapNotValid, func(*conformance.T) uint32 { return 0xDEADBE00 }},
		{"rfc5040-7.2-5", "other-domain", "a region of another protection domain", rdmapNotTheirs, func(t *conformance.T) uint32 {
			return uint32(rdmapForeign(t, rdmapOpens...).STag)
		}},
	} {
		out = append(out, conformance.Case{
			Clause: c.clause, Name: c.name + "-later", Needs: conformance.NeedService, Also: []string{"rfc5040-5.3-8"},
			Title: fmt.Sprintf("After %d Sends, a Send with Invalidate of %s is refused: Terminate %s", before, c.what, conformance.Codes(c.codes...)),
			Run: func(t *conformance.T) {
				rdmapLacks(t, !rdmapFeatures(t).Invalidate, "Send with Invalidate")
				s := rdmapSpeaking(t, laterReceives(16))
				sendsBefore(t, s)
				m := rdmapInvalidating(wire.SendInvalidate, c.stag(t), conformance.Pattern(8))
				m.Wrong = "it invalidates " + c.what
				s.Post(m)
				s.AwaitTerminate(c.codes...)
			},
		})
	}
	return out
}

// rdmapFetchesBefore has the target carry out before Reads of 64 bytes.
func rdmapFetchesBefore(t *conformance.T, s *conformance.Stream) {
	for range before {
		f := rdmapFetching(t, s, 64, 64)
		s.Post(f.response(conformance.Pattern(64)))
		f.succeeds(t, s, conformance.Pattern(64))
	}
}

var rdmapLaterRules = []conformance.Case{
	{
		Clause: "rfc5040-6.1-5", Name: "one-more-than-ird-4-again", Needs: conformance.NeedService, Also: []string{"rfc5040-5.2.1-2"},
		Title: fmt.Sprintf("Once %d Reads have been answered, 4 at a time, of 5 more, while the response to the first can't leave, the last is refused, or waits outside", before),
		Run: func(t *conformance.T) {
			const ird = 4
			s := rdmapTakes(t, ird)
			readsNothing(t, s, before)
			rdmapHoldUp(t, s, ird)
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			m.Wrong = "one more than the target's IRD"
			s.Post(m)
			rdmapRefusesOneMore(t, s, before, ird)
		},
	},
	{
		Clause: "rfc5040-6.1-4", Name: "ord-2-again", Needs: conformance.NeedService,
		Title: "A target that may have 2 Reads outstanding, and has had 2 three times, sends no further Read Request before one is answered, and then one and no more",
		Run: func(t *conformance.T) {
			const ord = 2
			s := rdmapSpeaking(t, rdmapShallow(ord))
			for range 3 {
				for _, f := range rdmapBegin(t, s, ord, ord) {
					s.Post(f.response(conformance.Pattern(f.n)))
					f.succeeds(t, s, conformance.Pattern(f.n))
				}
			}
			fetches := rdmapBegin(t, s, ord, 2*ord)
			s.AwaitQuiet(fmt.Sprintf("as %d Reads are outstanding", ord))
			s.Post(fetches[0].response(conformance.Pattern(64)))
			fetches[ord].request(t, s)
			s.AwaitQuiet(fmt.Sprintf("as %d Reads are outstanding again", ord))
		},
	},
	{
		Clause: "rfc5040-5.5-10", Name: "in-order-later", Needs: conformance.NeedService,
		Title: "Nine Reads of different lengths, behind some that have been answered, are answered in their order, though the response to the first can't leave",
		Run: func(t *conformance.T) {
			s := rdmapTakes(t, 16)
			s.AwaitAlive()
			source := rdmapHoldUp(t, s, 9)
			for i := range 9 {
				s.AwaitResponse(0x100+uint32(i), 0, source(i))
			}
		},
	},
	{
		Clause: "rfc5040-5.5-2", Name: "responses-in-order-later", Needs: conformance.NeedService, Also: []string{"rfc5040-5.5-6", "rfc5040-5.5-11"},
		Title: "The responses to nine Reads that are outstanding at a time, behind one that is over, complete them in their order, each with its data",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			first := rdmapFetching(t, s, 64, 64)
			s.Post(first.response(conformance.Pattern(64)))
			first.succeeds(t, s, conformance.Pattern(64))
			var fetches []*rdmapFetch
			var posts []service.Post
			for i := range 9 {
				f := &rdmapFetch{sink: rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite), n: 8 + i}
				fetches, posts = append(fetches, f), append(posts, f.post(0))
			}
			for i, id := range s.Posts(posts...) {
				fetches[i].id = id
			}
			for _, f := range fetches {
				f.request(t, s)
			}
			for i, f := range fetches {
				s.Post(f.response(bytes.Repeat([]byte{byte(i + 1)}, f.n)))
			}
			for i, f := range fetches {
				f.succeeds(t, s, bytes.Repeat([]byte{byte(i + 1)}, f.n))
			}
		},
	},
	{
		Clause: "rfc5040-7.2-1", Name: "response-to-memory-of-no-read-later", Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Reads of the target, a Read Response to memory that is no Read's sink and is not open for the peer is refused, and nothing of it is placed", before),
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			rdmapFetchesBefore(t, s)
			other := rdmapRegion(t, 64, service.LocalWrite)
			f := rdmapFetching(t, s, 64, 64)
			m := wire.Tagged(wire.ReadResponse, uint32(other.STag), uint64(other.TO), conformance.Pattern(64))
			m.Wrong = "it goes to other memory than the Read's"
			s.Post(m)
			s.AwaitTeardown()
			rdmapHolds(t, other.MR, 0, service.Pattern(rdmapSeed, 64), "that no octet of that memory changes")
			f.fails(t, s)
		},
	},
}
