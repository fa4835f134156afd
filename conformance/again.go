package conformance

import (
	"urnic/conformance/wire"
)

// TryConnect is Connect for a case in which the target's program may be refused
// what the Setup asks for: it returns the error.
func (t *T) TryConnect(setup Setup) (*wire.Conn, error) {
	t.fits(setup)
	if t.role == Initiator {
		nc, err := t.session.Accept(t.ctx, setup)
		if err != nil {
			t.tape.Look(false)
			return nil, err
		}
		return t.conn(nc, false), nil
	}
	nc, err := t.session.Dial(t.ctx, setup)
	if err != nil {
		return nil, err
	}
	return t.conn(nc, true), nil
}

// AcceptAgain waits for a connection that the target opens by itself, without
// having been told to, after the last one that Accept has returned.
func (t *T) AcceptAgain() (*wire.Conn, error) {
	nc, err := t.session.Again(t.ctx)
	if err != nil {
		return nil, err
	}
	return t.conn(nc, false), nil
}

// served is what a target that was put through something has to do.
const served = "that the target still serves another connection"

// Redial opens another connection to the Responder to which an earlier one goes. It
// ends the case as failed if there is none to be had: there was one before.
func (t *T) Redial(earlier *wire.Conn) *wire.Conn {
	c, err := t.dial(earlier.RemoteAddr().String())
	if err != nil {
		t.Fail(served, "%v", err)
	}
	return c
}

// AwaitServed makes sure that the target still works after what it was put through
// on a connection: an ordinary one that is opened after it, to where a Responder
// listens or by an Initiator's program, gets into full operation and answers a
// Read of no bytes.
func (t *T) AwaitServed(after *wire.Conn) {
	c, err := t.another(after)
	if err != nil {
		t.Fail(served, "%v", err)
	}
	s := t.stream(c)
	var setup Setup
	if t.role == Responder {
		s.Request = RequestFor(setup)
		t.Try(s.SendFrame(s.Request, ""), "sending the Request")
		if s.Reply, err = s.ReadFrame(t.opts.Timeout); err != nil {
			t.Fail(served, "no Reply: %s", ended(err))
		}
		t.Check(s.Reply.Flags&wire.FlagR == 0, served, "a Reply that rejects")
	} else {
		if s.Request, err = s.ReadFrame(t.opts.Timeout); err != nil {
			t.Fail(served, "no Request: %s", ended(err))
		}
		s.Reply = ReplyFor(setup, s.Request)
		t.Try(s.SendFrame(s.Reply, ""), "sending the Reply")
	}
	theirs := s.Reply
	if t.role == Initiator {
		theirs = s.Request
	}
	s.IRD = DefaultDepth
	e, _, ok := theirs.Enhanced()
	if ok {
		s.IRD = e.IRD
	}
	s.operate()
	switch {
	case t.role == Responder:
	case ok && e.PeerToPeer:
		s.takeRTR()
	default: // RFC 5044 §7.1.2 rule 4: the Initiator goes first
		if _, err := s.Next(t.Quiet()); err != nil {
			t.Note("the target has nothing to say: %v", err)
		}
	}
	if s.IRD > 0 {
		s.AwaitAlive()
	}
}

// another opens a connection like an earlier one. An Initiator that nobody tells to
// connect does so when that one is over.
func (t *T) another(c *wire.Conn) (*wire.Conn, error) {
	if t.role == Initiator {
		if t.lasting {
			t.Try(c.Close(), "closing")
		}
		return t.TryConnect(Setup{})
	}
	return t.dial(c.RemoteAddr().String())
}
