package cases

import (
	"errors"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Who may send when, and where full operation begins (RFC 5044 §7.1, §7.1.2 rules
// 2 to 4).
var startupFirst = []conformance.Case{
	{
		Clause: "rfc5044-7.1.2-2", Name: "nothing-before-the-request", Roles: conformance.Responder,
		Title: "The target sends nothing while it waits for a Request",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			awaitNothing(t, o.Conn, "before the Request")
			o.send(o.frame(), "")
			o.reply()
		},
	},
	{
		Clause: "rfc5044-7.1.2-2", Name: "fpdu-in-place-of-the-request", Roles: conformance.Responder,
		Also:  []string{"rfc5044-7.1.2-3", "rfc5044-8-4"},
		Title: "An FPDU in place of the Request does not bring the target into full operation: it closes",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			o.Operate(false, false, true)
			probe := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
			probe.MSN = 1
			o.octets(o.Frame(probe.Octets(), wire.Flaw{}), probe.String(), "there was no Request")
			o.awaitClosed()
		},
	},
	{
		Clause: "rfc5044-7.1.2-5", Name: "nothing-before-the-reply", Roles: conformance.Initiator,
		Title: "The target sends nothing between its Request and the Reply, and nothing while only half of that is there",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			awaitNothing(t, o.Conn, "before the Reply")
			f := o.frame()
			b := f.Octets()
			o.octets(b[:wire.FrameLen/2], "half of a Reply", "")
			awaitNothing(t, o.Conn, "before all of the Reply")
			o.octets(b[wire.FrameLen/2:], "the rest of it", "")
			o.enter(f).AwaitAlive()
		},
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "send-waits", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A Send that the target's program posts at once waits for the tester's first FPDU",
		Run:   func(t *conformance.T) { sendWaits(t, conformance.Setup{}) },
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "marker-waits", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "With Markers, not even the first of them comes before the tester's first FPDU",
		Run:   func(t *conformance.T) { sendWaits(t, conformance.Setup{Markers: true}) },
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "send-waits-with-revision-1", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "In revision 1, too, a Send of the target waits for the tester's first FPDU",
		Run:   func(t *conformance.T) { sendWaits(t, conformance.Setup{Revision: 1}) },
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "half-an-fpdu", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A first FPDU of which the CRC is missing does not let the target send: it is not validated yet",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Posts(service.Post{Op: service.OpSend, Data: []byte("early")})
			b := s.Frame(wire.Tagged(wire.Write, 0, 0, nil).Octets(), wire.Flaw{})
			t.Try(s.SendRaw(b[:len(b)-4], "an FPDU without its CRC", "the rest follows later"), "sending")
			s.AwaitQuiet("as no FPDU is there yet that can be validated")
			t.Try(s.SendRaw(b[len(b)-4:], "the CRC", ""), "sending")
			s.AwaitMessage(wire.Send)
		},
	},
	{
		Clause: "rfc5044-7.1.2-8", Name: "first-fpdu-not-valid", Roles: conformance.Responder,
		Title: "A first FPDU with a wrong CRC does not let the target send: no FPDU comes, not even a Terminate",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.PostFlawed(wire.Tagged(wire.Write, 0, 0, nil), wrongCRC)
			a, err := s.Next(t.Timeout())
			if err == nil {
				t.Fail("no FPDU before the target has validated one", "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5044-7.1.2-17", Name: "first-fpdu", Also: []string{"rfc5044-7.1-2"}, Roles: conformance.Responder,
		Title: "The tester's first FPDU, sent as soon as the Reply is there, is passed to DDP: a Read is answered",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			f := o.frame()
			o.send(f, "")
			o.enter(f).AwaitAlive()
		},
	},
	{
		Clause: "rfc5044-7.1.2-18", Name: "full-operation", Also: []string{"rfc5044-7.1-2"}, Roles: conformance.Initiator,
		Title: "After a Reply with R=0 the target sends FPDUs, and passes the tester's to DDP: a Read is answered",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			f := o.frame()
			o.send(f, "")
			o.enter(f).AwaitAlive()
		},
	},
	{
		Clause: "rfc5044-7.1-1", Name: "right-behind-the-frames", Also: []string{"rfc5044-4.3-7", "rfc5044-7.1-2"}, Needs: conformance.NeedService,
		Title: "FPDUs and Markers begin right behind frames whose private data have odd lengths, in both directions",
		Run: func(t *conformance.T) {
			needMarkers(t)
			setup := conformance.Setup{Private: []byte("odd"), Markers: true}
			setup.Start.Markers, setup.Start.PrivateData = true, []byte("other")
			exchange(t, t.Open(setup))
		},
	},
	{
		Clause: "rfc5044-7.1-1", Name: "fpdu-behind-the-request", Roles: conformance.Responder,
		Title: "An FPDU right behind the Request comes too early: the target closes, or takes it as the first FPDU, but does not lose it",
		Run:   earlyFPDU,
	},
	{
		Clause: "rfc5044-7.1.2-1", Name: "nothing-behind-the-request", Also: []string{"rfc5044-7.1.1-17", "rfc5044-7.1.1-18"}, Roles: conformance.Initiator,
		Title: "The target's Request is a valid one: PD_Length counts all that comes before the Reply, and is at most 512",
		Run: func(t *conformance.T) {
			o := begin(t, conformance.Setup{})
			t.Check(len(o.request.Private) <= wire.MaxPrivateData, "at most 512 octets of private data", "%s", o.request)
			awaitNothing(t, o.Conn, "behind the Request")
		},
	},
}

