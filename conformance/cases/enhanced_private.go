package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// roomOf is how many bytes of the ULP's fit behind the block (RFC 6581 §9).
const roomOf = wire.MaxPrivateData - wire.EnhancedLen

// enhancedPrivateData returns the cases on private data behind the block, and on
// blocks that are not whole.
func enhancedPrivateData() []conformance.Case {
	var cases []conformance.Case
	for _, n := range []int{0, 1, roomOf} {
		cases = append(cases, sendsPrivateData(n), takesPrivateData(n))
	}
	for n := range wire.EnhancedLen {
		cases = append(cases, blockTooShort(n))
	}
	return append(cases, privateDataLimits...)
}

// sendsPrivateData returns the case that the target's program has n bytes of
// private data sent.
func sendsPrivateData(n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-6-5", Name: fmt.Sprintf("sends-%d-octets-behind", n),
		Title: fmt.Sprintf("%d octets of private data of the target's program stand behind the block", n),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			if limit := t.Service().Hello().Limits.PrivateData; n > limit {
				t.Skip("the target's programs have %d octets of private data at most", limit)
			}
			data := conformance.Pattern(n)
			setup := conformance.Setup{Start: service.Start{PrivateData: data}}
			var f wire.Frame
			if t.Role() == conformance.Responder {
				_, f = ask(t, setup, block(wire.RequestKey, plain), "")
			} else {
				_, f = requestOf(t, setup)
			}
			blockOf(t, f)
			_, ulp, _ := f.Enhanced()
			t.Check(bytes.Equal(ulp, data), fmt.Sprintf("the program's %d octets behind the block", n), "%d octets: %x", len(ulp), ulp)
		},
	}
}

// takesPrivateData returns the case that n bytes of private data reach the
// target's program.
func takesPrivateData(n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-6-5", Name: fmt.Sprintf("takes-%d-octets-behind", n),
		Title: fmt.Sprintf("%d octets behind the block, and no others, reach the target's program as private data", n),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			data := conformance.Pattern(n)
			var params *service.Params
			if t.Role() == conformance.Responder {
				request := block(wire.RequestKey, plain, data...)
				c, reply := ask(t, conformance.Setup{}, request, "")
				_, params = started(t, c, request, reply)
			} else {
				c, request := requestOf(t, conformance.Setup{})
				reply := block(wire.ReplyKey, answerOf(blockOf(t, request)), data...)
				t.Try(c.SendFrame(reply, ""), "sending the Reply")
				_, params = started(t, c, request, reply)
			}
			t.Check(bytes.Equal(params.PrivateData, data), fmt.Sprintf("%d octets for the program", n), "%d octets: %s", len(params.PrivateData), params.PrivateData)
		},
	}
}

// blockTooShort returns the case that the private data have no room for the block.
func blockTooShort(n int) conformance.Case {
	return conformance.Case{
		Clause: "rfc6581-6-5", Name: fmt.Sprintf("block-of-%d-octets", n),
		Title: fmt.Sprintf("A frame with S=1 and %d octets of private data is not accepted", n),
		Run: func(t *conformance.T) {
			wrong := fmt.Sprintf("S is set, with %d octets of private data", n)
			if t.Role() == conformance.Responder {
				request := block(wire.RequestKey, plain)
				request.Private = request.Private[:n]
				c := t.Dial(conformance.Setup{})
				t.Try(c.SendFrame(request, wrong), "sending the Request")
				awaitRefusal(t, c, request, wire.Frame{})
				return
			}
			c, request := requestOf(t, conformance.Setup{})
			reply := block(wire.ReplyKey, answerOf(offered(t, request)))
			reply.Private = reply.Private[:n]
			t.Try(c.SendFrame(reply, wrong), "sending the Reply")
			awaitRefusal(t, c, request, reply)
		},
	}
}

// All private data, with the block, are 512 bytes at most (RFC 6581 §7).
var privateDataLimits = []conformance.Case{
	{
		Clause: "rfc6581-7-4", Name: "509-octets-are-not-sent",
		Title: "A program that wants 509 octets of private data sent behind the block is refused: no frame has more than 512",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			c, err := t.TryConnect(conformance.Setup{Start: service.Start{PrivateData: conformance.Pattern(roomOf + 1)}})
			if service.CodeOf(err) != "" {
				t.Note("the program is refused: %v", err)
				return
			}
			t.Try(err, "connecting")
			if t.Role() == conformance.Responder {
				t.Try(c.SendFrame(block(wire.RequestKey, plain), ""), "sending the Request")
			}
			f, err := c.ReadFrame(t.Timeout())
			if over(err) {
				return
			}
			t.Check(err == nil, "at most 512 octets of private data", "%v", err)
			t.Check(f.PDLength() <= wire.MaxPrivateData, "at most 512 octets of private data", "%s", f)
		},
	},
	{
		Clause: "rfc5044-7.1.1-18", Name: "enhanced-frame-of-513-octets", Also: []string{"rfc6581-7-4"},
		Title: "An enhanced frame with 513 octets of private data, 509 behind the block, is not accepted: the connection is closed",
		Run: func(t *conformance.T) {
			const wrong = "513 octets of private data"
			private := conformance.Pattern(roomOf + 1)
			if t.Role() == conformance.Responder {
				c := t.Dial(conformance.Setup{})
				t.Try(c.SendFrame(block(wire.RequestKey, plain, private...), wrong), "sending the Request")
				awaitClose(t, c, wire.Frame{}, wire.Frame{})
				return
			}
			c, request := requestOf(t, conformance.Setup{})
			reply := block(wire.ReplyKey, answerOf(offered(t, request)), private...)
			t.Try(c.SendFrame(reply, wrong), "sending the Reply")
			awaitClose(t, c, request, reply)
		},
	},
}
