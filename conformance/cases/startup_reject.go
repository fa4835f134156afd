package cases

import (
	"bytes"
	"errors"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Rejections, and what follows on TCP (RFC 5044 §7.1.2 rules 2, 3 and 6).
var startupRejections = []conformance.Case{
	{
		Clause: "rfc5044-7.1.2-15", Name: "r-is-set", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A target whose program does not accept answers with a Reply in which R=1, with its private data",
		Run: func(t *conformance.T) {
			o := begin(t, rejecting())
			o.send(o.frame(), "")
			f := o.reply()
			t.Check(f.Flags&wire.FlagR != 0, "a Reply with R=1", "%s", f)
			_, private, _ := f.Enhanced()
			t.Check(bytes.Equal(private, reason), "the private data of the target's program", "%q", private)
		},
	},
	{
		Clause: "rfc5044-7.1.2-15", Name: "r-is-set-in-revision-1", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "In revision 1, too, a target whose program does not accept answers with a Reply in which R=1, with its private data",
		Run: func(t *conformance.T) {
			setup := rejecting()
			setup.Revision = 1
			o := begin(t, setup)
			o.send(o.frame(), "")
			f := o.reply()
			t.Check(f.Flags&wire.FlagR != 0, "a Reply with R=1", "%s", f)
			t.Check(bytes.Equal(f.Private, reason), "the private data of the target's program", "%q", f.Private)
		},
	},
	{
		Clause: "rfc5044-7.1.2-4", Name: "tcp-stays-open", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A target that has rejected leaves TCP open, as its program does not close it",
		Run: func(t *conformance.T) {
			o := rejected(t)
			awaitNothing(t, o.Conn, "behind the Reply that rejects")
		},
	},
	{
		Clause: "rfc5044-7.1.2-4", Name: "mpa-is-left", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A target that has rejected has left MPA: it answers no FPDU",
		Run: func(t *conformance.T) {
			o := rejected(t)
			s := t.NewStream(o.Conn, o.frame(), wire.Frame{})
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			s.Post(wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8)))
			awaitNoFPDU(t, s)
		},
	},
	{
		Clause: "rfc5044-7.1.2-7", Name: "mpa-is-left", Roles: conformance.Initiator,
		Title: "A target whose Request was rejected leaves MPA: it sends no FPDU, and answers none; TCP may stay open or not",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			f := o.frame()
			f.Flags |= wire.FlagR
			o.send(f, "")
			// RFC 5044 §7.1.2 leaves TCP to the ULP, and the example of §7.1.4.2 has MPA
			// close it.
			if end, err := o.ReadFrame(t.Quiet()); err == nil || o.Buffered() > 0 {
				t.Fail("nothing after the rejection", "%s", end)
			}
			o.Operate(f.Flags&wire.FlagM != 0, o.request.Flags&wire.FlagM != 0, true)
			probe := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			probe.MSN = 1
			o.octets(o.Frame(probe.Octets(), wire.Flaw{}), probe.String(), "the connection was rejected")
			if _, err := o.ReadFrame(t.Quiet()); err == nil || o.Buffered() > 0 {
				t.Fail("no answer after the rejection", "%s", octets(o.Buffered()))
			}
		},
	},
	{
		Clause: "rfc5044-7.1.2-7", Name: "told-to-the-ulp", Roles: conformance.Initiator, Needs: conformance.NeedService,
		Title: "The program of a target whose Request was rejected is told that, and gets the private data of the Reply",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{Private: reason})
			f := o.frame()
			f.Flags |= wire.FlagR
			o.send(f, "")
			e := localError(t)
			t.Check(e.Code == service.CodeRejected, "that the target's program is told of the rejection", "%s", e.Message)
			got := []byte(nil)
			if e.Failure != nil {
				got = e.Failure.PrivateData
			}
			t.Check(bytes.Equal(got, reason), "that it gets the private data of the Reply", "%q", got)
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "reset-in-start-up", Needs: conformance.NeedService,
		Title: "When the connection is reset in place of a frame, the target's program is told an error",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			sendCut(o, wire.FrameLen/2)
			t.Try(o.Reset(), "resetting the connection")
			localError(t)
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "fin-in-start-up", Needs: conformance.NeedService,
		Title: "When the peer ends its half in place of a frame, the target's program is told an error",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			sendCut(o, wire.FrameLen/2)
			t.Try(o.CloseWrite(), "ending the tester's half")
			localError(t)
		},
	},
}

var reason = []byte("not today")

// rejecting is a Setup in which the target's program rejects.
func rejecting() conformance.Setup {
	setup := conformance.Setup{Listen: func(a *service.ListenArgs) { a.Answer = service.AnswerReject }}
	setup.Start.PrivateData = reason
	return setup
}

// rejected connects to a target that rejects, and takes the Reply that says so.
func rejected(t *conformance.T) *opening {
	o := begin(t, rejecting())
	o.send(o.frame(), "")
	f, err := o.ReadFrame(t.Timeout())
	if err != nil || f.Flags&wire.FlagR == 0 {
		t.Inconclusive("the target does not reject, as its program wants")
	}
	return o
}

// awaitNoFPDU makes sure that nothing comes, but perhaps the end of the connection.
func awaitNoFPDU(t *conformance.T, s *conformance.Stream) {
	a, err := s.Next(t.Quiet())
	switch {
	case err == nil:
		t.Fail("no FPDU", "%s", a.Segment)
	case s.Buffered() > 0:
		t.Fail("no FPDU", "%s", octets(s.Buffered()))
	case !errors.Is(err, wire.ErrSilence) && s.End() == wire.Open:
		t.Inconclusive("reading: %v", err)
	}
}
