package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapLaterSolicited is Sends with Solicited Event behind many others, in both
// directions (RFC 5040 §4.1, §5.3).
var rdmapLaterSolicited = []conformance.Case{
	{
		Clause: "rfc5041-4.3-3", Name: "solicited-event-later", Also: []string{"rfc5041-5.4-3"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("Of %d Sends and as many with SE, in turn, those with SE alone are delivered as solicited, from the first to the last", before),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{8}, 2*before)})
			for range before {
				for _, op := range []wire.Opcode{wire.Send, wire.SendSE} {
					s.Post(wire.Untagged(op, conformance.Pattern(8)))
					c := delivers(t, s, conformance.Pattern(8))
					t.Check(c.Solicited == (op == wire.SendSE), "that Sends with SE alone are solicited", "solicited of %s: %t", op, c.Solicited)
				}
			}
		},
	},
	{
		Clause: "rfc5040-5.3-3", Name: "send-with-se-fires-again-and-again", Needs: conformance.NeedService,
		Title: fmt.Sprintf("A program that waits for solicited events alone is woken by each of %d Sends with SE, if it is by the first, and by no Send between them", before),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{8}, 2*before)})
			for i := range before {
				rdmapArm(t, s)
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
				rdmapReceived(t, s, conformance.Pattern(8))
				rdmapSilent(t, s, i == 0)
				s.Post(wire.Untagged(wire.SendSE, conformance.Pattern(8)))
				rdmapReceived(t, s, conformance.Pattern(8))
				rdmapFires(t, s, i == 0)
			}
		},
	},
	{
		Clause: "rfc5040-5.3-3", Name: "send-with-se-behind-many", Needs: conformance.NeedService,
		Title: fmt.Sprintf("A program that waits for solicited events alone is not woken by %d Sends, if it is not by the first, but by the Send with SE behind them", before),
		Run: func(t *conformance.T) {
			s := t.Open(laterReceives(8))
			rdmapArm(t, s)
			for i := range before {
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
				rdmapReceived(t, s, conformance.Pattern(8))
				rdmapSilent(t, s, i == 0)
			}
			s.Post(wire.Untagged(wire.SendSE, conformance.Pattern(8)))
			rdmapReceived(t, s, conformance.Pattern(8))
			rdmapFires(t, s, true)
		},
	},
	{
		Clause: "rfc5040-4.1-6", Name: "se-sent-later", Needs: conformance.NeedService,
		Title: fmt.Sprintf("Of %d Sends of the target, in turn with SE and without, and as many that are posted at once, each has the opcode that its program asked for", before),
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			kinds := []struct {
				op     string
				opcode wire.Opcode
			}{{service.OpSendSE, wire.SendSE}, {service.OpSend, wire.Send}}
			var posts []service.Post
			for i := range before {
				posts = append(posts, service.Post{Op: kinds[i%2].op, Data: conformance.Pattern(8)})
			}
			for i, p := range posts {
				ids := s.Posts(p)
				s.AwaitMessage(kinds[i%2].opcode)
				rdmapInOrder(t, s, ids)
			}
			ids := s.Posts(posts...)
			for i := range posts {
				s.AwaitMessage(kinds[i%2].opcode)
			}
			rdmapInOrder(t, s, ids)
		},
	},
}

// rdmapSilent makes sure that the queue of receives, which is armed for solicited
// events, has not fired for a Send. When there are events is the interface's affair; but
// a target whose first Send has raised none treats the others alike.
func rdmapSilent(t *conformance.T, s *conformance.Stream, first bool) {
	err := t.Service().Fired(t.Context(), s.QP, service.RecvQueue, 0)
	switch {
	case service.CodeOf(err) == service.CodeTimeout:
		return
	case err != nil:
		t.Try(err, "looking for an event")
	case first:
		t.Inconclusive("the first Send has raised a solicited event: when there are events, is the interface's affair")
	}
	t.Fail("no event for a Send, as the first one raised none", "one")
}

// rdmapFires makes sure that the queue of receives fires for a Send with SE. A target may
// raise no events; but one that has raised that of the first Send raises the others.
func rdmapFires(t *conformance.T, s *conformance.Stream, first bool) {
	err := t.Service().Fired(t.Context(), s.QP, service.RecvQueue, t.Timeout())
	if service.CodeOf(err) != service.CodeTimeout {
		t.Try(err, "waiting for the event")
		return
	}
	if first {
		t.Inconclusive("the first Send with SE has raised no event, which the target may leave")
	}
	t.Fail("an event for a Send with SE, as the first one raised one", "none")
}
