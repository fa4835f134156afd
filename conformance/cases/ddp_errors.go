package cases

import (
	"errors"
	"strings"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// What follows upon an error (RFC 5041 §7.1): nothing more is placed, delivered or
// answered, and the target's program is told.
var ddpErrors = []conformance.Case{
	{
		Clause: "rfc5041-7.1-12", Name: "writes-after-a-tagged-error",
		Title: "After a Write to an STag that nobody gave, a valid Write is not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			together(t, s, append([]wire.Segment{badWrite()}, validWrite(b)...)...)
			s.AwaitTerminate(wire.DDPInvalidSTag)
			drain(t, s)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-12", Name: "writes-after-an-untagged-error",
		Title: "After a Send to a queue that there is not, a valid Write is not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.QN, m.MSN, m.Wrong = 4, 1, "a queue that there is not"
			together(t, s, append([]wire.Segment{m}, validWrite(b)...)...)
			s.AwaitTerminate(wire.DDPInvalidQN)
			drain(t, s)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-12", Name: "sends-after-a-tagged-error",
		Title: "After a Write to an STag that nobody gave, valid Sends are not delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8, 8}})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			sends := []wire.Segment{badWrite(), m, m, m}
			for i := range sends {
				sends[i].MSN = uint32(i)
			}
			together(t, s, sends...)
			s.AwaitTerminate(wire.DDPInvalidSTag)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-12", Name: "sends-after-an-untagged-error",
		Title: "After a Send that is too long, Sends that would fit are not delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8, 8}})
			long := wire.Untagged(wire.Send, conformance.Pattern(9))
			long.Wrong = "it is one octet longer than the receive"
			again := wire.Untagged(wire.Send, conformance.Pattern(8))
			next := again
			long.MSN, again.MSN, next.MSN = 1, 1, 2
			together(t, s, long, again, next)
			s.AwaitTerminate(wire.DDPTooLong)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-12", Name: "rest-of-the-message",
		Title: "After the first of three segments of a Write, that begins before the buffer, the two that lie in it are not placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO-1, conformance.Pattern(24)), 8)
			segments[0].Wrong = "it begins one octet before the buffer"
			together(t, s, segments...)
			s.AwaitTerminate(wrapCodes...) // if the buffer begins at TO 0, it wraps
			drain(t, s)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5041-7.1-12", Name: "read-request-after-an-error",
		Title: "After a Write to an STag that nobody gave, a Read Request is not answered: the Terminate is the last that comes",
		Also:  []string{"rfc5041-3-14"},
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(badWrite(), conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			s.AwaitTerminate(wire.DDPInvalidSTag)
			nothingMore(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-12", Name: "silently",
		Title: "After a Write to an STag that nobody gave, further errors are dropped silently: one Terminate comes, for the first",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.QN, m.MSN, m.Wrong = 4, 1, "a queue that there is not"
			s.Post(badWrite())
			s.PostExact(m, wire.Flaw{})
			s.Post(badWrite())
			s.AwaitTerminate(wire.DDPInvalidSTag)
			nothingMore(t, s)
		},
	},
	{
		Clause: "rfc5041-3-14", Name: "nothing-more-is-sent",
		Title: "After the Terminate for an error, nothing is sent of the Sends that the target's program has posted behind a long Write",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			unhurried(t)
			s := opened(t)
			long := stalled(t)
			s.Posts(service.Post{Op: service.OpWrite, SGL: []service.Piece{long}, Remote: theirs},
				service.Post{Op: service.OpSend, Data: []byte{1}}, service.Post{Op: service.OpSend, Data: []byte{2}})
			s.Await(wire.Write)
			s.Post(badWrite())
			if _, err := t.Service().Event(t.Context(), t.Timeout()); err != nil {
				t.Inconclusive("whether the target has dealt with the error can't be seen: %v", err)
			}
			for {
				a, err := s.Next(t.Timeout())
				t.Check(err == nil, "a Terminate", "%v", err)
				if a.Opcode == wire.Terminate {
					break
				}
			}
			nothingMore(t, s)
		},
	},
	{
		Clause: "rfc5041-3-12", Name: "after-an-error",
		Title: "When its one stream has ended with an error, the target ends the connection of its lower layer",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(badWrite())
			s.AwaitTerminate(wire.DDPInvalidSTag)
			drain(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-11", Name: "tagged",
		Title: "A Write to an STag that nobody gave is reported to the target's program",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(badWrite())
			reported(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-11", Name: "untagged",
		Title: "A Send that is too long is reported to the target's program, and not delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8}})
			m := wire.Untagged(wire.Send, conformance.Pattern(9))
			m.Wrong = "it is one octet longer than the receive"
			s.Post(m)
			reported(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-16", Name: "terminate",
		Title: "After an error the target can send one more message: the Terminate comes, whole",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(badWrite())
			a := answer(t, s, wire.Terminate)
			t.Check(a.Last, "a whole message", "%s", a.Segment)
		},
	},
}

// badWrite is a Write that DDP has to refuse.
func badWrite() wire.Segment {
	w := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8))
	w.Wrong = "an STag that nobody gave"
	return w
}

// validWrite fills the buffer with a Write that only an error before them forbids to
// place.
func validWrite(b *conformance.Buffer) []wire.Segment {
	return conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(b.Length)), 8)
}

// together sends segments in one piece of the stream, so that the target may have
// them all when it finds the error in the first. MSNs are as they stand.
func together(t *conformance.T, s *conformance.Stream, segments ...wire.Segment) {
	var frames [][]byte
	var what []string
	for _, seg := range segments {
		frames = append(frames, s.Frame(seg.Octets(), wire.Flaw{}))
		what = append(what, seg.String())
	}
	t.Try(s.SendFrames(frames, strings.Join(what, "; then "), "the first: "+segments[0].Wrong), "sending")
}

// nothingMore ends the tester's half, and makes sure that the target sends nothing
// before it ends its own.
func nothingMore(t *conformance.T, s *conformance.Stream) {
	const expected = "nothing but the end of the connection"
	if err := s.CloseWrite(); err != nil {
		t.Note("ending the tester's half: %v", err)
	}
	a, err := s.Next(t.Timeout())
	t.Check(err != nil, expected, "%s", a.Segment)
	t.Check(errors.As(err, new(*wire.EndError)), expected, "%v", err)
}

// reported makes sure that the target's program learns of an error of the stream.
func reported(t *conformance.T, s *conformance.Stream) {
	const expected = "that the target's program is told of an error of the stream"
	e, err := t.Service().Event(t.Context(), t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail(expected, "nothing")
	}
	t.Try(err, "waiting for an event of the target")
	t.Check(e.Type != service.EventClosed, expected, "%s: %s", e.Type, e.Text)
	t.Check(s.TargetState().State != service.StateRTS, expected, "the event %s, and a stream in full operation", e.Type)
}
