package cases

import (
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// teardown is the cases on the ends of streams and connections (RFC 5040 §6, RFC 5041 §6, RFC 5044 §7.2).
func teardown() []conformance.Case {
	return slices.Concat(
		closedByPeer, lostStreams(), fatalErrors(),
		closedByProgram, endedByProgram,
		endedByTerminate(), terminatesOfThePeer,
	)
}

// tellsProgram waits until the target's program is told that something has become
// of the stream, and returns the event.
func tellsProgram(t *conformance.T, s *conformance.Stream) *service.Event {
	const expected = "that the target's program is told of the end of the stream"
	for {
		e, err := t.Service().Event(t.Context(), t.Timeout())
		if service.CodeOf(err) == service.CodeTimeout {
			t.Fail(expected, "no event; the state is %q", s.TargetState().State)
		}
		t.Try(err, "waiting for an event of the target")
		t.Note("the target's program gets the event %s: %s", e.Type, e.Text)
		if e.QP == s.QP {
			return e
		}
	}
}

// tellsError is tellsProgram of an error.
func tellsError(t *conformance.T, s *conformance.Stream) {
	e := tellsProgram(t, s)
	t.Check(e.Type != service.EventClosed, "that the target's program is told of an error", "the event %s", e.Type)
}

// failsWork makes sure that the next completion of a queue of the target is none of
// success.
func failsWork(t *conformance.T, s *conformance.Stream, queue string) {
	expected := "a completion of the target's " + queue + " queue, with an error"
	c, err := t.Service().Completion(t.Context(), s.QP, queue, t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail(expected, "none")
	}
	t.Try(err, "waiting for a completion of the target")
	t.Note("the target completes %s: %s", c.Op, c.Status)
	t.Check(c.Status != service.StatusSuccess, expected, "%s with success", c.Op)
}

// closes ends the tester's half by FIN. A target that has reset the connection by
// now makes no difference.
func closes(t *conformance.T, s *conformance.Stream) {
	if err := s.CloseWrite(); err != nil {
		t.Note("the connection can't be closed any more: %v", err)
	}
}

// atWork opens a stream on which the target has a Read outstanding, and a receive.
func atWork(t *conformance.T) *conformance.Stream {
	s := t.Open(conformance.Setup{})
	s.Hello() // so that a Responder may send
	t.Try(postReads(t, s, 1), "posting a Read")
	s.Await(wire.ReadRequest)
	return s
}

// workFails makes sure that the Read and the receive of atWork complete in error.
func workFails(t *conformance.T, s *conformance.Stream) {
	failsWork(t, s, service.SendQueue)
	failsWork(t, s, service.RecvQueue)
}
