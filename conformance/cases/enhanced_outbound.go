package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// responderOutbound returns the cases on how many Reads a Responder has
// outstanding (RFC 6581 §9.1, RFC 5040 §6.1).
func responderOutbound() []conformance.Case {
	var cases []conformance.Case
	for _, ird := range []int{0, 1, 3, 4, 5, mostDepth, wire.NoDepth} {
		limit := min(ird, told.ord)
		c := conformance.Case{
			Clause: "rfc6581-9.1-2", Name: fmt.Sprintf("initiator-ird-%d-of-4", ird),
			Also:  []string{"rfc5040-6.1-4"},
			Title: fmt.Sprintf("A Responder whose ORD is 4 has no more than %d Reads outstanding with an Initiator whose IRD is %d", limit, ird),
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s, _ := settle(t, told, depths{ird, 16})
				readsWithin(t, s, limit)
			},
		}
		if ird == wire.NoDepth {
			c.Clause, c.Name = "rfc6581-9.1-10", "ord-kept"
			c.Also = []string{"rfc5040-6.1-3", "rfc5040-6.1-4"}
			c.Title = "A Responder whose ORD is 4 has 4 Reads outstanding, and no more, with an Initiator whose IRD is 0x3FFF"
			c.Run = func(t *conformance.T) {
				s, _ := settle(t, told, depths{ird, 16})
				readsExactly(t, s, limit)
			}
		}
		cases = append(cases, c)
	}
	return append(cases, conformance.Case{
		Clause: "rfc5040-6.1-3", Name: "responder",
		Title: "A Responder with an ORD of 4, of an Initiator whose IRD is 4, has 4 Reads outstanding",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s, _ := settle(t, told, depths{4, 16})
			readsExactly(t, s, 4)
		},
	})
}

// initiatorOutbound returns the cases on how many Reads an Initiator has
// outstanding.
func initiatorOutbound() []conformance.Case {
	var cases []conformance.Case
	for _, ird := range []int{0, 1, 3, 4, 5, mostDepth} {
		limit := min(ird, told.ord)
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.1-4", Name: fmt.Sprintf("responder-ird-%d-of-4", ird),
			Also:  []string{"rfc5040-6.1-4"},
			Title: fmt.Sprintf("An Initiator whose ORD is 4 has no more than %d Reads outstanding with a Responder whose IRD is %d", limit, ird),
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s, _ := settle(t, told, depths{ird, 4})
				readsWithin(t, s, limit)
			},
		})
	}
	return append(cases, conformance.Case{
		Clause: "rfc6581-9.1-9", Name: "ord-kept", Also: []string{"rfc5040-6.1-3", "rfc5040-6.1-4"},
		Title: "An Initiator whose ORD is 4 has 4 Reads outstanding, and no more, with a Responder whose IRD is 0x3FFF",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s, _ := settle(t, told, depths{wire.NoDepth, 4})
			readsExactly(t, s, 4)
		},
	}, conformance.Case{
		Clause: "rfc5040-6.1-3", Name: "initiator",
		Title: "An Initiator with an ORD of 4, of a Responder whose IRD is 4, has 4 Reads outstanding",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s, _ := settle(t, told, depths{4, 4})
			readsExactly(t, s, 4)
		},
	}, conformance.Case{
		Clause: "rfc6581-9.1-9", Name: "ulp-depths",
		Title: "An Initiator whose program leaves IRD and ORD to itself asks for 0x3FFF and 0x3FFF, and keeps its own",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			if !t.Service().Hello().Features.ULPDepths {
				t.Skip("the target's programs can't leave IRD and ORD to themselves")
			}
			told.offers(t)
			c, request := requestOf(t, conformance.Setup{
				Start: told.start(), Connect: func(a *service.ConnectArgs) { a.ULPDepths = true },
			})
			e := blockOf(t, request)
			t.Check(e.IRD == wire.NoDepth && e.ORD == wire.NoDepth, "IRD and ORD of 16383 (0x3FFF)", "%s", e)
			reply := block(wire.ReplyKey, depths{wire.NoDepth, wire.NoDepth}.into(answerOf(e)))
			t.Try(c.SendFrame(reply, ""), "sending the Reply")
			s, params := started(t, c, request, reply)
			passReady(t, s)
			got := depths{int(params.IRD), int(params.ORD)}
			t.Check(got == told, told.String(), "%s", got)
		},
	})
}

