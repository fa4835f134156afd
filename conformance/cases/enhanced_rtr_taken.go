package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// beforeRTR is what peer-to-peer cases may do to a Responder that is none of ours.
const beforeRTR = "the connection manager of Linux siw crashes when a connection ends before its RTR"

// withPeers starts a connection in the peer-to-peer model with a Responder that
// takes these kinds of RTR.
func withPeers(t *conformance.T, k kinds) *conformance.Stream {
	knows(t, k)
	request := block(wire.RequestKey, peers(k))
	c, reply := ask(t, withRTR(k), request, "")
	return operate(t, c, request, reply)
}

// greet has the target's program post a Send.
func greet(t *conformance.T, s *conformance.Stream) {
	qp, _, err := t.Started()
	t.Check(err == nil, "that start-up succeeds", "%v", err)
	s.QP = qp
	s.Posts(service.Post{Op: service.OpSend, Data: []byte(greeting)})
}

// responderRTR returns the cases on the RTR that a Responder gets.
func responderRTR() []conformance.Case {
	cases := []conformance.Case{{
		Clause: "rfc6581-9.2-3", Name: "takes-what-it-says",
		Title: "A Responder takes an RTR of a kind that it has said, and the connection works",
		Roles: conformance.Responder,
		Run: func(t *conformance.T) {
			request := block(wire.RequestKey, peers(allRTR))
			c, reply := ask(t, conformance.Setup{}, request, "")
			s := operate(t, c, request, reply)
			if giveReady(s, kindsOf(blockOf(t, reply))) == readRTR {
				s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
			}
			s.AwaitAlive()
		},
	}}
	for _, k := range []kinds{sendRTR, writeRTR, readRTR} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.2-3", Name: "takes-" + k.String(),
			Title: fmt.Sprintf("After an RTR by %s a Responder's program can send", k),
			Roles: conformance.Responder, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := withPeers(t, k)
				if giveReady(s, k) == readRTR {
					s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 0)
				}
				greet(t, s)
				awaitGreeting(t, s)
			},
		}, conformance.Case{
			Clause: "rfc5044-7.1.2-8", Name: "peer-to-peer-before-" + k.String(),
			Title: fmt.Sprintf("In the peer-to-peer model, too, a Responder sends nothing before it has got the RTR by %s", k),
			Roles: conformance.Responder, Needs: conformance.NeedService, Harm: beforeRTR,
			Run: func(t *conformance.T) {
				s := withPeers(t, k)
				listener, _ := t.Endpoint()
				accepted, err := t.Service().Accepted(t.Context(), listener, t.Quiet())
				switch {
				case err == nil:
					s.QP = accepted.QP
					s.Posts(service.Post{Op: service.OpSend, Data: []byte(greeting)})
				case service.CodeOf(err) == service.CodeTimeout:
					t.Note("the target's program can't post before the RTR is there")
				default:
					t.Try(err, "waiting for the target's queue pair")
				}
				s.AwaitQuiet("as the RTR is not sent")
				giveReady(s, k)
			},
		})
	}
	for _, end := range []string{"FIN", "RST"} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5044-8-1", Name: "peer-to-peer-" + end + "-before-rtr",
			Title: fmt.Sprintf("A Responder whose peer ends the connection by %s in place of the RTR notices, and serves another one", end),
			Roles: conformance.Responder, Harm: beforeRTR,
			Run: func(t *conformance.T) {
				request := block(wire.RequestKey, peers(writeRTR))
				c, _ := ask(t, conformance.Setup{}, request, "")
				if end == "RST" {
					t.Try(c.Reset(), "resetting")
				} else {
					t.Try(c.CloseWrite(), "closing")
					c.Operate(false, false, true)
					awaitEnd(t, c)
				}
				t.AwaitServed(c)
			},
		})
	}
	return cases
}

// wrongRTR returns the cases on a Responder that gets another message in place of
// the RTR. The Initiator has broken a rule, for which RFC 6581 has no code of its
// own: if the Responder ends the connection, it says 0x2005 (§9.3), or that there
// is no matching RTR. RDMAP's "unexpected opcode" passes, too. A Responder may
// also take the message for what it is: it is an FPDU, and a valid one.
func wrongRTR() []conformance.Case {
	var cases []conformance.Case
	for _, w := range []struct {
		name, what string
		agreed     kinds
		message    func(t *conformance.T, s *conformance.Stream) wire.Segment
	}{
		{"send-with-data", "a Send with data", writeRTR, func(*conformance.T, *conformance.Stream) wire.Segment {
			return wire.Untagged(wire.Send, []byte(greeting))
		}},
		{"send-for-write", "a Send", writeRTR, func(*conformance.T, *conformance.Stream) wire.Segment {
			return wire.Untagged(wire.Send, nil)
		}},
		{"read-for-write", "a Read", writeRTR, func(*conformance.T, *conformance.Stream) wire.Segment {
			return conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
		}},
		{"write-for-send", "a Write", sendRTR, func(*conformance.T, *conformance.Stream) wire.Segment {
			return wire.Tagged(wire.Write, 0, 0, nil)
		}},
		{"write-for-read", "a Write", readRTR, func(*conformance.T, *conformance.Stream) wire.Segment {
			return wire.Tagged(wire.Write, 0, 0, nil)
		}},
		{"write-with-data", "a Write with data", writeRTR, func(_ *conformance.T, s *conformance.Stream) wire.Segment {
			b := s.Buffer(light)
			return wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(light))
		}},
		{"read-with-data", "a Read of data", readRTR, func(_ *conformance.T, s *conformance.Stream) wire.Segment {
			b := s.Buffer(light)
			return conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, light, b.STag, b.TO)
		}},
		{"send-with-data-for-send", "a Send with data", sendRTR, func(*conformance.T, *conformance.Stream) wire.Segment {
			return wire.Untagged(wire.Send, []byte(greeting))
		}},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc6581-9.3-1", Name: w.name,
			Title: fmt.Sprintf("A Responder that gets %s in place of the RTR, a %s, says so in a Terminate before it ends the connection, or goes on", w.what, w.agreed),
			Roles: conformance.Responder, Needs: conformance.NeedService, Harm: beforeRTR,
			Run: func(t *conformance.T) {
				s := withPeers(t, w.agreed)
				m := w.message(t, s)
				m.Wrong = "it is no RTR that was agreed upon"
				s.Post(m)
				s.Post(conformance.ReadRequest(probeSTag, 0, 0, 0, 0))
				takenOrTerminated(t, s)
			},
		})
	}
	return cases
}

// takenOrTerminated makes sure that the target answers the probe behind a message,
// or sends a Terminate.
func takenOrTerminated(t *conformance.T, s *conformance.Stream) {
	codes := []wire.Code{wire.MPACatastrophic, wire.MPANoRTR, wire.RDMAPOpcode}
	expected := "that the target goes on, or a Terminate with " + conformance.Codes(codes...)
	for {
		a, err := s.Next(t.Timeout())
		if err != nil {
			t.Fail(expected, "%v", err)
		}
		switch {
		case a.Opcode == wire.Terminate:
			h, err := wire.ParseTerminate(a.Payload)
			for _, code := range codes {
				if err == nil && h.Code == code {
					return
				}
			}
			t.Fail(expected, "%s", a.Segment)
		case a.Opcode != wire.ReadResponse:
			t.Fail(expected, "%s", a.Segment)
		case a.STag == probeSTag:
			return
		}
	}
}
