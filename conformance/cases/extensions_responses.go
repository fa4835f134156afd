package cases

import (
	"errors"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ownAtomicResponses: what the target makes of the responses to its own atomics.
func ownAtomicResponses() []conformance.Case {
	var out []conformance.Case
	add := func(clause, name, title string, also []string, run func(t *conformance.T, s *conformance.Stream)) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name, Title: title, Also: also, Needs: conformance.NeedService,
			Run: func(t *conformance.T) { run(t, openOwnAtomics(t, conformance.Setup{})) },
		})
	}
	add("rfc7306-5.2.2-5", "response-is-delivered", "The Atomic Response completes the target's atomic, with the original value in it", nil,
		func(t *conformance.T, s *conformance.Stream) {
			s.Posts(ownFetchAdd(0))
			_, h := awaitAtomicRequest(t, s)
			s.Post(atomicResponse(h.RequestID, 0x8877665544332211))
			completesWith(t, s, 0x8877665544332211)
		})
	add("rfc7306-5.2.2-5", "responses-are-delivered-in-order", "The Atomic Responses to several atomics complete each of them, in order, with its own value", nil,
		func(t *conformance.T, s *conformance.Stream) {
			s.Posts(ownFetchAdd(0), service.Post{Op: service.OpCmpSwap, Remote: there(8)}, ownFetchAdd(16))
			for i := range uint64(3) {
				_, h := awaitAtomicRequest(t, s)
				s.Post(atomicResponse(h.RequestID, 0x100+i))
			}
			for i := range uint64(3) {
				completesWith(t, s, 0x100+i)
			}
		})
	add("rfc7306-5.4-5", "not-complete-before-the-response", "The target's atomic is not Complete, nor is the Send behind it, before the Atomic Response is there",
		[]string{"rfc7306-5.4-1"},
		func(t *conformance.T, s *conformance.Stream) {
			s.Posts(ownFetchAdd(0), service.Post{Op: service.OpSend, Data: service.Hex{1}})
			_, h := awaitAtomicRequest(t, s)
			s.Await(wire.Send)
			s.AwaitAlive()
			s.AwaitNoCompletion(service.SendQueue, "as the atomic has no response yet")
			s.Post(atomicResponse(h.RequestID, 3))
			completesWith(t, s, 3)
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
		})
	add("rfc7306-5.2.2-4", "a-buffer-for-each-response", "The target has a buffer on queue 3 for the response to each atomic that it has outstanding: all may come at once", nil,
		func(t *conformance.T, s *conformance.Stream) {
			const n = 8
			var posts []service.Post
			for i := range uint64(n) {
				posts = append(posts, ownFetchAdd(8*i))
			}
			s.Posts(posts...)
			var responses []wire.Segment
			for i := range uint64(n) {
				_, h := awaitAtomicRequest(t, s)
				responses = append(responses, atomicResponse(h.RequestID, i))
			}
			s.Post(responses...)
			for i := range uint64(n) {
				completesWith(t, s, i)
			}
		})
	add("rfc7306-5.2.2-1", "response-in-two-segments", "An Atomic Response in two segments is taken as one message", []string{"rfc5041-5.2-5"},
		func(t *conformance.T, s *conformance.Stream) {
			s.Posts(ownFetchAdd(0))
			_, h := awaitAtomicRequest(t, s)
			s.Post(conformance.Segments(atomicResponse(h.RequestID, 0x1122334455667788), 6)...)
			completesWith(t, s, 0x1122334455667788)
		})
	add("rfc7306-4.1-1", "invalidate-stag-of-a-response", "The Invalidate STag and the reserved bits of an Atomic Response are ignored", nil,
		func(t *conformance.T, s *conformance.Stream) {
			s.Posts(ownFetchAdd(0))
			_, h := awaitAtomicRequest(t, s)
			r := atomicResponse(h.RequestID, 5)
			r.Invalidate, r.Reserved, r.RDMAPReserved = 0x12345678, 0xF, 3
			s.Post(alien(r, "what is to be ignored is not 0"))
			completesWith(t, s, 5)
		})
	add("rfc7306-5.4-5", "reads-and-atomics-complete-in-order", "Reads and atomics of the target complete in the order posted, each with its own response", []string{"rfc5040-5.5-6"},
		func(t *conformance.T, s *conformance.Stream) {
			sink := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
			s.Posts(ownFetchAdd(0), service.Post{Op: service.OpRead, Remote: there(64), SGL: []service.Piece{{MR: sink.MR, Length: 8}}}, ownFetchAdd(8))
			_, h := awaitAtomicRequest(t, s)
			s.Post(atomicResponse(h.RequestID, 1))
			r, err := wire.ParseReadHeader(s.Await(wire.ReadRequest).Payload)
			t.Try(err, "taking the Read Request apart")
			s.Post(wire.Tagged(wire.ReadResponse, r.SinkSTag, r.SinkTO, conformance.Pattern(8)))
			_, h = awaitAtomicRequest(t, s)
			s.Post(atomicResponse(h.RequestID, 2))
			completesWith(t, s, 1)
			c := s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			t.Check(c.Op == service.OpRead, "that the Read completes second", "%s", c.Op)
			completesWith(t, s, 2)
		})
	return out
}

// completesWith waits for an atomic of the target to complete with an original
// value.
func completesWith(t *conformance.T, s *conformance.Stream, original uint64) {
	c := s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
	expected := fmt.Sprintf("that an atomic completes with the original value 0x%x", original)
	t.Check(c.Original != nil, expected, "%s without one", c.Op)
	t.Check(uint64(*c.Original) == original, expected, "%s with 0x%x", c.Op, uint64(*c.Original))
}

