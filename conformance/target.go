package conformance

import (
	"urnic/conformance/service"
)

// Endpoint returns the target's end of the last connection, for the test service:
// the listener if it was the Responder, else the queue pair.
func (t *T) Endpoint() (listener, qp int) { return t.session.Endpoint() }

// Started returns what the target says of the start-up of its last connection: what
// was settled, or the error with which it failed. It is for connections that the
// case starts by itself; Open has asked already.
func (t *T) Started() (qp int, params *service.Params, err error) {
	c := t.Service()
	listener, qp := t.Endpoint()
	if qp != 0 {
		connected, err := c.Connected(t.ctx, qp, t.opts.Timeout)
		if err != nil {
			return qp, nil, err
		}
		return qp, &connected.Params, nil
	}
	accepted, err := c.Accepted(t.ctx, listener, t.opts.Timeout)
	if err != nil {
		return 0, nil, err
	}
	return accepted.QP, accepted.Params, nil
}

// Posts has the target post requests to its send queue, and returns their numbers.
func (s *Stream) Posts(posts ...service.Post) []uint64 {
	for _, p := range posts {
		s.t.Note("the target's program posts %s", p.Op)
	}
	ids, err := s.t.Service().Post(s.t.ctx, s.QP, posts...)
	s.t.Try(err, "posting to the target's send queue")
	return ids
}

// PostsRecv has the target post receives.
func (s *Stream) PostsRecv(lengths ...uint32) {
	_, err := s.t.Service().Recv(s.t.ctx, s.QP, service.Recvs(lengths...)...)
	s.t.Try(err, "posting to the target's receive queue")
}

// AwaitCompletion waits for the next completion of the target's queue,
// service.SendQueue or service.RecvQueue, which has to have the status.
func (s *Stream) AwaitCompletion(queue, status string) *service.Completion {
	expected := "a completion of the target's " + queue + " queue with status " + status
	c, err := s.t.Service().Completion(s.t.ctx, s.QP, queue, s.t.opts.Timeout)
	if service.CodeOf(err) == service.CodeTimeout {
		s.t.Fail(expected, "none")
	}
	s.t.Try(err, "waiting for a completion of the target")
	s.t.Note("the target completes %s: %s, %d octets", c.Op, c.Status, c.Length)
	s.t.Check(c.Status == status, expected, "%s with status %s", c.Op, c.Status)
	return c
}

// AwaitNoCompletion makes sure that the target's queue has no completion.
func (s *Stream) AwaitNoCompletion(queue, why string) {
	c, err := s.t.Service().Completion(s.t.ctx, s.QP, queue, 0)
	if service.CodeOf(err) == service.CodeTimeout {
		return
	}
	s.t.Try(err, "looking for a completion of the target")
	s.t.Fail("no completion of the target's "+queue+" queue, "+why, "%s with status %s", c.Op, c.Status)
}

// TargetState returns how the target's queue pair stands.
func (s *Stream) TargetState() *service.State {
	st, err := s.t.Service().State(s.t.ctx, s.QP)
	s.t.Try(err, "asking for the target's state")
	return st
}