// readLen is how many bytes the Reads of the target have.
const readLen = 4

// postReads has the target's program post n Reads.
func postReads(t *conformance.T, s *conformance.Stream, n int) error {
	sink, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: readLen * uint64(n), Access: []string{service.LocalWrite, service.RemoteWrite}})
	t.Try(err, "opening a sink for the target's Reads")
	posts := make([]service.Post, n)
	for i := range posts {
		posts[i] = service.Post{
			Op: service.OpRead, SGL: []service.Piece{sink.Piece(uint64(i*readLen), readLen)},
			Remote: service.Remote{STag: 0x5EED, TO: service.Uint64(i * readLen)},
		}
	}
	t.Note("the target's program posts %d Reads", n)
	_, err = t.Service().Post(t.Context(), s.QP, posts...)
	return err
}

// A reading is what the target has asked for and not got yet.
type reading struct {
	t    *conformance.T
	s    *conformance.Stream
	wait []wire.ReadHeader
	seen int
}

// probes are told from answers to other Reads by their sink.
const probeSTag = 0x9806E000

// gather takes the Read Requests that the target sends until it answers a Read of
// the tester's.
func (r *reading) gather() {
	r.s.Post(conformance.ReadRequest(probeSTag, 0, 0, 0, 0))
	for {
		a, err := r.s.Next(r.t.Timeout())
		r.t.Try(err, "waiting for the answer to a Read of no octets")
		if a.Opcode == wire.ReadResponse && a.STag == probeSTag {
			return
		}
		r.take(a)
	}
}

func (r *reading) take(a wire.Arrival) {
	h, err := wire.ParseReadHeader(a.Payload)
	r.t.Check(a.Opcode == wire.ReadRequest && err == nil, "a Read Request", "%s", a.Segment)
	r.wait = append(r.wait, h)
	r.seen++
}

// answer answers the oldest Read.
func (r *reading) answer() {
	h := r.wait[0]
	r.wait = r.wait[1:]
	r.s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(int(h.Length))))
}

// within fails the case if more than limit Reads wait.
func (r *reading) within(limit int) {
	r.t.Check(len(r.wait) <= limit, fmt.Sprintf("at most %d Reads outstanding", limit), "%d", len(r.wait))
}

// readsWithin has the target's program post more Reads than may be outstanding,
// and makes sure that there are never more, until all are answered.
func readsWithin(t *conformance.T, s *conformance.Stream, limit int) {
	n := 2*limit + 2
	err := postReads(t, s, n)
	if limit == 0 {
		noReads(t, s)
		return
	}
	t.Try(err, "posting Reads")
	r := &reading{t: t, s: s}
	for r.gather(); r.seen < n || len(r.wait) > 0; r.gather() {
		r.within(limit)
		if len(r.wait) == 0 {
			r.take(s.Await(wire.ReadRequest))
		}
		r.answer()
	}
}

// readsExactly is readsWithin that wants as many outstanding as may be.
func readsExactly(t *conformance.T, s *conformance.Stream, limit int) {
	t.Try(postReads(t, s, 2*limit+2), "posting Reads")
	r := &reading{t: t, s: s}
	for len(r.wait) < limit {
		r.take(s.Await(wire.ReadRequest))
	}
	r.gather()
	r.within(limit)
	for range limit {
		r.answer()
		r.take(s.Await(wire.ReadRequest))
	}
	r.gather()
	r.within(limit)
}

// noReads makes sure that the target sends no Read Request, whatever else it does.
func noReads(t *conformance.T, s *conformance.Stream) {
	s.Post(conformance.ReadRequest(probeSTag, 0, 0, 0, 0))
	a, err := s.Next(t.Timeout())
	if over(err) {
		return
	}
	t.Try(err, "waiting for the answer to a Read of no octets")
	t.Check(a.Opcode != wire.ReadRequest, "no Read Request, as the peer takes none", "%s", a.Segment)
}
