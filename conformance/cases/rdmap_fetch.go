package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A rdmapFetch is a Read of the target, of the tester's memory.
type rdmapFetch struct {
	sink *service.Region
	n    int
	id   uint64 // of the request
	head wire.ReadHeader
}

// rdmapRemote names byte off of the tester's memory.
func rdmapRemote(off uint64) service.Remote {
	return service.Remote{STag: rdmapTheirSTag, TO: service.Uint64(rdmapTheirTO + off)}
}

// rdmapFetching has the target read n bytes into the beginning of memory of
// size bytes, and returns the Read when its Request is there.
func rdmapFetching(t *conformance.T, s *conformance.Stream, size, n int) *rdmapFetch {
	f := rdmapPostFetch(t, s, size, n)
	f.request(t, s)
	return f
}

// rdmapPostFetch has the target's program post a Read. The right to write to the sink
// locally is enough, unless the RNIC wants the peer's right too.
func rdmapPostFetch(t *conformance.T, s *conformance.Stream, size, n int) *rdmapFetch {
	for _, access := range [][]string{{service.LocalWrite}, {service.LocalWrite, service.RemoteWrite}} {
		f := &rdmapFetch{sink: rdmapRegion(t, size, access...), n: n}
		t.Note("the target's program posts a Read of %d octets", n)
		ids, err := t.Service().Post(t.Context(), s.QP, f.post(0))
		if service.CodeOf(err) == service.CodeRefused {
			continue
		}
		t.Try(err, "posting a Read")
		f.id = ids[0]
		return f
	}
	t.Inconclusive("the target's RNIC refuses to read into its own memory")
	return nil
}

// post is the request for the Read, from byte from of the tester's memory on.
func (f *rdmapFetch) post(from uint64) service.Post {
	return service.Post{Op: service.OpRead, SGL: []service.Piece{f.sink.Piece(0, uint32(f.n))}, Remote: rdmapRemote(from)}
}

// request takes the Read Request, which has to be the next message.
func (f *rdmapFetch) request(t *conformance.T, s *conformance.Stream) {
	h, err := wire.ParseReadHeader(s.AwaitMessage(wire.ReadRequest).Payload)
	t.Check(err == nil, "an RDMA Read Request Header", "less than 28 octets")
	f.head = h
}

// response is a Read Response to it, in one segment.
func (f *rdmapFetch) response(data []byte) wire.Segment {
	return wire.Tagged(wire.ReadResponse, f.head.SinkSTag, f.head.SinkTO, data)
}

// succeeds makes sure that the Read completes, and that the data are where they
// belong.
func (f *rdmapFetch) succeeds(t *conformance.T, s *conformance.Stream, data []byte) {
	c := s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
	t.Check(c.ID == f.id, fmt.Sprintf("the completion of request %d, the Read", f.id), "that of request %d, %s", c.ID, c.Op)
	rdmapHolds(t, f.sink.MR, 0, data, "the data of the Read Response in the sink")
}

// fails makes sure that the Read completes, now that the stream has ended, and not
// with success.
func (f *rdmapFetch) fails(t *conformance.T, s *conformance.Stream) {
	t.Try(s.CloseWrite(), "closing the tester's half")
	c := rdmapCompletion(t, s, service.SendQueue)
	t.Check(c.ID == f.id && c.Status != service.StatusSuccess, "that the Read completes with an error", "request %d completing with status %s", c.ID, c.Status)
}

// rdmapCompletion returns the next completion of a queue of the target, whatever its
// status.
func rdmapCompletion(t *conformance.T, s *conformance.Stream, queue string) *service.Completion {
	c, err := t.Service().Completion(t.Context(), s.QP, queue, t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail("a completion of the target's "+queue+" queue", "none")
	}
	t.Try(err, "waiting for a completion of the target")
	t.Note("the target completes %s: %s, %d octets", c.Op, c.Status, c.Length)
	return c
}

// rdmapFetches is the cases on the target as the Data Sink of Reads (RFC 5040 §5.2).
func rdmapFetches() []conformance.Case {
	return slices.Concat(rdmapFetchFields(), rdmapFetchPieces(), rdmapFetchRules)
}

// rdmapFetchFields is the fields of the Read Requests that the target sends.
func rdmapFetchFields() []conformance.Case {
	var out []conformance.Case
	for _, n := range []int{0, 1, 64, 65536, 100000} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-4.4-1", Name: fmt.Sprintf("request-for-%d-octets", n), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-5.2.1-9"},
			Title: fmt.Sprintf("The Read Request for %d octets names the source and the size that the program asked for", n),
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, conformance.Setup{})
				f := rdmapFetching(t, s, max(n, 1), n)
				t.Check(f.head.Length == uint32(n), fmt.Sprintf("a size of %d", n), "%d", f.head.Length)
				if n > 0 {
					t.Check(f.head.SourceSTag == rdmapTheirSTag && f.head.SourceTO == rdmapTheirTO,
						fmt.Sprintf("source STag 0x%08x TO 0x%x", rdmapTheirSTag, uint64(rdmapTheirTO)), "STag 0x%08x TO 0x%x", f.head.SourceSTag, f.head.SourceTO)
				}
			},
		})
	}
	return out
}