// awaitNothing makes sure that no byte comes, and that the target does not close.
func awaitNothing(t *conformance.T, c *wire.Conn, when string) {
	_, err := c.ReadFrame(t.Quiet())
	expected := "nothing " + when
	switch {
	case err == nil:
		t.Fail(expected, "a frame")
	case c.Buffered() > 0:
		t.Fail(expected, "%s", octets(c.Buffered()))
	case !errors.Is(err, wire.ErrSilence):
		t.Fail(expected, "%s", what(err))
	}
}

// sendWaits has the target's program post a Send before the tester has sent an FPDU.
func sendWaits(t *conformance.T, setup conformance.Setup) {
	s := t.Open(setup)
	s.Posts(service.Post{Op: service.OpSend, Data: []byte("early")})
	s.AwaitQuiet("as the target has had no FPDU yet")
	t.Check(s.Buffered() == 0, "nothing, as the target has had no FPDU yet", "%s", octets(s.Buffered()))
	s.Hello()
	s.AwaitMessage(wire.Send)
}

// earlyFPDU sends a Read of no bytes together with the Request, which a peer must
// not. Nothing says what becomes of it; but it is behind the Request, and the first
// FPDU if it is one.
func earlyFPDU(t *conformance.T) {
	o := begin(t, conformance.Setup{})
	f := o.frame()
	o.Operate(false, false, true)
	probe := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
	probe.MSN = 1
	b := append(f.Octets(), o.Frame(probe.Octets(), wire.Flaw{})...)
	o.octets(b, f.String()+", and "+probe.String(), "the FPDU comes before the Reply")
	reply, err := o.ReadFrame(t.Timeout())
	if err != nil {
		t.Check(o.End() != wire.Open, "a Reply, or that the target closes the connection", "%s", what(err))
		return
	}
	s := t.NewStream(o.Conn, f, reply)
	for {
		a, err := s.Next(t.Timeout())
		if err != nil {
			t.Check(s.End() != wire.Open, "an answer to the FPDU, or that the target closes the connection", "%s", what(err))
			return
		}
		if a.Opcode == wire.ReadResponse || a.Opcode == wire.Terminate {
			return
		}
	}
}
