package cases

import (
	"errors"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// failureIn returns what the target's RNIC knows of an error, or nil.
func failureIn(err error) *service.Failure {
	if e, ok := errors.AsType[*service.Error](err); ok {
		return e.Failure
	}
	return nil
}

// responderDepths returns the cases on the depths in a Responder's Reply (RFC 6581
// §9.1).
func responderDepths() []conformance.Case {
	var cases []conformance.Case
	for _, ird := range []int{0, 1, 2, 16} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.1-12", Name: fmt.Sprintf("initiator-ird-%d", ird),
			Title: fmt.Sprintf("The ORD of the Reply is at most the Initiator's IRD of %d", ird),
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, depths{ird, 16}.into(plain)), "")
				e := blockOf(t, reply)
				t.Check(int(e.ORD) <= ird, fmt.Sprintf("an ORD of at most %d", ird), "%s", e)
			},
		})
	}
	for _, ird := range []int{0, 1, 3} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.1-3", Name: fmt.Sprintf("initiator-ird-%d-of-4", ird),
			Title: fmt.Sprintf("A Responder whose program needs an ORD of 4 rejects an Initiator's IRD of %d, and says so: ORD 4", ird),
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				reply := replyTo(t, dialNeeding(t, 4), block(wire.RequestKey, depths{ird, 16}.into(plain)), "")
				t.Check(reply.Flags&wire.FlagR != 0, "a Reply that rejects", "%s", reply)
				e := blockOf(t, reply)
				t.Check(e.ORD == 4, "the ORD that is needed, 4", "%s", e)
			},
		})
	}
	for _, ird := range []int{4, 5} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.1-3", Name: fmt.Sprintf("initiator-ird-%d-of-4", ird),
			Title: fmt.Sprintf("A Responder whose program needs an ORD of 4 accepts an Initiator's IRD of %d", ird),
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				reply := replyTo(t, dialNeeding(t, 4), block(wire.RequestKey, depths{ird, 16}.into(plain)), "")
				t.Check(reply.Flags&wire.FlagR == 0, "a Reply that accepts", "%s", reply)
			},
		})
	}
	return append(append(cases, needTold), replied3FFF...)
}

// dialNeeding connects to a Responder whose program needs an ORD.
func dialNeeding(t *conformance.T, ord int) *wire.Conn {
	told.offers(t)
	return t.Dial(conformance.Setup{
		Start: told.start(), Listen: func(a *service.ListenArgs) { a.MinORD = ord },
	})
}

// needTold is the case that the reason of a rejection is known on the Responder's
// side.
var needTold = conformance.Case{
	Clause: "rfc6581-9.1-3", Name: "code",
	Title: "A Responder that rejects since the Initiator's IRD is too small has error code 6 for its own program, and sends no other Terminate",
	Roles: conformance.Responder, Needs: conformance.NeedService,
	Run: func(t *conformance.T) {
		c := dialNeeding(t, 4)
		request := block(wire.RequestKey, depths{3, 16}.into(plain))
		reply := replyTo(t, c, request, "")
		t.Check(reply.Flags&wire.FlagR != 0, "a Reply that rejects", "%s", reply)
		_, _, err := t.Started()
		t.Check(err != nil, "that the program is told", "success")
		if f := failureIn(err); f != nil && f.MPACode != 0 {
			t.Check(f.MPACode == 6, "error code 6 of MPA", "%d: %s", f.MPACode, f.Text)
		}
		// A Terminate would be an FPDU before the Initiator's first, but the RFC asks for
		// one.
		c.Operate(false, false, true)
		if a, err := c.Next(t.Quiet()); err == nil {
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(a.Opcode == wire.Terminate && err == nil && h.Code == wire.MPAInsufficientIRD,
				"nothing, or a Terminate with "+wire.MPAInsufficientIRD.String(), "%s", a.Segment)
		}
	},
}