// rdmapFetchPieces is Read Responses that come in segments of all sizes.
func rdmapFetchPieces() []conformance.Case {
	var out []conformance.Case
	for _, p := range []struct{ n, segment int }{{0, 1}, {1, 1}, {7, 100}, {64, 1}, {64, 63}, {64, 64}, {1000, 333}, {65536, 1400}, {65537, 32000}, {300000, 60000}} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.2.2-3", Name: fmt.Sprintf("%d-octets-in-segments-of-%d", p.n, p.segment), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-5.5-11"},
			Title: fmt.Sprintf("A Read Response of %d octets in segments of %d completes the Read, with the data in the sink", p.n, p.segment),
			Run: func(t *conformance.T) {
				s := rdmapSpeaking(t, conformance.Setup{})
				f := rdmapFetching(t, s, max(p.n, 1), p.n)
				data := conformance.Pattern(p.n)
				s.Post(conformance.Segments(f.response(data), p.segment)...)
				f.succeeds(t, s, data)
				s.AwaitAlive()
			},
		})
	}
	return out
}

var rdmapFetchRules = []conformance.Case{
	{
		Clause: "rfc5040-5.2.2-3", Name: "part-of-a-region", Needs: conformance.NeedService,
		Title: "The data of a Read Response go into the part of the region that the Read is for, and nowhere else",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapFetching(t, s, 128, 64)
			data := conformance.Pattern(64)
			s.Post(f.response(data))
			f.succeeds(t, s, data)
			rdmapHolds(t, f.sink.MR, 64, service.Pattern(rdmapSeed, 128)[64:], "that the rest of the region stays as it was")
		},
	},
	{
		Clause: "rfc5040-5.5-9", Name: "not-before-the-response", Needs: conformance.NeedService,
		Title: "A Read has not completed while its response has not come",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapFetching(t, s, 64, 64)
			s.AwaitAlive()
			s.AwaitNoCompletion(service.SendQueue, "as the Read has no response yet")
			s.Post(f.response(conformance.Pattern(64)))
			f.succeeds(t, s, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-5.5-9", Name: "not-before-the-last-segment", Needs: conformance.NeedService,
		Title: "A Read has not completed while the last octet of its response has not come",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapFetching(t, s, 64, 64)
			parts := conformance.Segments(f.response(conformance.Pattern(64)), 63)
			s.Post(parts[0])
			rdmapNoCompletion(t, s, service.SendQueue, "as the Read's response is not whole")
			s.Post(parts[1])
			f.succeeds(t, s, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-5.2.1-6", Name: "requests-in-order", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.2.1-8", "rfc5040-5.2-1"},
		Title: "Four Reads of four places are four Read Requests, in the order in which they were posted",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			rdmapFour(t, s)
		},
	},
	{
		Clause: "rfc5040-5.5-2", Name: "responses-in-order", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.5-6", "rfc5040-5.5-11"},
		Title: "The responses to four Reads complete them in their order, each with its data",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			fetches := rdmapFour(t, s)
			for i, f := range fetches {
				s.Post(f.response(bytes.Repeat([]byte{byte(i + 1)}, f.n)))
			}
			for i, f := range fetches {
				f.succeeds(t, s, bytes.Repeat([]byte{byte(i + 1)}, f.n))
			}
		},
	},
	{
		Clause: "rfc5040-5.5-2", Name: "sink-is-there-when-a-send-is", Needs: conformance.NeedService,
		Title: "When the program gets a Send that follows a Read Response, the response's data are in the sink",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			f := rdmapFetching(t, s, 100000, 100000)
			data := conformance.Pattern(100000)
			s.Post(conformance.Segments(f.response(data), 30000)...)
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
			rdmapReceived(t, s, conformance.Pattern(8))
			rdmapHolds(t, f.sink.MR, 0, data, "the data of the Read Response in the sink")
		},
	},
}

// rdmapNoCompletion makes sure that for a while no completion comes.
func rdmapNoCompletion(t *conformance.T, s *conformance.Stream, queue, why string) {
	c, err := t.Service().Completion(t.Context(), s.QP, queue, t.Quiet())
	if service.CodeOf(err) == service.CodeTimeout {
		return
	}
	t.Try(err, "looking for a completion of the target")
	t.Fail("no completion of the target's "+queue+" queue, "+why, "%s with status %s", c.Op, c.Status)
}

// rdmapFour has the target post four Reads at once, takes their Requests, and makes
// sure of their order.
func rdmapFour(t *conformance.T, s *conformance.Stream) []*rdmapFetch {
	var fetches []*rdmapFetch
	var posts []service.Post
	for i := range 4 {
		f := &rdmapFetch{sink: rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite), n: 16 * (i + 1)}
		fetches, posts = append(fetches, f), append(posts, f.post(uint64(i)*0x1000))
	}
	ids := s.Posts(posts...)
	for i, f := range fetches {
		f.id = ids[i]
		f.request(t, s)
		from, n := rdmapTheirTO+uint64(i)*0x1000, uint32(f.n)
		t.Check(f.head.SourceTO == from && f.head.Length == n,
			fmt.Sprintf("the Read of %d octets at TO 0x%x", n, from), "that of %d octets at TO 0x%x", f.head.Length, f.head.SourceTO)
	}
	return fetches
}
