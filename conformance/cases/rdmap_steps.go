package cases

import (
	"slices"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapSpeaking opens a stream on which the target may send: as the Responder, it
// has to have received something before (RFC 5044 §7.1.2 rule 4).
func rdmapSpeaking(t *conformance.T, setup conformance.Setup) *conformance.Stream {
	s := t.Open(setup)
	if t.Role() == conformance.Responder {
		s.Hello()
	}
	return s
}

// rdmapReading opens a stream for a case that reads the target's memory. It skips
// the case if the target takes no Reads.
func rdmapReading(t *conformance.T, setup conformance.Setup) *conformance.Stream {
	s := t.Open(setup)
	if s.IRD == 0 {
		t.Skip("the target takes no Reads")
	}
	return s
}

// rdmapFeatures returns what the target can do.
func rdmapFeatures(t *conformance.T) *service.Features { return &t.Service().Hello().Features }

// rdmapLacks skips the case if the target has not something.
func rdmapLacks(t *conformance.T, lacks bool, what string) {
	if lacks {
		t.Skip("the target has no %s", what)
	}
}

// rdmapSeed is that of the pattern in memory that rdmapRegion opens.
const rdmapSeed = 0x5A

// rdmapRegion opens memory of the target that holds a pattern, with some rights.
func rdmapRegion(t *conformance.T, n int, access ...string) *service.Region {
	seed := uint8(rdmapSeed)
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: uint64(n), Access: access, Pattern: &seed})
	t.Try(err, "opening memory of the target")
	t.Note("the target opens STag %s, TO %s, %d octets, for %v", r.STag, r.TO, r.Length, access)
	return r
}

// rdmapHolds makes sure that a region holds data from offset off on.
func rdmapHolds(t *conformance.T, mr int, off uint64, data []byte, expected string) {
	got, err := t.Service().MemoryRead(t.Context(), mr, off, len(data))
	t.Try(err, "looking into the target's memory")
	t.Check(slices.Equal(got, data), expected, "%x in place of %x", rdmapClip(got), rdmapClip(data))
}

// rdmapClip returns the beginning of bytes.
func rdmapClip(b []byte) []byte { return b[:min(len(b), 24)] }

// rdmapEvent waits until the target tells its program of an event of a type.
func rdmapEvent(t *conformance.T, kind string) *service.Event {
	deadline := time.Now().Add(t.Timeout())
	for {
		e, err := t.Service().Event(t.Context(), max(0, time.Until(deadline)))
		if service.CodeOf(err) == service.CodeTimeout {
			t.Fail("that the target's program is told of an event of type "+kind, "none")
		}
		t.Try(err, "waiting for an event of the target")
		t.Note("the target's program is told: %s (%s)", e.Type, e.Text)
		if e.Type == kind {
			return e
		}
	}
}

// rdmapMessage returns the segments of the next message of the target, which has to
// be of the opcode.
func rdmapMessage(t *conformance.T, s *conformance.Stream, op wire.Opcode) []wire.Arrival {
	expected := "a segment of " + op.String()
	var message []wire.Arrival
	for {
		a, err := s.Answer(t.Timeout())
		if err != nil {
			t.Fail(expected, "%v", err)
		}
		t.Check(a.Opcode == op, expected, "%s", a.Segment)
		message = append(message, a)
		if a.Last {
			return message
		}
	}
}

// rdmapPayload joins the payloads of segments.
func rdmapPayload(message []wire.Arrival) []byte {
	var b []byte
	for _, a := range message {
		b = append(b, a.Payload...)
	}
	return b
}

// rdmapHasFailed waits until the target's queue pair has failed, and says why.
func rdmapHasFailed(t *conformance.T, s *conformance.Stream) {
	for deadline := time.Now().Add(t.Timeout()); ; {
		st := s.TargetState()
		if st.State != service.StateRTS && st.State != service.StateIdle && st.Failure != nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fail("a queue pair that has failed, and why", "one in state %s (failure: %v)", st.State, st.Failure)
		}
	}
}

// rdmapFlushed makes sure that the target's receives complete, and not with success,
// now that the stream has ended.
func rdmapFlushed(t *conformance.T, s *conformance.Stream, receives int) {
	t.Try(s.CloseWrite(), "closing the tester's half")
	for range receives {
		c := rdmapCompletion(t, s, service.RecvQueue)
		t.Check(c.Status != service.StatusSuccess, "that the receive does not complete with success", "%d octets in it", c.Length)
	}
}

// rdmapDrain takes what still comes, until the connection ends or nothing comes.
func rdmapDrain(t *conformance.T, s *conformance.Stream) {
	for {
		if _, err := s.Answer(t.Quiet()); err != nil {
			return
		}
	}
}