// replied3FFF are the cases on what is replied to depths that are not negotiated.
var replied3FFF = []conformance.Case{
	{
		Clause: "rfc6581-9.1-8", Name: "replied",
		Title: "An Initiator's ORD of 0x3FFF is answered by an IRD of 0x3FFF",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, depths{16, wire.NoDepth}.into(plain)), "")
			e := blockOf(t, reply)
			t.Check(e.IRD == wire.NoDepth, "an IRD of 16383 (0x3FFF)", "%s", e)
		},
	},
	{
		Clause: "rfc6581-9.1-10", Name: "replied",
		Title: "An Initiator's IRD of 0x3FFF is answered by an ORD of 0x3FFF",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, depths{wire.NoDepth, 16}.into(plain)), "")
			e := blockOf(t, reply)
			t.Check(e.ORD == wire.NoDepth, "an ORD of 16383 (0x3FFF)", "%s", e)
		},
	},
	{
		Clause: "rfc6581-9.1-8", Name: "alone",
		Title: "An Initiator's ORD of 0x3FFF changes nothing of how its IRD of 2 is negotiated: the ORD of the Reply is at most 2",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, depths{2, wire.NoDepth}.into(plain)), "")
			e := blockOf(t, reply)
			t.Check(e.ORD <= 2, "an ORD of at most 2", "%s", e)
		},
	},
	{
		Clause: "rfc6581-9.1-8", Name: "ird-unchanged",
		Title: "An Initiator's ORD of 0x3FFF leaves the Responder's IRD as its program has it",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			_, params := settle(t, told, depths{16, wire.NoDepth})
			t.Check(int(params.IRD) == told.ird, fmt.Sprintf("an IRD of %d", told.ird), "%d", params.IRD)
		},
	},
	{
		Clause: "rfc6581-9.1-10", Name: "ord-unchanged",
		Title: "An Initiator's IRD of 0x3FFF leaves the Responder's ORD as its program has it",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			_, params := settle(t, told, depths{wire.NoDepth, 16})
			t.Check(int(params.ORD) == told.ord, fmt.Sprintf("an ORD of %d", told.ord), "%d", params.ORD)
		},
	},
}

// settle starts a connection, on which either side may send then, with the depths of the
// target's program, and those of the tester's frame.
func settle(t *conformance.T, theirs, ours depths) (*conformance.Stream, *service.Params) {
	theirs.offers(t)
	setup := conformance.Setup{Start: theirs.start()}
	if t.Role() == conformance.Responder {
		request := block(wire.RequestKey, ours.into(plain))
		c, reply := ask(t, setup, request, "")
		s, params := started(t, c, request, reply)
		s.Hello() // so that the target may send
		return s, params
	}
	c, request := requestOf(t, setup)
	reply := block(wire.ReplyKey, ours.into(answerOf(blockOf(t, request))))
	t.Try(c.SendFrame(reply, ""), "sending the Reply")
	s, params := started(t, c, request, reply)
	passReady(t, s)
	return s, params
}

