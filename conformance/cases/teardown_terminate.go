package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// A mistake is something of the tester for which the target sends a Terminate.
type mistake struct {
	name, what string
	message    func() wire.Segment
	flaw       wire.Flaw
}

// mistakes are one of each layer.
var mistakes = []mistake{
	{"rdmap", "a message with an opcode that is none", func() wire.Segment {
		m := wire.Tagged(wire.Opcode(13), 0, 0, nil)
		m.Wrong = "there is no opcode 13"
		return m
	}, wire.Flaw{}},
	{"ddp", "a Write to an STag that nobody gave", func() wire.Segment {
		m := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(4))
		m.Wrong = "nobody gave the STag"
		return m
	}, wire.Flaw{}},
	{"mpa", "an FPDU with a wrong CRC", func() wire.Segment { return wire.Tagged(wire.Write, 0, 0, nil) }, wire.Flaw{
		CRC: func(crc uint32) uint32 { return ^crc }, Wrong: "the CRC is wrong",
	}},
}

// errs makes a mistake.
func (m mistake) errs(s *conformance.Stream) { s.PostExact(m.message(), m.flaw) }

// endedByTerminate returns the cases on what comes with and after a Terminate of the
// target (RFC 5040 §6.2.1).
func endedByTerminate() []conformance.Case {
	var cases []conformance.Case
	for _, m := range mistakes {
		cases = append(cases, conformance.Case{
			Clause: "rfc5040-6.2.1-1", Name: m.name,
			Title: fmt.Sprintf("The target answers %s with a Terminate", m.what),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.AwaitAlive()
				m.errs(s)
				untilTerminate(t, s)
			},
		}, conformance.Case{
			Clause: "rfc5040-6.2.1-3", Name: "sent-for-" + m.name,
			Title: fmt.Sprintf("After its Terminate for %s the target closes the connection by FIN", m.what),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.AwaitAlive()
				m.errs(s)
				end := s.AwaitEnd()
				t.Check(end == wire.Finished, "that the target closes its half by FIN", "%s", end)
			},
		}, conformance.Case{
			Clause: "rfc5040-6.2.1-2", Name: "sent-for-" + m.name,
			Title: fmt.Sprintf("When the target ends the stream for %s, its Read and its receive complete in error", m.what),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := atWork(t)
				m.errs(s)
				untilTerminate(t, s)
				closes(t, s)
				workFails(t, s)
			},
		}, conformance.Case{
			Clause: "rfc5040-5.4-7", Name: "crossing-" + m.name,
			Title: fmt.Sprintf("When %s has the peer's own Terminate behind it, nothing follows upon the target's Terminate, and the connection ends", m.what),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.AwaitAlive()
				m.errs(s)
				s.Post(wire.Untagged(wire.Terminate, wire.TerminateHeader{Code: wire.LocalCatastrophic}.Octets()))
				crossed(t, s)
			},
		})
	}
	return append(cases, noResetBehind)
}

// noResetBehind is the case on what follows upon the target's Terminate and FIN. A
// reset could overtake them at a peer that has not read them yet.
var noResetBehind = conformance.Case{
	Clause: "rfc5040-6.2.1-3", Name: "no-reset-behind",
	Title: "Behind its Terminate and FIN the target does not reset the connection, while the peer closes its half",
	Run: func(t *conformance.T) {
		s := t.Open(conformance.Setup{})
		s.AwaitAlive()
		mistakes[0].errs(s)
		if s.AwaitEnd() != wire.Finished {
			t.Fail("that the target closes its half by FIN", "RST")
		}
		s.AwaitQuietEnd()
		err := s.SendRaw([]byte{0}, "an octet, to see whether the connection is there", "")
		t.Check(err == nil, "that the connection is there until the peer has closed its half", "%v", err)
	},
}

// crossed makes sure that at most one Terminate comes, nothing after it, and the end.
func crossed(t *conformance.T, s *conformance.Stream) {
	sent := false
	for {
		a, err := s.Next(t.Timeout())
		if over(err) {
			return
		}
		t.Check(err == nil, "that the target ends the connection", "%v", err)
		t.Check(!sent, "nothing after the target's Terminate", "%s", a.Segment)
		sent = a.Opcode == wire.Terminate
	}
}

