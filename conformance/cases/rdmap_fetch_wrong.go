package cases

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapFetchesRefused is the cases on Read Responses that are wrong.
func rdmapFetchesRefused() []conformance.Case {
	return slices.Concat(rdmapBadResponses(), rdmapOtherResponses(), rdmapStrayResponses)
}

// rdmapBadResponses is Read Responses for memory that they must not reach: whatever
// RDMAP compares, DDP has to refuse them.
func rdmapBadResponses() []conformance.Case {
	var out []conformance.Case
	for _, r := range []struct {
		name, title string
		spoil       func(t *conformance.T, m *wire.Segment) // a response of 64 bytes to a sink of 64
	}{
		{"stag-nobody-gave", "to an STag that nobody gave", func(_ *conformance.T, m *wire.Segment) { m.STag = 0xDEADBE00 }},
		{"one-octet-beyond", "with one octet more than the region of the sink has", func(_ *conformance.T, m *wire.Segment) { m.Payload = conformance.Pattern(65) }},
		{"one-octet-before", "that begins one octet before the sink", func(_ *conformance.T, m *wire.Segment) { m.TO-- }},
		{"one-octet-behind", "that begins one octet behind the beginning of the sink, and ends beyond it", func(_ *conformance.T, m *wire.Segment) { m.TO++ }},
		{"to-wraps", "whose TO wraps", func(_ *conformance.T, m *wire.Segment) { m.TO = ^uint64(0) - 31 }},
		{"other-domain", "to a region of another protection domain", func(t *conformance.T, m *wire.Segment) {
			r := rdmapForeign(t, service.LocalWrite, service.RemoteWrite)
			m.STag, m.TO = uint32(r.STag), uint64(r.TO)
		}},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-7.2-1", Name: "response-" + r.name, Needs: conformance.NeedService,
			Title: "A Read Response " + r.title + " is refused, and the Read fails",
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, conformance.Setup{})
				f := rdmapFetching(t, s, 64, 64)
				m := f.response(conformance.Pattern(64))
				r.spoil(t, &m)
				m.Wrong = "a Read Response " + r.title
				s.Post(m)
				s.AwaitTeardown()
				f.fails(t, s)
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5040-7.2-1", Name: "response-to-memory-of-no-read", Needs: conformance.NeedService,
		Title: "A Read Response to memory that is no Read's sink and is not open for the peer is refused, and nothing of it is placed",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			other := rdmapRegion(t, 64, service.LocalWrite)
			f := rdmapFetching(t, s, 64, 64)
			m := wire.Tagged(wire.ReadResponse, uint32(other.STag), uint64(other.TO), conformance.Pattern(64))
			m.Wrong = "it goes to other memory than the Read's"
			s.Post(m)
			s.AwaitTeardown()
			rdmapHolds(t, other.MR, 0, service.Pattern(rdmapSeed, 64), "that no octet of that memory changes")
			f.fails(t, s)
		},
	}, conformance.Case{
		Clause: "rfc5040-7.2-1", Name: "write-to-the-sink-of-a-read", Needs: conformance.NeedService,
		Title: "An RDMA Write to a Read's sink, which is not open for the peer's Writes, is refused, and nothing of it is placed",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapSecretly(t, s)
			m := wire.Tagged(wire.Write, f.head.SinkSTag, f.head.SinkTO, conformance.Pattern(64))
			m.Wrong = "the sink is for the response of the Read"
			s.Post(m)
			s.AwaitTerminate(wire.DDPNotAssociated, wire.DDPInvalidSTag, wire.RDMAPRights)
			rdmapHolds(t, f.sink.MR, 0, service.Pattern(rdmapSeed, 64), "that no octet of the sink changes")
			f.fails(t, s)
		},
	}, conformance.Case{
		Clause: "rfc5040-5.2.1-11", Name: "read-of-the-sink-of-a-read", Needs: conformance.NeedService,
		Title: "A Read of a Read's sink, which is not open for the peer's Reads, is refused",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapSecretly(t, s)
			m := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 64, f.head.SinkSTag, f.head.SinkTO)
			m.Wrong = "the sink is for the response of the Read"
			s.Post(m)
			s.AwaitTerminate(wire.RDMAPRights, wire.RDMAPInvalidSTag, wire.RDMAPNotAssociated)
		},
	}, conformance.Case{
		Clause: "rfc5040-7.2-1", Name: "write-to-the-sink-after-the-read", Needs: conformance.NeedService,
		Title: "Once a Read is over, an RDMA Write to the STag that its Request has shown is refused",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapSecretly(t, s)
			s.Post(f.response(conformance.Pattern(64)))
			f.succeeds(t, s, conformance.Pattern(64))
			m := wire.Tagged(wire.Write, f.head.SinkSTag, f.head.SinkTO, make([]byte, 64))
			m.Wrong = "the sink was for the response of the Read"
			s.Post(m)
			s.AwaitTerminate(wire.DDPNotAssociated, wire.DDPInvalidSTag, wire.RDMAPRights)
			rdmapHolds(t, f.sink.MR, 0, conformance.Pattern(64), "that no octet of the sink changes")
		},
	})
}