// initiatorDepths returns the cases on what an Initiator makes of the depths in a
// Reply (RFC 6581 §9.1).
func initiatorDepths() []conformance.Case {
	return []conformance.Case{
		{
			Clause: "rfc6581-9.1-5", Name: "ord-16382",
			Title: "An Initiator that can't have an IRD of 16382, the Responder's ORD, ends the connection with a Terminate",
			Roles: conformance.Initiator,
			Run: func(t *conformance.T) {
				c, a := demand(t, conformance.Setup{}, mostDepth)
				if a.Opcode != wire.Terminate {
					t.Skip("the target takes the Responder's ORD: it sends %s", a.Segment)
				}
				awaitEnd(t, c)
			},
		},
		{
			Clause: "rfc6581-9.1-6", Name: "ord-16382",
			Title: "The Terminate of an Initiator that can't have an IRD of 16382 has code 0x2006",
			Roles: conformance.Initiator,
			Run: func(t *conformance.T) {
				_, a := demand(t, conformance.Setup{}, mostDepth)
				if a.Opcode != wire.Terminate {
					t.Skip("the target takes the Responder's ORD: it sends %s", a.Segment)
				}
				insufficient(t, a)
			},
		},
		{
			Clause: "rfc6581-9.1-6", Name: "ord-above-limit",
			Title: "A Responder's ORD of one more than an Initiator's program can have as IRD ends the connection: Terminate 0x2006",
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				limit := t.Service().Hello().Limits.IRD
				if limit >= mostDepth {
					t.Skip("the target's programs have any IRD that can be said")
				}
				_, a := demand(t, conformance.Setup{Start: depths{limit, 4}.start()}, limit+1)
				t.Check(a.Opcode == wire.Terminate, "a Terminate", "%s", a.Segment)
				insufficient(t, a)
			},
		},
		{
			Clause: "rfc6581-9.1-4", Name: "responder-ord-equal-limit",
			Title: "A Responder's ORD that is the Initiator's largest IRD is accepted",
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				limit := min(t.Service().Hello().Limits.IRD, mostDepth)
				s, params := settle(t, depths{limit, 4}, depths{16, limit})
				t.Check(int(params.IRD) >= limit, fmt.Sprintf("an IRD of at least %d", limit), "%d", params.IRD)
				s.AwaitAlive()
			},
		},
		{
			Clause: "rfc6581-9.1-4", Name: "responder-ord-more",
			Title: "A Responder's ORD of 5 is met by an Initiator whose program has asked for an IRD of 4: by raising it, or else Terminate 0x2006",
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				told.offers(t)
				_, a := demand(t, conformance.Setup{Start: told.start()}, told.ird+1)
				if a.Opcode == wire.Terminate {
					insufficient(t, a)
					return
				}
				_, params, err := t.Started()
				t.Check(err == nil && params != nil, "that start-up succeeds, as the RTR was sent", "%v", err)
				t.Check(int(params.IRD) > told.ird, fmt.Sprintf("an IRD of at least %d", told.ird+1), "%d", params.IRD)
			},
		},
		leftAlone("rfc6581-9.1-9", "ord-unchanged", "IRD", "ORD", depths{wire.NoDepth, 4}),
		leftAlone("rfc6581-9.1-11", "ird-unchanged", "ORD", "IRD", depths{16, wire.NoDepth}),
	}
}

// leftAlone returns the case that 0x3FFF in a Reply leaves a depth of the
// Initiator's as it is.
func leftAlone(clause, name, said, left string, ours depths) conformance.Case {
	return conformance.Case{
		Clause: clause, Name: name,
		Title: fmt.Sprintf("A Responder's %s of 0x3FFF leaves the Initiator's %s as its program has it", said, left),
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			_, params := settle(t, told, ours)
			got := int(params.ORD)
			if left == "IRD" {
				got = int(params.IRD)
			}
			t.Check(got == told.ord, fmt.Sprintf("an %s of %d", left, told.ord), "%d", got)
		},
	}
}

// demand answers an Initiator with an ORD that may be beyond it, and returns what
// it sends first.
func demand(t *conformance.T, setup conformance.Setup, ord int) (*wire.Conn, wire.Arrival) {
	c, request := requestOf(t, setup)
	e := answerOf(offered(t, request))
	e.ORD = uint16(ord)
	reply := block(wire.ReplyKey, e)
	t.Try(c.SendFrame(reply, fmt.Sprintf("an ORD of %d", ord)), "sending the Reply")
	overhear(c, request, reply)
	a, err := c.Next(t.Timeout())
	if err != nil {
		t.Fail("a Terminate with "+wire.MPAInsufficientIRD.String()+", or that the target goes on", "%v", err)
	}
	return c, a
}

// awaitEnd makes sure that nothing comes any more but the end of the connection.
func awaitEnd(t *conformance.T, c *wire.Conn) {
	const expected = "that the target ends the connection"
	a, err := c.Next(t.Timeout())
	if over(err) {
		return
	}
	t.Check(err == nil, expected, "%v", err)
	t.Fail(expected, "%s", a.Segment)
}

// insufficient looks at the code of the Terminate of an Initiator that can't have
// the IRD that is required.
func insufficient(t *conformance.T, a wire.Arrival) {
	h, err := wire.ParseTerminate(a.Payload)
	t.Try(err, "parsing the Terminate")
	t.Check(h.Code == wire.MPAInsufficientIRD, "a Terminate with "+wire.MPAInsufficientIRD.String(), "%s", h.Code)
}
