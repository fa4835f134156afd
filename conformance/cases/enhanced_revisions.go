package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Revisions 1 and 2, and frames of revision 2 that are not enhanced (RFC 6581 §6, §10).
var revisions = []conformance.Case{
	{
		Clause: "rfc6581-6-4", Name: "accepted",
		Title: "A Request of revision 1 is accepted, by a Reply of revision 1",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			_, reply := ask(t, conformance.Setup{}, unenhanced(1), "")
			t.Check(reply.Rev == 1, "a Reply of revision 1", "%s", reply)
		},
	},
	{
		Clause: "rfc6581-10-2", Name: "revision-1",
		Title: "A Request of revision 1 gets a Reply with S=0",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			reply := replyTo(t, t.Dial(conformance.Setup{}), unenhanced(1), "")
			t.Check(reply.Flags&wire.FlagS == 0, "a Reply with S=0", "%s", reply)
		},
	},
	{
		Clause: "rfc6581-10-6", Name: "revision-2", Also: []string{"rfc6581-10-2"},
		Title: "A Request of revision 2 with S=0 gets a Reply with S=0",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			reply := replyTo(t, t.Dial(conformance.Setup{}), unenhanced(2), "")
			t.Check(reply.Flags&wire.FlagS == 0, "a Reply with S=0", "%s", reply)
		},
	},
	{
		Clause: "rfc6581-10-4", Name: "revision-2", Also: []string{"rfc6581-6-4"},
		Title: "A Request of revision 2 with S=0 is accepted",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			ask(t, conformance.Setup{}, unenhanced(2), "")
		},
	},
	startsUnenhanced(1), startsUnenhanced(2),
	{
		Clause: "rfc6581-10-6", Name: "private-data-are-the-ulps",
		Title: "All private data of a Request of revision 2 with S=0 go to the program: there is no block in them",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			request := unenhanced(2)
			request.Private = conformance.Pattern(12)
			c, reply := ask(t, conformance.Setup{}, request, "")
			_, params := started(t, c, request, reply)
			t.Check(bytes.Equal(params.PrivateData, request.Private), fmt.Sprintf("private data %x", request.Private), "%s", params.PrivateData)
		},
	},
	{
		Clause: "rfc6581-10-7", Name: "closed",
		Title: "A Responder that knows revision 1 only closes the connection on an enhanced Request, without a Reply",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			configures(t, service.ConfigureArgs{Revision: 1})
			c := t.Dial(conformance.Setup{})
			t.Try(c.SendFrame(block(wire.RequestKey, plain), ""), "sending the Request")
			awaitClose(t, c, wire.Frame{}, wire.Frame{})
		},
	},
	{
		Clause: "rfc6581-10-3", Name: "revision-1-wanted", Also: []string{"rfc6581-6-3"},
		Title: "An Initiator whose program wants revision 1 sends a Request of revision 1 with S=0",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			_, f := requestOf(t, conformance.Setup{
				ClientFirst: true, Connect: func(a *service.ConnectArgs) { a.Revision = 1 },
			})
			t.Check(f.Rev == 1 && f.Flags&wire.FlagS == 0, "revision 1 and S=0", "%s", f)
		},
	},
	{
		Clause: "rfc6581-10-3", Name: "fall-back-after-close",
		Title: "An Initiator that tries again, after its enhanced Request was answered by a close, asks for nothing enhanced, and starts",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c, _ := requestOf(t, conformance.Setup{ClientFirst: true, Again: true})
			t.Try(c.Close(), "closing")
			awaitFallBack(t)
		},
	},
	{
		Clause: "rfc6581-10-3", Name: "fall-back-after-revision-1",
		Title: "An Initiator that tries again, after its enhanced Request was answered with revision 1, asks for nothing enhanced, and starts",
		Roles: conformance.Initiator, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c, _ := requestOf(t, conformance.Setup{ClientFirst: true, Again: true})
			reply := unenhanced(1)
			reply.Key = wire.ReplyKey
			t.Try(c.SendFrame(reply, "revision 1, though the Request has 2"), "sending the Reply")
			awaitFallBack(t)
		},
	},
}

// configures sets what holds for all of the target's connections.
func configures(t *conformance.T, args service.ConfigureArgs) {
	err := t.Service().Configure(t.Context(), args)
	if service.CodeOf(err) == service.CodeUnsupported {
		t.Skip("the target's service can't set that: %v", err)
	}
	t.Try(err, "setting what holds for the target's connections")
}

// unenhanced returns a Request of a revision, with S=0.
func unenhanced(revision uint8) wire.Frame {
	return wire.Frame{Key: wire.RequestKey, Rev: revision, Flags: wire.FlagC}
}

// startsUnenhanced returns the case that an unenhanced start-up ends in full
// operation.
func startsUnenhanced(revision uint8) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-10-4", Name: fmt.Sprintf("full-operation-of-revision-%d", revision), Also: []string{"rfc6581-6-4"},
		Title: fmt.Sprintf("An unenhanced Request of revision %d leads to full operation, with depths that only the programs know", revision),
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			request := unenhanced(revision)
			c, reply := ask(t, conformance.Setup{Start: service.Start{IRD: new(2)}}, request, "")
			s, params := started(t, c, request, reply)
			t.Check(!params.Enhanced, "that nothing enhanced is settled", "%+v", params)
			s.AwaitAlive()
		},
	}
}

// awaitFallBack waits for a second Request, which need not come.
func awaitFallBack(t *conformance.T) {
	c, err := t.AcceptAgain()
	if err != nil {
		t.Skip("the target does not try again (RFC 6581 §10: MAY)")
	}
	f, err := c.ReadFrame(t.Timeout())
	t.Try(err, "waiting for the second Request")
	t.Check(f.Flags&wire.FlagS == 0, "an unenhanced Request", "%s", f)
	reply := unenhanced(f.Rev)
	reply.Key = wire.ReplyKey
	t.Try(c.SendFrame(reply, ""), "sending the Reply")
	_, params := started(t, c, f, reply)
	t.Check(!params.Enhanced, "that nothing enhanced is settled", "%+v", params)
}
