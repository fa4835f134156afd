package cases

import (
	"errors"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// An opening is a connection in start-up, where it is the tester's turn to send a
// frame: the Request to a target that is the Responder, the Reply to an Initiator.
type opening struct {
	*wire.Conn
	t       *conformance.T
	setup   conformance.Setup
	request wire.Frame // the target's, if it is the Initiator
}

// begin connects, and takes the target's Request if it is the Initiator.
func begin(t *conformance.T, setup conformance.Setup) *opening {
	o := &opening{Conn: t.Connect(setup), t: t, setup: setup}
	if t.Role() == conformance.Initiator {
		f, err := o.ReadFrame(t.Timeout())
		if err != nil {
			t.Inconclusive("there is no Request: %v", err)
		}
		o.request = f
	}
	return o
}

// frame returns the frame that an ordinary peer would send now.
func (o *opening) frame() wire.Frame {
	if o.t.Role() == conformance.Initiator {
		return conformance.ReplyFor(o.setup, o.request)
	}
	return conformance.RequestFor(o.setup)
}

// name is what the frame is called.
func (o *opening) name() string {
	if o.t.Role() == conformance.Initiator {
		return "Reply"
	}
	return "Request"
}

// send sends a frame. What can't be sent, as the target has gone, is on the tape.
func (o *opening) send(f wire.Frame, wrong string) {
	if err := o.SendFrame(f, wrong); err != nil {
		return // taped
	}
}

// bytes sends anything else.
func (o *opening) octets(b []byte, what, wrong string) {
	if err := o.SendRaw(b, what, wrong); err != nil {
		return // taped
	}
}

// awaitClosed makes sure that the target closes the connection, and sends nothing
// before.
func (o *opening) awaitClosed() {
	const expected = "that the target closes the connection, and sends nothing"
	f, err := o.ReadFrame(o.t.Timeout())
	var end *wire.EndError
	switch {
	case err == nil:
		o.t.Fail(expected, "%s", f)
	case errors.As(err, &end) && end.Rest == 0:
	default:
		o.t.Fail(expected, "%s", what(err))
	}
}

// what describes why nothing more has come.
func what(err error) string {
	if errors.Is(err, wire.ErrSilence) {
		return "nothing"
	}
	return err.Error()
}

// reply reads the Reply of a target that is the Responder.
func (o *opening) reply() wire.Frame {
	f, err := o.ReadFrame(o.t.Timeout())
	if err != nil {
		o.t.Fail("a Reply", "%s", what(err))
	}
	return f
}

// enter goes to full operation, after the tester has sent its frame f: with a
// Reply that accepts, or with what an Initiator sends first.
func (o *opening) enter(f wire.Frame) *conformance.Stream {
	t := o.t
	if t.Role() == conformance.Responder {
		reply := o.reply()
		t.Check(reply.Flags&wire.FlagR == 0, "a Reply that accepts", "%s", reply)
		s := t.NewStream(o.Conn, f, reply)
		s.IRD = depthOf(reply)
		return s
	}
	s := t.NewStream(o.Conn, o.request, f)
	s.IRD = depthOf(o.request)
	if e, _, ok := o.request.Enhanced(); ok && e.PeerToPeer {
		takeRTR(t, s)
	}
	return s
}

// depthOf returns how many Reads the sender of a frame takes at a time, or, as with
// conformance.Open, a guess if it has not said.
func depthOf(f wire.Frame) uint16 {
	if e, _, ok := f.Enhanced(); ok {
		return e.IRD
	}
	return conformance.DefaultDepth
}

// takeRTR takes what an Initiator sends first in the peer-to-peer model (RFC 6581
// §9.2).
func takeRTR(t *conformance.T, s *conformance.Stream) {
	a, err := s.Next(t.Timeout())
	if err != nil {
		t.Fail("an RTR", "%s", what(err))
	}
	if a.Opcode != wire.ReadRequest {
		return
	}
	if h, err := wire.ParseReadHeader(a.Payload); err == nil {
		s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, nil))
	}
}

// awaitOperation makes sure that the connection is in full operation: that what is
// refused by DDP is refused. It takes no Read, which a target may not want of
// revision 1, and it ends the stream.
func awaitOperation(t *conformance.T, s *conformance.Stream) {
	if s.Role == conformance.Initiator && t.HasService() {
		letSpeak(t, s)
	}
	w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
	w.Wrong = "an STag that nobody gave, to see whether that is refused"
	s.Post(w)
	s.AwaitTerminate(wire.DDPInvalidSTag)
}

// letSpeak has a target that is the Initiator send something, if it has not yet
// sent an RTR: nothing may be sent to it before (RFC 5044 §7.1.2 rule 4).
func letSpeak(t *conformance.T, s *conformance.Stream) {
	if e, _, ok := s.Request.Enhanced(); ok && e.PeerToPeer {
		return
	}
	if s.QP == 0 {
		qp, _, err := t.Started()
		t.Try(err, "asking for the target's queue pair")
		s.QP = qp
	}
	s.Posts(service.Post{Op: service.OpSend, Data: []byte("hello")})
	s.AwaitMessage(wire.Send)
}

// localError returns the error with which start-up has failed, as the target's
// program is told it.
func localError(t *conformance.T) service.Error {
	const expected = "that the target's program is told of the failure"
	if t.Role() == conformance.Responder && !t.Service().Hello().Features.Requests {
		t.Skip("the target's program can't tell of requests that have failed")
	}
	_, _, err := t.Started()
	var e *service.Error
	switch {
	case err == nil:
		t.Fail(expected, "that it has a connection")
	case !errors.As(err, &e):
		t.Try(err, "asking for the error")
	case e.Code == service.CodeTimeout:
		t.Fail(expected, "nothing")
	}
	t.Note("the target's program is told: %s", e.Message)
	return *e
}

// bytes names a number of them.
func octets(n int) string {
	if n == 1 {
		return "1 octet"
	}
	return fmt.Sprintf("%d octets", n)
}
