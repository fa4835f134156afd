package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// peerReply gets a Responder's Reply to a Request for the peer-to-peer model that
// offers these kinds of RTR, and sends one that was agreed upon: a connection that
// ends before it can crash the target.
func peerReply(t *conformance.T, setup conformance.Setup, offer kinds) wire.Enhanced {
	request := block(wire.RequestKey, peers(offer))
	c, reply := ask(t, setup, request, "")
	s := operate(t, c, request, reply)
	passReady(t, s)
	if s.IRD > 1 { // the RTR may be a Read
		s.Post(conformance.ReadRequest(probeSTag, 0, 0, 0, 0))
		_, _ = s.Next(t.Quiet()) // whatever comes, the RTR was taken before
	}
	return blockOf(t, reply)
}

// withRTR is a Setup in which the target's program knows these kinds of RTR.
func withRTR(k kinds) conformance.Setup {
	return conformance.Setup{Start: service.Start{RTR: k.names()}}
}

// responderRTRFlags returns the cases on A, B, C and D in the Reply of a Responder
// that is asked for the peer-to-peer model (RFC 6581 §9.2).
func responderRTRFlags() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc6581-9.2-4", Name: "peer-to-peer",
			Title: "A Request with A=1 gets a Reply with A=1",
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				e := peerReply(t, conformance.Setup{}, allRTR)
				t.Check(e.PeerToPeer, "A=1", "%s", e)
			},
		},
		{
			Clause: "rfc6581-9.2-3", Name: "one-is-known",
			Title: "A Responder that is offered all kinds of RTR takes at least one",
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				e := peerReply(t, conformance.Setup{}, allRTR)
				t.Check(kindsOf(e) != 0, "B, C or D set", "%s", e)
			},
		},
		{
			Clause: "rfc6581-9.2-6", Name: "none-offered", Also: []string{"rfc6581-9.2-3"},
			Title: "A Responder that is offered no kind of RTR says at least one that it supports",
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				e := peerReply(t, conformance.Setup{}, 0)
				t.Check(kindsOf(e) != 0, "B, C or D set", "%s", e)
			},
		},
	}
	for _, k := range sets() {
		if len(k.names()) > 1 {
			cases = append(cases, conformance.Case{
				Clause: "rfc6581-9.2-5", Name: "offered-" + k.String(),
				Title: fmt.Sprintf("A Responder that supports all kinds of RTR, and is offered %s, takes at least one of them", k),
				Roles: conformance.Responder, Needs: conformance.NeedService,
				Run: func(t *conformance.T) {
					knows(t, allRTR)
					e := peerReply(t, withRTR(allRTR), k)
					t.Check(kindsOf(e)&k != 0, "one of those offered at least: "+k.String(), "%s", e)
				},
			})
		}
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.2-14", Name: "offered-" + k.String(),
			Title: fmt.Sprintf("A Responder that supports all kinds of RTR, and is offered %s, sets the flag of each", k),
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				knows(t, allRTR)
				e := peerReply(t, withRTR(allRTR), k)
				t.Check(kindsOf(e)&k == k, "the flags of "+k.String(), "%s", e)
			},
		})
	}
	for _, k := range []kinds{sendRTR, writeRTR, readRTR} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.2-6", Name: "only-" + k.String() + "-known", Also: []string{"rfc6581-9.2-3"},
			Title: fmt.Sprintf("A Responder that supports %s only, and is offered the other kinds of RTR, says so", k),
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				knows(t, k)
				e := peerReply(t, withRTR(k), allRTR&^k)
				t.Check(kindsOf(e) == k, "the flag of "+k.String(), "%s", e)
			},
		})
	}
	return cases
}

// initiatorRTRFlags returns the cases on A, B, C and D in the Request of an
// Initiator whose program wants the peer-to-peer model.
func initiatorRTRFlags() []conformance.Case {
	cases := []conformance.Case{{
		Clause: "rfc6581-9.2-1", Name: "peer-to-peer",
		Title: "The Request of an Initiator whose program wants the peer-to-peer model has A=1",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			knows(t, writeRTR)
			_, request := requestOf(t, conformance.Setup{})
			e := blockOf(t, request)
			t.Check(e.PeerToPeer, "A=1", "%s", e)
		},
	}}
	for _, k := range sets() {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.2-2", Name: k.String(),
			Title: fmt.Sprintf("The Request of an Initiator that supports %s has the flags of these kinds of RTR, and of no others", k),
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				knows(t, k)
				_, request := requestOf(t, withRTR(k))
				e := blockOf(t, request)
				t.Check(kindsOf(e) == k, "the flags of "+k.String(), "%s", e)
			},
		})
	}
	return cases
}

// clientServer returns the cases on the client-server model: A=0.
func clientServer() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc6581-9.2-11", Name: "client-server",
			Title: "A Request with A=0 gets a Reply with A=0",
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, plain), "")
				e := blockOf(t, reply)
				t.Check(!e.PeerToPeer, "A=0", "%s", e)
			},
		},
		{
			Clause: "rfc6581-9.2-10", Name: "client-server",
			Title: "The Request of an Initiator whose program wants the client-server model has A=0",
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				_, request := requestOf(t, conformance.Setup{ClientFirst: true})
				e := blockOf(t, request)
				t.Check(!e.PeerToPeer, "A=0", "%s", e)
			},
		},
		{
			Clause: "rfc6581-9.2-12", Name: "request",
			Title: "A Request with A=0 has B, C and D of 0",
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				setup := withRTR(allRTR)
				setup.ClientFirst = true
				_, request := requestOf(t, setup)
				e := blockOf(t, request)
				t.Check(e.PeerToPeer || kindsOf(e) == 0, "B, C and D of 0, as A is 0", "%s", e)
			},
		},
		{
			Clause: "rfc6581-9.2-12", Name: "reply",
			Title: "A Reply with A=0 has B, C and D of 0",
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, plain), "")
				e := blockOf(t, reply)
				t.Check(e.PeerToPeer || kindsOf(e) == 0, "B, C and D of 0, as A is 0", "%s", e)
			},
		},
	}
	for _, k := range []kinds{sendRTR, writeRTR, readRTR, allRTR} {
		cases = append(cases, strayFlagsInRequest(k), strayFlagsInReply(k))
	}
	return append(cases, noRTRWithoutA, replyClearsA, replySetsA)
}