// badAtomicResponses: responses that nobody has asked for, or that are not whole.
func badAtomicResponses() []conformance.Case {
	var out []conformance.Case
	add := func(clause, name, title string, codes []wire.Code, bad func(h wire.AtomicHeader) wire.Segment) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name, Title: title, Also: []string{"rfc7306-8.1-2"}, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openOwnAtomics(t, conformance.Setup{Recvs: []uint32{64}})
				s.Posts(ownFetchAdd(0))
				_, h := awaitAtomicRequest(t, s)
				s.Post(bad(h))
				s.AwaitTerminate(codes...)
				c := endOf(t, s, service.SendQueue)
				t.Check(c.Status != service.StatusSuccess, "that the atomic fails", "that it completes with success")
			},
		})
	}
	cut := func(r wire.Segment, n int) wire.Segment {
		r.Payload = append(r.Payload, make([]byte, 64)...)[:n]
		return alien(r, fmt.Sprintf("its header has %d octets", n))
	}
	for _, n := range []int{0, 4, 11} {
		add("rfc7306-8.2-1", fmt.Sprintf("response-of-%d-octets", n),
			fmt.Sprintf("An Atomic Response of %d octets, where its header has 12, is refused by a Terminate, and completes nothing", n), nil,
			func(h wire.AtomicHeader) wire.Segment { return cut(atomicResponse(h.RequestID, 1), n) })
	}
	add("rfc7306-8.1-2", "response-to-another-request", "An Atomic Response to a Request Identifier that is not outstanding is refused by a Terminate, and completes nothing", nil,
		func(h wire.AtomicHeader) wire.Segment {
			return alien(atomicResponse(h.RequestID+0x40000000, 1), "no atomic with that identifier is outstanding")
		})
	for _, rv := range []uint8{2, 3} {
		add("rfc7306-8.2-3", fmt.Sprintf("response-of-version-%d", rv), fmt.Sprintf("An Atomic Response of RDMA version %d is refused: Terminate 0x0205", rv),
			[]wire.Code{wire.RDMAPVersion},
			func(h wire.AtomicHeader) wire.Segment {
				r := atomicResponse(h.RequestID, 1)
				r.RV = rv
				return alien(r, fmt.Sprintf("RV is %d", rv))
			})
	}
	for qn := range uint32(3) {
		add("rfc7306-8.2-2", fmt.Sprintf("response-on-queue-%d", qn), fmt.Sprintf("An Atomic Response on queue %d is refused by a Terminate, and completes nothing", qn),
			remoteOperation,
			func(h wire.AtomicHeader) wire.Segment {
				r := atomicResponse(h.RequestID, 1)
				r.QN = qn
				return alien(r, fmt.Sprintf("it is on queue %d", qn))
			})
	}
	add("rfc7306-8.2-2", "read-response-to-an-atomic", "A Read Response in place of the Atomic Response is refused by a Terminate, and completes nothing", nil,
		func(wire.AtomicHeader) wire.Segment {
			return alien(wire.Tagged(wire.ReadResponse, 0, 0, nil), "no Read is outstanding")
		})
	out = append(out, conformance.Case{
		Clause: "rfc7306-8.2-1", Name: "response-nobody-asked-for", Also: []string{"rfc7306-8.1-2"},
		Title: "An Atomic Response while no atomic is outstanding is refused by a Terminate",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			s.Post(alien(atomicResponse(1, 1), "no atomic is outstanding"))
			s.AwaitTerminate()
		},
	}, conformance.Case{
		Clause: "rfc7306-8.2-1", Name: "response-twice", Also: []string{"rfc7306-8.1-2"},
		Title: "A second Atomic Response to the same request is refused by a Terminate",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			s.Posts(ownFetchAdd(0))
			_, h := awaitAtomicRequest(t, s)
			s.Post(atomicResponse(h.RequestID, 1))
			completesWith(t, s, 1)
			s.Post(alien(atomicResponse(h.RequestID, 2), "the request has its response"))
			s.AwaitTerminate()
			s.AwaitNoCompletion(service.SendQueue, "as nothing was outstanding")
		},
	}, conformance.Case{
		Clause: "rfc7306-5.2.2-5", Name: "responses-swapped", Also: []string{"rfc7306-8.1-2"},
		Title: "Atomic Responses in another order than the requests are refused, or matched by their identifiers: no atomic completes with another's value",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			ids := s.Posts(ownFetchAdd(0), ownFetchAdd(8))
			_, first := awaitAtomicRequest(t, s)
			_, second := awaitAtomicRequest(t, s)
			if first.RequestID == second.RequestID {
				t.Inconclusive("the target's two atomics have the same Request Identifier, so that their responses can't be swapped")
			}
			s.Post(alien(atomicResponse(second.RequestID, 2), "the response to the second request comes first"),
				atomicResponse(first.RequestID, 1))
			if a, err := s.Next(t.Quiet()); !errors.Is(err, wire.ErrSilence) {
				t.Note("the target refuses: %s", gotten(a, err))
				t.Try(s.Close(), "closing the connection")
			}
			for range 2 {
				c, err := t.Service().Completion(t.Context(), s.QP, service.SendQueue, t.Timeout())
				t.Try(err, "waiting for a completion of the target")
				if c.Status != service.StatusSuccess {
					continue
				}
				want := service.Uint64(2)
				if c.ID == ids[0] {
					want = 1
				}
				t.Check(c.Original != nil && *c.Original == want, fmt.Sprintf("that the atomic completes with %d", want), "with another value")
			}
		},
	})
	return out
}
