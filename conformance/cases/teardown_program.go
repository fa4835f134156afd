package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// disconnects has the target's program close the connection gracefully.
func disconnects(t *conformance.T, s *conformance.Stream) {
	t.Note("the target's program disconnects")
	t.Try(t.Service().BeginDisconnect(t.Context(), s.QP), "disconnecting")
}

// finishes makes sure that the target closes its half by FIN, and sends nothing
// before it.
func finishes(t *conformance.T, s *conformance.Stream) {
	const expected = "that the target closes its half by FIN"
	a, err := s.Next(t.Timeout())
	if err == nil {
		t.Fail(expected, "%s", a.Segment)
	}
	t.Check(s.End() == wire.Finished, expected, "%v", err)
}

// closedByProgram are the cases on streams that the target's program closes
// gracefully (RFC 5041 §6.2.1).
var closedByProgram = []conformance.Case{
	{
		Clause: "rfc5040-7-2", Name: "disconnect",
		Title: "When the target's program disconnects, FIN comes, and no Terminate; after the peer's FIN all is over without an error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			disconnects(t, s)
			finishes(t, s)
			closes(t, s)
			e := tellsProgram(t, s)
			t.Check(e.Type == service.EventClosed, "that the target's program is told of a graceful end", "the event %s: %s", e.Type, e.Text)
		},
	},
	{
		Clause: "rfc5041-6.2.1-1", Name: "send-after-disconnect",
		Title: "A Send that the target's program posts after it has disconnected is refused, or completes in error, and is not sent",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			disconnects(t, s)
			finishes(t, s)
			_, err := t.Service().Post(t.Context(), s.QP, service.Post{Op: service.OpSend, Data: []byte(greeting)})
			if service.CodeOf(err) == "" {
				t.Try(err, "posting a Send")
				closes(t, s)
				failsWork(t, s, service.SendQueue)
			}
		},
	},
	{
		Clause: "rfc5041-6.2.1-4", Name: "posted-before",
		Title: "What the target's program has posted before it disconnects is all sent before FIN",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.AwaitAlive()
			fill := uint8(9)
			const n, size = 4, 256 << 10
			b, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: n * size, Access: []string{service.LocalWrite}, Pattern: &fill})
			t.Try(err, "opening memory of the target")
			var posts []service.Post
			for i := range n {
				posts = append(posts, service.Post{Op: service.OpSend, SGL: []service.Piece{b.Piece(uint64(i*size), size)}})
			}
			s.Posts(posts...)
			disconnects(t, s)
			want := service.Pattern(fill, n*size)
			for i := range n {
				m := s.AwaitMessage(wire.Send)
				t.Check(bytes.Equal(m.Payload, want[i*size:(i+1)*size]), fmt.Sprintf("the octets of Send %d", i+1), "%d octets, or others", len(m.Payload))
			}
			finishes(t, s)
		},
	},
	{
		Clause: "rfc5041-6.2.1-4", Name: "read-outstanding",
		Title: "A Read that is outstanding when the target's program disconnects can still be answered, and FIN comes after that",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			t.Try(postReads(t, s, 1), "posting a Read")
			h, err := wire.ParseReadHeader(s.Await(wire.ReadRequest).Payload)
			t.Try(err, "parsing the Read Request")
			disconnects(t, s)
			s.AwaitQuiet("as the Read is not answered")
			s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(readLen)))
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			finishes(t, s)
		},
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "disconnect-before-the-first-fpdu",
		Title: "A Responder whose program disconnects before the Initiator has sent an FPDU sends none, but closes",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			disconnects(t, s)
			a, err := s.Next(t.Timeout())
			if err == nil {
				t.Fail("no FPDU", "%s", a.Segment)
			}
			t.Check(over(err), "that the target closes the connection", "%v", err)
		},
	},
	{
		Clause: "rfc5040-7-2", Name: "segment-after-disconnect",
		Title: "A Send that comes when the target has closed its half does not keep the stream from its end, and the target serves another connection",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			disconnects(t, s)
			finishes(t, s)
			m := wire.Untagged(wire.Send, []byte(greeting))
			m.Wrong = "the target has closed its half"
			s.Post(m)
			closes(t, s)
			tellsProgram(t, s)
			t.AwaitServed(s.Conn)
		},
	},
}

// endedByProgram are the cases on streams that the target's program aborts, or ends
// by a Terminate (RFC 5040 §6.2).
var endedByProgram = []conformance.Case{
	{
		Clause: "rfc5040-7-2", Name: "abort",
		Title: "When the target's program aborts, the connection ends without another message",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := atWork(t)
			t.Note("the target's program aborts")
			t.Try(t.Service().Abort(t.Context(), s.QP), "aborting")
			awaitEnd(t, s.Conn)
		},
	},
	{
		Clause: "rfc5041-6.2.2-6", Name: "abort",
		Title: "When the target's program aborts, its Read and its receive complete in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := atWork(t)
			t.Try(t.Service().Abort(t.Context(), s.QP), "aborting")
			workFails(t, s)
		},
	},
	{
		Clause: "rfc5040-6.2.1-1", Name: "by-the-program",
		Title: "When the target's program ends the stream with a Terminate, one comes, with a local catastrophic error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.AwaitAlive()
			t.Try(t.Service().BeginTerminate(t.Context(), s.QP), "terminating")
			a := s.Await(wire.Terminate)
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(err == nil && h.Code&0xFF00 == 0, "a local catastrophic error of RDMAP, 0x00..", "%s", a.Segment)
		},
	},
	{
		Clause: "rfc5040-6.2.1-3", Name: "by-the-program",
		Title: "After the Terminate of the target's program the connection is closed by FIN",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.AwaitAlive()
			t.Try(t.Service().BeginTerminate(t.Context(), s.QP), "terminating")
			s.Await(wire.Terminate)
			finishes(t, s)
		},
	},
	{
		Clause: "rfc5040-6.2.1-2", Name: "by-the-program",
		Title: "When the target's program ends the stream with a Terminate, its Read and its receive complete in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := atWork(t)
			t.Try(t.Service().BeginTerminate(t.Context(), s.QP), "terminating")
			s.Await(wire.Terminate)
			closes(t, s)
			workFails(t, s)
		},
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "terminate-before-the-first-fpdu",
		Title: "A Responder whose program wants a Terminate before the Initiator has sent an FPDU sends none until then",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			if err := t.Service().BeginTerminate(t.Context(), s.QP); err != nil {
				t.Note("the program is refused: %v", err)
			}
			if a, err := s.Next(t.Quiet()); err == nil {
				t.Fail("no FPDU", "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "abort-before-the-first-fpdu",
		Title: "A Responder whose program aborts before the Initiator has sent an FPDU sends none, and the connection ends",
		Roles: conformance.Responder, Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			t.Try(t.Service().Abort(t.Context(), s.QP), "aborting")
			awaitEnd(t, s.Conn)
		},
	},
}