// rdmapSecretly has the target read into memory that it has not opened for the peer.
// It skips the case if the RNIC wants that.
func rdmapSecretly(t *conformance.T, s *conformance.Stream) *rdmapFetch {
	f := &rdmapFetch{sink: rdmapRegion(t, 64, service.LocalWrite), n: 64}
	ids, err := t.Service().Post(t.Context(), s.QP, f.post(0))
	if service.CodeOf(err) == service.CodeRefused {
		t.Skip("the target reads only into memory that is open for the peer's Writes")
	}
	t.Try(err, "posting a Read")
	f.id = ids[0]
	f.request(t, s)
	return f
}

// rdmapOtherResponses is Read Responses that fit their memory, and not the Read. The
// sink may compare them with the Request (RFC 5040 §5.2.2), or take them as they are.
// But one message is the response: after it, the Read is over.
func rdmapOtherResponses() []conformance.Case {
	var out []conformance.Case
	for _, r := range []struct {
		name, title string
		spoil       func(m wire.Segment) []wire.Segment // a response of 64 bytes to a sink of 128
	}{
		{"short", "lacks the last octet", func(m wire.Segment) []wire.Segment {
			m.Payload = m.Payload[:63]
			return []wire.Segment{m}
		}},
		{"empty", "is empty", func(m wire.Segment) []wire.Segment {
			m.Payload = nil
			return []wire.Segment{m}
		}},
		{"long", "has one octet more than was asked for", func(m wire.Segment) []wire.Segment {
			m.Payload = conformance.Pattern(65)
			return []wire.Segment{m}
		}},
		{"aside", "goes to a TO 8 octets behind the right one", func(m wire.Segment) []wire.Segment {
			m.TO += 8
			return []wire.Segment{m}
		}},
		{"with-a-gap", "leaves out 8 octets between its segments", func(m wire.Segment) []wire.Segment {
			parts := conformance.Segments(m, 32)
			parts[1].TO += 8
			return parts
		}},
		{"overlapping", "has segments that overlap", func(m wire.Segment) []wire.Segment {
			parts := conformance.Segments(m, 32)
			parts[1].TO -= 8
			return parts
		}},
		{"backwards", "has its second half first", func(m wire.Segment) []wire.Segment {
			parts := conformance.Segments(m, 32)
			parts[0].TO, parts[1].TO = parts[1].TO, parts[0].TO
			return parts
		}},
		{"early-end", "has the L flag on its first half already", func(m wire.Segment) []wire.Segment {
			m.Payload = m.Payload[:32]
			return []wire.Segment{m}
		}},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.2-1", Name: "response-" + r.name, Needs: conformance.NeedService,
			Title: "A Read Response that " + r.title + " ends the Read: with an error, or as it is",
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, conformance.Setup{})
				f := rdmapFetching(t, s, 128, 64)
				parts := r.spoil(f.response(conformance.Pattern(64)))
				parts[len(parts)-1].Wrong = "the response " + r.title
				s.Post(parts...)
				if _, ended := rdmapEnds(t, s, service.SendQueue); !ended {
					s.AwaitAlive()
				}
				rdmapHolds(t, f.sink.MR, 72, service.Pattern(rdmapSeed, 128)[72:], "that memory beyond what was sent stays as it was")
			},
		})
	}
	return out
}