// strayFlagsInRequest returns the case that a Request has A=0 and others of the
// flags set.
func strayFlagsInRequest(k kinds) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-9.2-13", Name: "request-" + k.String(), Also: []string{"rfc6581-9.2-11", "rfc6581-9.2-12"},
		Title: fmt.Sprintf("The flags of %s are ignored in a Request with A=0: the Reply has A, B, C and D of 0", k),
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, k.into(plain)), "flags of RTR are set, with A=0")
			e := blockOf(t, reply)
			t.Check(!e.PeerToPeer && kindsOf(e) == 0, "A, B, C and D of 0", "%s", e)
		},
	}
}

// strayFlagsInReply returns the case that a Reply has A=0, as the Request, and
// others of the flags set.
func strayFlagsInReply(k kinds) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-9.2-13", Name: "reply-" + k.String(),
		Title: fmt.Sprintf("The flags of %s are ignored in a Reply with A=0: no RTR comes, but the program's own Send", k),
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c, request := requestOf(t, conformance.Setup{ClientFirst: true})
			e := blockOf(t, request)
			if e.PeerToPeer {
				t.Inconclusive("the Request has A=1")
			}
			reply := block(wire.ReplyKey, k.into(answerOf(e)))
			t.Try(c.SendFrame(reply, "flags of RTR are set, with A=0"), "sending the Reply")
			s, _ := started(t, c, request, reply)
			s.Posts(service.Post{Op: service.OpSend, Data: []byte(greeting)})
			awaitGreeting(t, s)
		},
	}
}

// greeting is what the target's program has to say.
const greeting = "greeting"

// awaitGreeting makes sure that the Send of the target's program comes next.
func awaitGreeting(t *conformance.T, s *conformance.Stream) {
	m := s.AwaitMessage(wire.Send)
	t.Check(string(m.Payload) == greeting, fmt.Sprintf("a Send with %q", greeting), "one with %q", m.Payload)
}

// noRTRWithoutA is the case that a Responder with A=0 wants no RTR, whatever else
// the Request says.
var noRTRWithoutA = conformance.Case{
	Clause: "rfc6581-9.2-13", Name: "first-message-is-free",
	Title: "After a Request with A=0, B=C=D=1, a Send with data may come first, and is delivered",
	Roles: conformance.Responder, Needs: conformance.NeedService,
	Run: func(t *conformance.T) {
		request := block(wire.RequestKey, allRTR.into(plain))
		c, reply := ask(t, conformance.Setup{}, request, "flags of RTR are set, with A=0")
		s, _ := started(t, c, request, reply)
		s.Post(wire.Untagged(wire.Send, []byte(greeting)))
		done := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
		t.Check(string(done.Data) == greeting, fmt.Sprintf("%q", greeting), "%q", []byte(done.Data))
	},
}

// replyClearsA is the case that a Responder does not do what the Initiator asks
// for.
var replyClearsA = conformance.Case{
	Clause: "rfc6581-9.2-13", Name: "reply-clears-a",
	Title: "A Reply with A=0, B=C=D=1 to a Request with A=1 does not lead into the peer-to-peer model: A counts, and no other flag",
	Roles: conformance.Initiator, Needs: conformance.NeedService,
	Run: func(t *conformance.T) {
		c, request := requestOf(t, conformance.Setup{})
		e := answerOf(blockOf(t, request))
		e.PeerToPeer = false
		reply := block(wire.ReplyKey, allRTR.into(e))
		t.Try(c.SendFrame(reply, "A=0, though the Request has A=1"), "sending the Reply")
		_, params, err := t.Started()
		if service.CodeOf(err) == service.CodeTimeout {
			t.Fail("that start-up ends", "%v", err)
		}
		t.Check(err != nil || params == nil || !params.PeerToPeer, "a failure, or the client-server model", "the peer-to-peer model")
	},
}

// replySetsA is the case that a Responder does what the Initiator has not asked
// for: it waits for an RTR.
var replySetsA = conformance.Case{
	Clause: "rfc6581-9.2-7", Name: "reply-sets-a",
	Title: "A Reply with A=1 to a Request with A=0 is answered by an RTR of its kinds, or the connection ends: nothing else may come first",
	Roles: conformance.Initiator, Needs: conformance.NeedService,
	Run: func(t *conformance.T) {
		c, request := requestOf(t, conformance.Setup{ClientFirst: true})
		e := answerOf(blockOf(t, request))
		e.PeerToPeer = true
		reply := block(wire.ReplyKey, allRTR.into(e))
		t.Try(c.SendFrame(reply, "A=1, though the Request has A=0"), "sending the Reply")
		if qp, _, err := t.Started(); err == nil {
			_, _ = t.Service().Post(t.Context(), qp, service.Post{Op: service.OpSend, Data: []byte(greeting)}) // if it may
		}
		overhear(c, request, reply)
		a, err := c.Next(t.Timeout())
		if over(err) {
			return
		}
		t.Try(err, "waiting for the first message")
		t.Check(a.Opcode == wire.Terminate || kindOf(a.Segment) != 0, "an RTR, a Terminate, or the end", "%s", a.Segment)
	},
}
