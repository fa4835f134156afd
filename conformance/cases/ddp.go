package cases

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ddp is the cases on segments, queues and offsets (RFC 5041).
func ddp() []conformance.Case {
	return slices.Concat(
		ddpLLP, ddpControl(), ddpShort(),
		ddpTagged(), ddpTaggedWrap(), ddpUntagged(), ddpMSN(), ddpMSNEight,
		ddpPlacement(), ddpPieces, ddpDelivery, ddpEmpty(),
		ddpSending, ddpCounting, ddpSizes(),
		ddpErrors, ddpReports(), ddpLater(), ddpOrder,
	)
}

// Positions of a segment in a message of three.
var positions = []string{"first", "middle", "last"}

// features returns what the target's test service says that it can do.
func features(t *conformance.T) service.Features { return t.Service().Hello().Features }

// need skips the case unless the target has an optional feature.
func need(t *conformance.T, has bool, what string) {
	if !has {
		t.Skip("the target does not offer %s", what)
	}
}

// holds makes sure of what stands in the buffer when the stream has ended, as far
// as the profile can see that: data at off, and all else as it was.
func holds(s *conformance.Stream, b *conformance.Buffer, off int, data []byte) {
	if b.MR == 0 {
		return
	}
	want := bytes.Repeat([]byte{conformance.Fill}, b.Length)
	copy(want[off:], data)
	s.AwaitContents(b, 0, want)
}

// delivers makes sure that the next receive completes with these data.
func delivers(t *conformance.T, s *conformance.Stream, data []byte) *service.Completion {
	c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
	t.Check(int(c.Length) == len(data), fmt.Sprintf("a message of %d octets", len(data)), "one of %d", c.Length)
	t.Check(bytes.Equal(c.Data, data), fmt.Sprintf("%x", head(data)), "%x", head(c.Data))
	return c
}

// head is the beginning of bytes, for people.
func head(b []byte) []byte { return b[:min(len(b), 32)] }

// deliversNothing makes sure, on a stream that has ended, that no receive has
// completed with success.
func deliversNothing(t *conformance.T, s *conformance.Stream) {
	for {
		c, err := t.Service().Completion(t.Context(), s.QP, service.RecvQueue, 0)
		if service.CodeOf(err) == service.CodeTimeout {
			return
		}
		t.Try(err, "looking for completions of the target")
		t.Check(c.Status != service.StatusSuccess, "that no message is delivered", "one of %d octets", c.Length)
	}
}

// answer returns the next segment that the target's RDMAP sends of itself, and not
// for the program that runs there: a Read Response or a Terminate.
func answer(t *conformance.T, s *conformance.Stream, op wire.Opcode) wire.Arrival {
	expected := "a segment of " + op.String()
	a, err := nextAnswer(s, t.Timeout())
	t.Check(err == nil, expected, "%v", err)
	t.Check(a.Opcode == op, expected, "%s", a.Segment)
	return a
}

func nextAnswer(s *conformance.Stream, timeout time.Duration) (wire.Arrival, error) {
	for deadline := time.Now().Add(timeout); ; {
		a, err := s.Next(time.Until(deadline))
		if err != nil || a.Opcode == wire.ReadResponse || a.Opcode == wire.Terminate || a.Opcode > wire.Terminate {
			return a, err
		}
	}
}

// refuses reports whether the target ends the stream with one of the codes. It does not
// if it answers a Read of no bytes that is sent behind what might be refused; nor if
// nothing comes, as it may hold the Read back with that.
func refuses(t *conformance.T, s *conformance.Stream, codes ...wire.Code) bool {
	if s.IRD == 0 {
		return refusesSoon(t, s, codes...)
	}
	const stag = 0xA11FE001
	s.Post(conformance.ReadRequest(stag, conformance.SinkTO, 0, 0, 0))
	a, err := nextAnswer(s, t.Timeout())
	if errors.Is(err, wire.ErrSilence) || err == nil && a.Opcode == wire.ReadResponse && a.STag == stag {
		return false
	}
	terminates(t, a, err, codes...)
	return true
}

// refusesSoon is refuses where nothing can be sent behind what might be refused. If it
// reports false, a refusal may still come: see deliversUnlessRefused.
func refusesSoon(t *conformance.T, s *conformance.Stream, codes ...wire.Code) bool {
	a, err := nextAnswer(s, t.Quiet())
	if errors.Is(err, wire.ErrSilence) {
		return false
	}
	terminates(t, a, err, codes...)
	return true
}

// deliversUnlessRefused is delivers behind a message that refusesSoon has not seen
// refused. It reports false if the target has refused it later, with one of the codes.
func deliversUnlessRefused(t *conformance.T, s *conformance.Stream, data []byte, codes ...wire.Code) bool {
	for deadline := time.Now().Add(t.Timeout()); time.Now().Before(deadline); {
		c, err := t.Service().Completion(t.Context(), s.QP, service.RecvQueue, t.Quiet())
		if service.CodeOf(err) != service.CodeTimeout {
			t.Try(err, "waiting for a completion of the target")
			t.Note("the target completes %s: %s, %d octets", c.Op, c.Status, c.Length)
			if c.Status == service.StatusSuccess {
				t.Check(bytes.Equal(c.Data, data), fmt.Sprintf("%x", head(data)), "%x", head(c.Data))
				return true
			}
		}
		if a, err := nextAnswer(s, t.Quiet()); !errors.Is(err, wire.ErrSilence) {
			terminates(t, a, err, codes...)
			return false
		}
	}
	t.Fail("that the message is delivered, or refused", "neither")
	return false
}

// terminates makes sure that what came is a Terminate with one of the codes.
func terminates(t *conformance.T, a wire.Arrival, err error, codes ...wire.Code) {
	expected := "a Terminate with " + conformance.Codes(codes...)
	t.Check(err == nil, expected, "%v", err)
	t.Check(a.Opcode == wire.Terminate, expected, "%s", a.Segment)
	h, err := wire.ParseTerminate(a.Payload)
	t.Check(err == nil, expected, "a Terminate of %d octets", len(a.Payload))
	t.Check(slices.ContainsFunc(codes, h.Code.Is), expected, "one with %s", h.Code)
}

// drain ends the tester's half, and waits until the target has ended its own: then
// it has dealt with all that was sent.
func drain(t *conformance.T, s *conformance.Stream) {
	if err := s.CloseWrite(); err != nil {
		t.Note("ending the tester's half: %v", err)
	}
	s.AwaitEnd()
}

// message returns the segments of the next message that the target sends, which has
// to be of the opcode.
func message(s *conformance.Stream, op wire.Opcode) []wire.Arrival {
	for all := []wire.Arrival(nil); ; {
		a := s.Await(op)
		if all = append(all, a); a.Last {
			return all
		}
	}
}

// payload returns the data of segments, one behind the other.
func payload(segments []wire.Arrival) []byte {
	var b []byte
	for _, a := range segments {
		b = append(b, a.Payload...)
	}
	return b
}

// breaks fails the case if a segment breaks one of the rules.
func breaks(t *conformance.T, segments []wire.Arrival, rules ...wire.Rule) {
	for _, a := range segments {
		for _, f := range a.Faults {
			t.Check(!slices.Contains(rules, f.Rule), "segments that keep the rule", "%s (in %s)", f.What, a.Segment)
		}
	}
}