// rdmapEnds waits until a request completes, as it has to: either while the stream
// continues, or because it has ended for an error, which is told by ended.
func rdmapEnds(t *conformance.T, s *conformance.Stream, queue string) (c *service.Completion, ended bool) {
	for deadline := time.Now().Add(t.Timeout()); time.Now().Before(deadline); {
		a, err := s.Answer(t.Quiet())
		if !errors.Is(err, wire.ErrSilence) {
			t.Check(err != nil || a.Opcode == wire.Terminate, "that the stream goes on, or ends with a Terminate", "%s", a.Segment)
			t.Try(s.CloseWrite(), "closing the tester's half")
			return rdmapCompletion(t, s, queue), true
		}
		c, err := t.Service().Completion(t.Context(), s.QP, queue, 0)
		if service.CodeOf(err) == service.CodeTimeout {
			continue
		}
		t.Try(err, "waiting for a completion of the target")
		t.Note("the target completes %s: %s, %d octets", c.Op, c.Status, c.Length)
		return c, c.Status != service.StatusSuccess
	}
	t.Fail("that the request completes, or that the stream ends", "neither")
	return nil, true
}

// Read Responses to no Read.
var rdmapStrayResponses = []conformance.Case{
	{
		Clause: "rfc5040-5.2-1", Name: "response-without-a-request-empty",
		Title: "An empty Read Response to no Read is refused: a Terminate, for which no code is settled",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			m := wire.Tagged(wire.ReadResponse, 0, 0, nil)
			m.Wrong = "there was no Read Request"
			s.Post(m)
			s.AwaitTerminate()
		},
	},
	{
		Clause: "rfc5040-5.2-1", Name: "response-without-a-request-nobodys-stag",
		Title: "A Read Response to no Read, for an STag that nobody gave, is refused",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			m := wire.Tagged(wire.ReadResponse, 0xDEADBE00, 0, conformance.Pattern(8))
			m.Wrong = "there was no Read Request"
			s.Post(m)
			s.AwaitTerminate()
		},
	},
	{
		Clause: "rfc5040-5.2-1", Name: "response-without-a-request-to-a-buffer", Needs: conformance.NeedBuffer,
		Title: "A Read Response to no Read, for a buffer that is open for Writes, is refused",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := s.Buffer(64)
			m := wire.Tagged(wire.ReadResponse, b.STag, b.TO, conformance.Pattern(64))
			m.Wrong = "there was no Read Request"
			s.Post(m)
			s.AwaitTerminate()
		},
	},
	{
		Clause: "rfc5040-5.2-1", Name: "second-response", Needs: conformance.NeedService,
		Title: "A second Read Response to a Read is refused, and the sink stays as it is",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapSecretly(t, s)
			s.Post(f.response(conformance.Pattern(64)))
			f.succeeds(t, s, conformance.Pattern(64))
			m := f.response(make([]byte, 64))
			m.Wrong = "the Read has its response already"
			s.Post(m)
			s.AwaitTerminate()
		},
	},
	{
		Clause: "rfc5040-5.5-6", Name: "responses-in-the-wrong-order", Needs: conformance.NeedService,
		Title: "The response to the second of two Reads comes first: either that is refused, or the first Read completes first",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			fetches := rdmapFour(t, s)
			m := fetches[1].response(conformance.Pattern(fetches[1].n))
			m.Wrong = "the Read before it has no response yet"
			s.Post(m)
			if c, ended := rdmapEnds(t, s, service.SendQueue); !ended {
				t.Check(c.ID == fetches[0].id, fmt.Sprintf("that request %d completes first", fetches[0].id), "request %d", c.ID)
			}
		},
	},
}
