package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A depths is a pair of IRD and ORD.
type depths struct{ ird, ord int }

// start has a target's program ask for these depths.
func (d depths) start() service.Start { return service.Start{IRD: new(d.ird), ORD: new(d.ord)} }

// into sets the depths of a block.
func (d depths) into(e wire.Enhanced) wire.Enhanced {
	e.IRD, e.ORD = uint16(d.ird), uint16(d.ord)
	return e
}

func (d depths) String() string { return fmt.Sprintf("IRD %d and ORD %d", d.ird, d.ord) }

// offers skips the case if the target's programs can't have these depths.
func (d depths) offers(t *conformance.T) {
	if l := t.Service().Hello().Limits; d.ird > l.IRD || d.ord > l.ORD {
		t.Skip("the target's programs have an IRD of %d and an ORD of %d at most", l.IRD, l.ORD)
	}
}

// told are the depths that a target's program is told in most cases.
var told = depths{4, 4}

// mostDepth is the largest IRD or ORD that can be said (RFC 6581 §9.1).
const mostDepth = wire.NoDepth - 1

// enhancedValues returns the cases on the fields of the block, and on what the
// programs are told of them (RFC 6581 §9, §9.1).
func enhancedValues() []conformance.Case {
	cases := []conformance.Case{
		{
			Clause: "rfc6581-9-1", Name: "reply",
			Title: "IRD 4 and ORD 2 of a Responder's program stand in the Reply in network byte order",
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				d := depths{4, 2}
				d.offers(t)
				_, reply := ask(t, conformance.Setup{Start: d.start()}, block(wire.RequestKey, depths{2, 4}.into(plain)), "")
				e := blockOf(t, reply)
				t.Check(e == d.into(wire.Enhanced{}), "a block with "+d.String(), "%s (%x)", e, reply.Private[:wire.EnhancedLen])
			},
		},
		{
			Clause: "rfc6581-9-1", Name: "reply-to-small-ird",
			Title: "The ORD that is replied to an IRD of 1 is 0 or 1, in network byte order",
			Roles: conformance.Responder,
			Run: func(t *conformance.T) {
				_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, depths{1, 16}.into(plain)), "")
				e := blockOf(t, reply)
				t.Check(e.ORD <= 1, "an ORD of 0 or 1", "%s (%x)", e, reply.Private[:wire.EnhancedLen])
			},
		},
	}
	for _, d := range []depths{{0, 0}, {1, 1}, {4, 2}} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9-1", Name: fmt.Sprintf("request-ird-%d-ord-%d", d.ird, d.ord),
			Title: d.String() + " of an Initiator's program stand in the Request in network byte order",
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) { sendsDepths(t, d) },
		})
	}
	cases = append(cases, conformance.Case{
		Clause: "rfc6581-9-1", Name: "request-limits",
		Title: "The largest IRD and ORD that an Initiator's program can have stand in the Request",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			l := t.Service().Hello().Limits
			sendsDepths(t, depths{min(l.IRD, mostDepth), min(l.ORD, mostDepth)})
		},
	})
	for _, d := range []depths{{0, 0}, {1, 0}, {0, 1}, {0x1234, 0x0567}, {mostDepth, mostDepth}, {wire.NoDepth, wire.NoDepth}} {
		cases = append(cases, tellsRequest(d))
	}
	for _, d := range []depths{{0, 0}, {1, 0}, {0, 1}, {mostDepth, 4}, {wire.NoDepth, wire.NoDepth}} {
		cases = append(cases, tellsReply(d))
	}
	return append(cases, flagsBesideDepths, tellsRejection)
}

// sendsDepths looks for the depths of an Initiator's program in its Request.
func sendsDepths(t *conformance.T, d depths) {
	_, request := requestOf(t, conformance.Setup{Start: d.start(), ClientFirst: true})
	e := blockOf(t, request)
	t.Check(e == d.into(wire.Enhanced{}), "a block with "+d.String(), "%s (%x)", e, request.Private[:wire.EnhancedLen])
}

// tellsRequest returns the case that a Responder's program is told of a Request.
func tellsRequest(d depths) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-9.1-1", Name: fmt.Sprintf("request-ird-%d-ord-%d", d.ird, d.ord), Also: []string{"rfc6581-9-1"},
		Title: d.String() + " of a Request reach the Responder's program as they were sent",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			request := block(wire.RequestKey, d.into(plain))
			c, reply := ask(t, conformance.Setup{}, request, "")
			_, params := started(t, c, request, reply)
			got := depths{int(params.PeerIRD), int(params.PeerORD)}
			t.Check(got == d, "that the program is told "+d.String(), "%s", got)
		},
	}
}

// tellsReply returns the case that an Initiator's program is told of a Reply.
func tellsReply(d depths) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-9.1-7", Name: fmt.Sprintf("reply-ird-%d-ord-%d", d.ird, d.ord), Also: []string{"rfc6581-9.1-1"},
		Title: d.String() + " of a Reply reach the Initiator's program as they were sent",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			told.offers(t)
			c, request := requestOf(t, conformance.Setup{Start: told.start(), ClientFirst: true})
			reply := block(wire.ReplyKey, d.into(answerOf(blockOf(t, request))))
			t.Try(c.SendFrame(reply, ""), "sending the Reply")
			_, params := started(t, c, request, reply)
			got := depths{int(params.PeerIRD), int(params.PeerORD)}
			t.Check(got == d, "that the program is told "+d.String(), "%s", got)
		},
	}
}

// flagsBesideDepths is the case that flags are no part of the depths beside them.
var flagsBesideDepths = conformance.Case{
	Clause: "rfc6581-9-1", Name: "flags-beside-depths",
	Title: "IRD and ORD have 14 bits: the flags A, B, C and D beside them are no part of what the Responder's program is told",
	Roles: conformance.Responder, Needs: conformance.NeedService,
	Run: func(t *conformance.T) {
		d := depths{3, 5}
		request := block(wire.RequestKey, d.into(peers(allRTR)))
		c, reply := ask(t, conformance.Setup{}, request, "")
		s := operate(t, c, request, reply)
		passReady(t, s)
		_, params, err := t.Started()
		t.Check(err == nil && params != nil, "that start-up succeeds", "%v", err)
		got := depths{int(params.PeerIRD), int(params.PeerORD)}
		t.Check(got == d, "that the program is told "+d.String(), "%s", got)
	},
}

// tellsRejection is the case that an Initiator's program is told of a Reply that
// rejects.
var tellsRejection = conformance.Case{
	Clause: "rfc6581-9.1-7", Name: "rejected",
	Title: "IRD 3, ORD 9 and the private data of a Reply that rejects reach the Initiator's program",
	Roles: conformance.Initiator, Needs: conformance.NeedService,
	Run: func(t *conformance.T) {
		c, request := requestOf(t, conformance.Setup{})
		d := depths{3, 9}
		reply := block(wire.ReplyKey, d.into(answerOf(blockOf(t, request))), []byte(refusal)...)
		reply.Flags |= wire.FlagR
		t.Try(c.SendFrame(reply, ""), "sending the Reply")
		_, _, err := t.Started()
		t.Check(service.CodeOf(err) == service.CodeRejected, "that the program is told of the rejection", "%v", err)
		f := failureIn(err)
		t.Check(f != nil && f.Enhanced, "that the program is told IRD and ORD", "%v", err)
		got := depths{int(f.IRD), int(f.ORD)}
		t.Check(got == d, "that the program is told "+d.String(), "%s", got)
		t.Check(string(f.PrivateData) == refusal, fmt.Sprintf("private data %q", refusal), "%q", []byte(f.PrivateData))
	},
}