// gives posts a Terminate of the tester, for no reason that it tells.
func gives(s *conformance.Stream) {
	s.Post(wire.Untagged(wire.Terminate, wire.TerminateHeader{Code: wire.LocalCatastrophic}.Octets()))
}

// terminatesOfThePeer are the cases on streams that the tester ends with a Terminate.
var terminatesOfThePeer = []conformance.Case{
	{
		Clause: "rfc5040-6.2.1-3", Name: "received",
		Title: "After the peer's Terminate the target closes the connection by FIN",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			gives(s)
			end := s.AwaitEnd()
			t.Check(end == wire.Finished, "that the target closes its half by FIN", "%s", end)
		},
	},
	{
		Clause: "rfc5040-6.2.1-2", Name: "received",
		Title: "When the peer ends the stream with a Terminate, the target's Read and its receive complete in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := atWork(t)
			gives(s)
			closes(t, s)
			workFails(t, s)
		},
	},
	{
		Clause: "rfc5040-6.2.1-2", Name: "received-with-sends-held-up",
		Title: "When the peer ends the stream with a Terminate, a Send that its window has held up completes in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := heavyRegion(t, 0)
			s.Posts(service.Post{Op: service.OpSend, SGL: []service.Piece{b.Piece(0, heavy)}})
			s.Await(wire.Send)
			gives(s)
			tellsProgram(t, s)
			closes(t, s)
			untilEnd(t, s.Conn)
			failsWork(t, s, service.SendQueue)
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "with-fin-behind",
		Title: "A Terminate with FIN right behind it reaches the target's program as a Terminate",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			gives(s)
			closes(t, s)
			e := tellsProgram(t, s)
			t.Check(e.Type == service.EventTerminated, "that the target's program is told of the Terminate", "the event %s: %s", e.Type, e.Text)
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "in-place-of-the-rtr",
		Title: "A Terminate 0x2007 in place of the RTR reaches the Responder's program as a Terminate",
		Roles: conformance.Responder, Needs: conformance.NeedService, Harm: beforeRTR, MPA: "ready-to-receive indication",
		Run: func(t *conformance.T) {
			knows(t, writeRTR)
			request := block(wire.RequestKey, peers(sendRTR))
			c, reply := ask(t, withRTR(writeRTR), request, "")
			s := operate(t, c, request, reply)
			s.Post(wire.Untagged(wire.Terminate, wire.TerminateHeader{Code: wire.MPANoRTR}.Octets()))
			closes(t, s)
			qp, _, err := t.Started()
			if err != nil { // a failure of start-up is told with it
				f := failureIn(err)
				t.Check(f != nil && f.Terminate != nil, "that the target's program is told of the Terminate", "%v", err)
				return
			}
			s.QP = qp
			e := tellsProgram(t, s)
			t.Check(e.Type == service.EventTerminated, "that the target's program is told of the Terminate", "the event %s: %s", e.Type, e.Text)
		},
	},
	{
		Clause: "rfc5040-7-2", Name: "data-after-terminate",
		Title: "Messages behind the peer's Terminate don't keep the target from closing the connection, and it serves another one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			gives(s)
			for range 3 {
				m := wire.Tagged(wire.Write, 0, 0, nil)
				m.Wrong = "it follows upon a Terminate"
				s.Post(m)
			}
			s.AwaitEnd()
			t.AwaitServed(s.Conn)
		},
	},
	{
		Clause: "rfc5040-7-2", Name: "terminate-and-an-open-half",
		Title: "After its Terminate the target ends the connection, though the peer does not close its half",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			configures(t, service.ConfigureArgs{CloseTimeout: 200})
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			mistakes[1].errs(s)
			untilTerminate(t, s)
			_, err := t.Service().Becomes(t.Context(), s.QP, service.StateError, t.Timeout())
			t.Check(err == nil, "that the connection ends on the target's side", "%v", err)
		},
	},
}
