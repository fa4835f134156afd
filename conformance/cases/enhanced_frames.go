package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// frame gets the target's start-up frame of an ordinary start-up.
func frame(t *conformance.T) wire.Frame {
	if t.Role() == conformance.Initiator {
		_, f := requestOf(t, conformance.Setup{})
		return f
	}
	return replyTo(t, t.Dial(conformance.Setup{}), conformance.RequestFor(conformance.Setup{}), "")
}

// The form of enhanced frames (RFC 6581 §6, §10).
var enhancedFrames = []conformance.Case{
	{
		Clause: "rfc6581-6-1", Name: "zero",
		Title: "The reserved bits of the target's frame are 0",
		Run: func(t *conformance.T) {
			f := frame(t)
			reserved := uint8(wire.Reserved)
			if f.Rev < 2 {
				reserved |= wire.FlagS
			}
			t.Check(f.Flags&reserved == 0, "reserved bits of 0", "%s", f)
		},
	},
	{
		Clause: "rfc6581-6-1", Name: "not-echoed",
		Title: "A Request whose reserved bits are set gets a Reply whose reserved bits are 0",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			request := conformance.RequestFor(conformance.Setup{})
			request.Flags |= wire.Reserved
			c := t.Dial(conformance.Setup{})
			t.Try(c.SendFrame(request, "its reserved bits are set"), "sending the Request")
			reply, err := c.ReadFrame(t.Timeout())
			if err != nil {
				t.Inconclusive("there is no Reply: %v", err)
			}
			t.Check(reply.Flags&wire.Reserved == 0, "reserved bits of 0", "%s", reply)
		},
	},
	{
		Clause: "rfc6581-6-3", Name: "revision-of-enhanced-frame",
		Title: "A frame of the target with S=1 has revision 2 or higher",
		Run: func(t *conformance.T) {
			f := frame(t)
			if f.Flags&wire.FlagS == 0 {
				t.Skip("the target's frame has S=0")
			}
			t.Check(f.Rev >= 2, "revision 2 or higher, as S is set", "%s", f)
		},
	},
	{
		Clause: "rfc6581-6-3", Name: "s-bit-with-revision-1",
		Title: "A Request of revision 1 with S=1 gets no enhanced Reply of revision 1: S is reserved there, or the frame is malformed",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			request := conformance.RequestFor(conformance.Setup{})
			request.Rev = 1
			c := t.Dial(conformance.Setup{})
			t.Try(c.SendFrame(request, "S is set, with revision 1"), "sending the Request")
			reply, err := c.ReadFrame(t.Timeout())
			if over(err) {
				return
			}
			t.Try(err, "waiting for the Reply")
			t.Check(reply.Rev != 1 || reply.Flags&wire.FlagS == 0, "a Reply with S=0, or none", "%s", reply)
		},
	},
	{
		Clause: "rfc6581-10-1", Name: "accepted", Also: []string{"rfc6581-10-5"},
		Title: "An enhanced Request gets a Reply with S=1, and the block",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			_, reply := ask(t, conformance.Setup{}, block(wire.RequestKey, plain), "")
			blockOf(t, reply)
		},
	},
	{
		Clause: "rfc6581-10-1", Name: "rejected", Also: []string{"rfc6581-10-5"},
		Title: "An enhanced Request that is rejected gets a Reply with S=1, the block, and the program's reason behind it",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			reply := rejection(t, block(wire.RequestKey, plain))
			blockOf(t, reply)
			_, ulp, _ := reply.Enhanced()
			t.Check(string(ulp) == refusal, fmt.Sprintf("%q behind the block", refusal), "%q", ulp)
		},
	},
	{
		Clause: "rfc6581-10-2", Name: "rejected", Also: []string{"rfc6581-10-6"},
		Title: "An unenhanced Request that is rejected gets a Reply with S=0, and the program's reason",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			reply := rejection(t, wire.Frame{Key: wire.RequestKey, Rev: 1, Flags: wire.FlagC})
			t.Check(reply.Flags&wire.FlagS == 0, "a Reply with S=0", "%s", reply)
			t.Check(string(reply.Private) == refusal, fmt.Sprintf("%q", refusal), "%q", reply.Private)
		},
	},
	{
		Clause: "rfc6581-6-5", Name: "block-is-there",
		Title: "Private data of a frame with S=1 have room for the block",
		Run: func(t *conformance.T) {
			f := frame(t)
			if f.Flags&wire.FlagS == 0 {
				t.Skip("the target's frame has S=0")
			}
			blockOf(t, f)
		},
	},
}

// refusal is what a target's program that rejects says.
const refusal = "no"

// rejection returns the Reply of a program that rejects.
func rejection(t *conformance.T, request wire.Frame) wire.Frame {
	c := t.Dial(conformance.Setup{
		Start:  service.Start{PrivateData: []byte(refusal)},
		Listen: func(a *service.ListenArgs) { a.Answer = service.AnswerReject },
	})
	reply := replyTo(t, c, request, "")
	t.Check(reply.Flags&wire.FlagR != 0, "a Reply that rejects, as the program does", "%s", reply)
	return reply
}

// The reserved bits of revision 2 are not checked (RFC 6581 §6).
func reservedBitsAreIgnored() []conformance.Case {
	var cases []conformance.Case
	for _, bits := range []uint8{0x01, 0x02, 0x04, 0x08, wire.Reserved} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-6-2", Name: fmt.Sprintf("bits-0x%02x", bits),
			Title: fmt.Sprintf("A frame whose reserved bits are 0x%02x is accepted like any other", bits),
			Run: func(t *conformance.T) {
				const wrong = "reserved bits are set"
				var setup conformance.Setup
				var s *conformance.Stream
				if t.Role() == conformance.Responder {
					request := conformance.RequestFor(setup)
					request.Flags |= bits
					c, reply := ask(t, setup, request, wrong)
					s = operate(t, c, request, reply)
				} else {
					c, request := requestOf(t, setup)
					reply := conformance.ReplyFor(setup, request)
					reply.Flags |= bits
					t.Try(c.SendFrame(reply, wrong), "sending the Reply")
					s = operate(t, c, request, reply)
				}
				passReady(t, s)
				s.AwaitAlive()
			},
		})
	}
	return cases
}
