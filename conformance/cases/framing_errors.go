package cases

import (
	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// What errors come to, and the end of the connection (RFC 5044 §7.2, §8).
var framingErrors = []conformance.Case{
	{
		Clause: "rfc5044-8-6", Name: "write-behind-an-error", Needs: conformance.NeedService,
		Title: "After an FPDU with a wrong CRC no other one is passed to DDP: a Write right behind it is not placed",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := s.Buffer(64)
			behindError(s, wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(64)))
			s.AwaitTeardown()
			endHalf(s)
			s.AwaitEnd()
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5044-8-6", Name: "send-behind-an-error", Needs: conformance.NeedService,
		Title: "After an FPDU with a wrong CRC no other one is passed to DDP: a Send right behind it is not delivered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			send := wire.Untagged(wire.Send, []byte("too late"))
			send.MSN = 1
			behindError(s, send)
			s.AwaitTeardown()
			endHalf(s)
			s.AwaitCompletion(service.RecvQueue, service.StatusFlushed)
		},
	},
	{
		Clause: "rfc5044-8-6", Name: "read-behind-an-error",
		Title: "After an FPDU with a wrong CRC no other one is passed to DDP: a Read right behind it is not answered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			read := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			read.MSN = 1
			behindError(s, read)
			for {
				a, err := s.Next(t.Timeout())
				if err != nil {
					t.Check(s.End() != wire.Open, "that the target ends the stream", "%s", what(err))
					return
				}
				t.Check(a.Opcode != wire.ReadResponse, "no answer to what follows an error", "%s", a.Segment)
				if a.Opcode == wire.Terminate {
					endHalf(s)
				}
			}
		},
	},
	{
		Clause: "rfc5044-8-8", Name: "crc-error", Also: []string{"rfc5044-8-2", "rfc5044-8-7"},
		Title: "After a wrong CRC, TCP stays open for RDMAP, which is given MPA's error 2: Terminate 0x2002",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.PostFlawed(wire.Tagged(wire.Write, 0, 0, nil), wrongCRC)
			s.AwaitTerminate(wire.MPACRC)
		},
	},
	{
		Clause: "rfc5044-8-8", Name: "crc-error-told", Also: []string{"rfc5044-8-2"}, Needs: conformance.NeedService,
		Title: "After a wrong CRC the target's program is told MPA's error 2",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.PostFlawed(wire.Tagged(wire.Write, 0, 0, nil), wrongCRC)
			s.AwaitTeardown()
			toldOf(t, s, 2)
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "reset", Also: []string{"rfc5044-8-8"}, Needs: conformance.NeedService,
		Title: "When the connection is reset, the target's program is told that it is lost",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			t.Try(s.Reset(), "resetting the connection")
			awaitEvent(t)
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "fin-within-an-fpdu", Needs: conformance.NeedService,
		Title: "When the connection ends within an FPDU, the target's program is told of the end, and not of a graceful one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			b := merged(s, wire.Tagged(wire.Write, 0, 0, nil))
			sendRaw(s, b[:len(b)/2], "half of a Write", "the rest does not come")
			endHalf(s)
			s.AwaitEnd()
			// RFC 5041 §2.3: a graceful teardown lets messages that are outstanding
			// complete.
			e := awaitEvent(t)
			t.Check(e.Type != service.EventClosed, "that the target's program is told of an error", "of a graceful end: %s", e.Text)
		},
	},
	{
		Clause: "rfc5044-7.2-1", Name: "fin", Also: []string{"rfc5044-3-12", "rfc5044-8-1"}, Needs: conformance.NeedService,
		Title: "When the tester ends its half between two FPDUs, the target is made aware of it: its program is told of the end",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			endHalf(s)
			s.AwaitEnd()
			awaitEvent(t)
		},
	},
	{
		Clause: "rfc5044-7.2-1", Name: "ends-its-half",
		Title: "When the tester ends its half between two FPDUs, the target ends the other one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			endHalf(s)
			s.AwaitEnd()
		},
	},
}

// behindError sends a segment right behind an FPDU with a wrong CRC.
func behindError(s *conformance.Stream, seg wire.Segment) {
	b := s.Frame(wire.Tagged(wire.Write, 0, 0, nil).Octets(), wrongCRC)
	b = append(b, merged(s, seg)...)
	sendRaw(s, b, "an RDMA Write of no octets, and "+seg.String(), "a bit of the first one's CRC is wrong")
}

// awaitEvent waits until the target's program is told of the end of a stream, in
// whatever words.
func awaitEvent(t *conformance.T) *service.Event {
	e, err := t.Service().Event(t.Context(), t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail("that the target's program is told of the end", "nothing")
	}
	t.Try(err, "waiting for an event")
	t.Note("the target's program is told: %s", e.Text)
	return e
}

// toldOf makes sure that the target's program knows MPA's error.
func toldOf(t *conformance.T, s *conformance.Stream, code uint8) {
	st := s.TargetState()
	const expected = "that the target's program is told MPA's error"
	t.Check(st.Failure != nil, expected, "no error in state %s", st.State)
	t.Check(st.Failure.MPACode == code, expected, "error %d: %s", st.Failure.MPACode, st.Failure.Text)
}
