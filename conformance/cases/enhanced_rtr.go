package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// agree answers an Initiator that supports some kinds of RTR with a Reply that
// takes others.
func agree(t *conformance.T, theirs, ours kinds) (c *wire.Conn, request, reply wire.Frame) {
	knows(t, theirs)
	c, request = requestOf(t, withRTR(theirs))
	reply = block(wire.ReplyKey, ours.into(answerOf(blockOf(t, request))))
	return c, request, reply
}

// initiatorRTR returns the cases on the RTR that an Initiator sends (RFC 6581 §5,
// §9.2).
func initiatorRTR() []conformance.Case {
	cases := []conformance.Case{{
		Clause: "rfc6581-9.2-7", Name: "as-offered",
		Title: "An Initiator that asks for the peer-to-peer model sends one of the RTRs that it has offered",
		Roles: conformance.Initiator,
		Run: func(t *conformance.T) {
			c, request := requestOf(t, conformance.Setup{})
			e := offered(t, request)
			if !e.PeerToPeer {
				t.Skip("the target does not ask for the peer-to-peer model")
			}
			reply := block(wire.ReplyKey, answerOf(e))
			t.Try(c.SendFrame(reply, ""), "sending the Reply")
			overhear(c, request, reply)
			a, err := c.Next(t.Timeout())
			expected := "an RTR by " + kindsOf(e).String()
			if err != nil {
				t.Fail(expected, "%v", err)
			}
			t.Check(kindOf(a.Segment)&kindsOf(e) != 0, expected, "%s", a.Segment)
		},
	}}
	for _, k := range sets() {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.2-7", Name: "agreed-" + k.String(),
			Title: fmt.Sprintf("An Initiator that supports all kinds of RTR sends one of those that the Reply takes: %s", k),
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) { rtrComes(t, allRTR, k) },
		})
	}
	for _, k := range []kinds{sendRTR, writeRTR, readRTR} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.2-7", Name: "kinds-not-asked-for-beside-" + k.String(),
			Title: fmt.Sprintf("An Initiator that supports %s only sends that, though the Reply takes all kinds of RTR", k),
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) { rtrComes(t, k, allRTR) },
		}, conformance.Case{
			Clause: "rfc6581-5-1", Name: "before-a-posted-send-" + k.String(),
			Title: fmt.Sprintf("The RTR, %s, goes before a Send that the Initiator's program has posted before the Reply", k),
			Roles: conformance.Initiator, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				c, request, reply := agree(t, k, k)
				_, qp := t.Endpoint()
				_, early := t.Service().Post(t.Context(), qp, service.Post{Op: service.OpSend, Data: []byte(greeting)})
				t.Try(c.SendFrame(reply, ""), "sending the Reply")
				s := operate(t, c, request, reply)
				takeReady(t, s, k)
				if early != nil { // this target's programs post only when there is a connection
					greet(t, s)
				}
				awaitGreeting(t, s)
			},
		})
	}
	return cases
}

// rtrComes makes sure that an RTR is sent that both sides know, and that the
// connection works then.
func rtrComes(t *conformance.T, theirs, ours kinds) {
	c, request, reply := agree(t, theirs, ours)
	t.Try(c.SendFrame(reply, ""), "sending the Reply")
	s := operate(t, c, request, reply)
	takeReady(t, s, theirs&ours)
	s.AwaitAlive()
}

// noRTRInCommon are the cases on an Initiator that can't send what the Responder
// takes (RFC 6581 §9.2).
var noRTRInCommon = append([]conformance.Case{
	{
		Clause: "rfc6581-9.2-9", Name: "not-offered",
		Title: "A Reply that takes only kinds of RTR that were not offered is answered by a Terminate with code 0x2007",
		Roles: conformance.Initiator,
		Run: func(t *conformance.T) {
			c, request := requestOf(t, conformance.Setup{})
			e := offered(t, request)
			others := allRTR &^ kindsOf(e)
			if !e.PeerToPeer || others == 0 {
				t.Skip("the target does not ask for the peer-to-peer model, or offers all kinds of RTR")
			}
			reply := block(wire.ReplyKey, others.into(answerOf(e)))
			t.Try(c.SendFrame(reply, "kinds of RTR that were not offered"), "sending the Reply")
			overhear(c, request, reply)
			awaitNoRTR(t, c)
		},
	},
	{
		Clause: "rfc6581-9.2-8", Name: "ended",
		Title: "An Initiator that has no RTR in common with the Responder ends the connection after its Terminate",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c := disagree(t, writeRTR, sendRTR)
			a, err := c.Next(t.Timeout())
			t.Try(err, "waiting for a Terminate")
			t.Check(a.Opcode == wire.Terminate, "a Terminate", "%s", a.Segment)
			awaitEnd(t, c)
		},
	},
	{
		Clause: "rfc6581-9.2-8", Name: "program-is-told",
		Title: "The program of an Initiator that has no RTR in common with the Responder is told that start-up has failed",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c := disagree(t, writeRTR, readRTR)
			t.Try(c.CloseWrite(), "closing")
			_, _, err := t.Started()
			t.Check(err != nil && service.CodeOf(err) != service.CodeTimeout, "that start-up fails", "%v", err)
		},
	},
	{
		Clause: "rfc6581-9.2-8", Name: "none-taken",
		Title: "A Reply with A=1 that takes no kind of RTR ends the connection, by a Terminate with code 0x2007, or as malformed",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c := disagree(t, allRTR, 0)
			a, err := c.Next(t.Timeout())
			if over(err) {
				return
			}
			t.Try(err, "waiting for a Terminate")
			noRTR(t, a)
		},
	},
}, noRTRInCommonOf(sendRTR, writeRTR), noRTRInCommonOf(sendRTR, readRTR), noRTRInCommonOf(writeRTR, sendRTR), noRTRInCommonOf(writeRTR, readRTR),
	noRTRInCommonOf(readRTR, sendRTR), noRTRInCommonOf(readRTR, writeRTR), noRTRInCommonOf(sendRTR|writeRTR, readRTR), noRTRInCommonOf(readRTR, sendRTR|writeRTR))

// noRTRInCommonOf returns the case of two kinds that are not the same.
func noRTRInCommonOf(theirs, ours kinds) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-9.2-9", Name: theirs.String() + "-for-" + ours.String(), Also: []string{"rfc6581-9.2-8"},
		Title: fmt.Sprintf("An Initiator that supports %s sends a Terminate with code 0x2007 to a Responder that takes %s", theirs, ours),
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) { awaitNoRTR(t, disagree(t, theirs, ours)) },
	}
}

// disagree is agree that also sends the Reply.
func disagree(t *conformance.T, theirs, ours kinds) *wire.Conn {
	c, request, reply := agree(t, theirs, ours)
	t.Try(c.SendFrame(reply, "no kind of RTR in common"), "sending the Reply")
	overhear(c, request, reply)
	return c
}

func awaitNoRTR(t *conformance.T, c *wire.Conn) {
	a, err := c.Next(t.Timeout())
	if err != nil {
		t.Fail("a Terminate with "+wire.MPANoRTR.String(), "%v", err)
	}
	noRTR(t, a)
}

// noRTR looks at the Terminate of an Initiator that has no RTR in common.
func noRTR(t *conformance.T, a wire.Arrival) {
	expected := "a Terminate with " + wire.MPANoRTR.String()
	t.Check(a.Opcode == wire.Terminate, expected, "%s", a.Segment)
	h, err := wire.ParseTerminate(a.Payload)
	t.Check(err == nil && h.Code == wire.MPANoRTR, expected, "%s", a.Segment)
}
