package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// closedByPeer are the cases on streams that the peer closes gracefully (RFC 5041
// §6.2.1).
var closedByPeer = []conformance.Case{
	{
		Clause: "rfc5041-6.2-1", Name: "at-rest",
		Title: "A stream that nobody ends stays, though nothing happens on it",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			if a, err := s.Next(t.Quiet()); over(err) {
				t.Fail("that the stream stays", "%v", err)
			} else if err == nil && a.Opcode == wire.Terminate {
				t.Fail("that the stream stays", "%s", a.Segment)
			}
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5041-6.2.1-5", Name: "fin-at-rest",
		Title: "The target's program is told that the peer has closed its half",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			closes(t, s)
			tellsProgram(t, s)
		},
	},
	{
		Clause: "rfc5041-6.2.1-3", Name: "fin-answered-by-fin",
		Title: "When the peer has closed its half, the target closes its own by FIN, at the latest when its program disconnects",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			closes(t, s)
			if _, err := s.Next(t.Quiet()); !over(err) { // it waits for its program
				disconnects(t, s)
			}
			end := s.AwaitEnd()
			t.Check(end == wire.Finished, "that the target closes its half by FIN", "%s", end)
		},
	},
	{
		Clause: "rfc5041-6.2.1-6", Name: "read-before-fin",
		Title: "A Read with FIN right behind it is answered all the same, or else a Terminate says why not",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(light)
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, light, b.STag, b.TO))
			closes(t, s)
			for {
				a, err := s.Next(t.Timeout())
				switch {
				case err != nil:
					t.Fail("the response to the Read, or a Terminate", "%v", err)
				case a.Opcode == wire.ReadResponse && a.Last, a.Opcode == wire.Terminate:
					return
				}
			}
		},
	},
	{
		Clause: "rfc5041-6.2.1-6", Name: "send-under-way",
		Title: "A Send that is under way when FIN comes is sent to its end, or else a Terminate says why not",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := heavyRegion(t, 0)
			s.Posts(service.Post{Op: service.OpSend, SGL: []service.Piece{b.Piece(0, heavy)}})
			closes(t, s)
			for {
				a, err := s.Next(t.Timeout())
				switch {
				case err != nil:
					t.Fail("the rest of the Send, or a Terminate", "%v", err)
				case a.Opcode == wire.Send && a.Last, a.Opcode == wire.Terminate:
					return
				}
			}
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "fin-with-a-read-outstanding",
		Title: "FIN while the target waits for the response to its Read is noticed: the Read completes in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := atWork(t)
			closes(t, s)
			s.AwaitEnd()
			t.Try(s.Close(), "closing the other half")
			failsWork(t, s, service.SendQueue)
		},
	},
	{
		Clause: "rfc5044-8-1", Name: "fin-within-a-message",
		Title: "FIN behind the first segment of a Send is noticed: the receive completes in error, if it does",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.Last = false
			s.Post(m)
			closes(t, s)
			s.AwaitEnd()
			t.Try(s.Close(), "closing the other half")
			tellsProgram(t, s)
			c, err := t.Service().Completion(t.Context(), s.QP, service.RecvQueue, 0)
			t.Check(err != nil || c.Status != service.StatusSuccess, "no receive that completes with success", "one")
		},
	},
}

// lostStreams returns the cases on connections that are reset (RFC 5041 §6.2.2).
func lostStreams() []conformance.Case {
	var cases []conformance.Case
	for _, w := range []struct {
		name, when string
		open       func(t *conformance.T) *conformance.Stream
		mpa        string
	}{
		{"at-rest", "at rest", func(t *conformance.T) *conformance.Stream {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			return s
		}, ""},
		{"at-work", "with a Read outstanding", atWork, ""},
		{"within-a-message", "in the midst of a message", func(t *conformance.T) *conformance.Stream {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.Last = false
			s.Post(m)
			s.AwaitAlive()
			return s
		}, ""},
		{"within-an-fpdu", "in the midst of an FPDU", func(t *conformance.T) *conformance.Stream {
			s := t.Open(conformance.Setup{})
			s.AwaitAlive()
			s.PostExact(s.Due(wire.Untagged(wire.Send, conformance.Pattern(8))), wire.Flaw{CutTo: 15, Wrong: "the rest does not come"})
			return s
		}, aStream},
	} {
		cases = append(cases, conformance.Case{
			Clause: "rfc5041-6.2.2-1", Name: "rst-" + w.name,
			Title: fmt.Sprintf("The target's program is told of an error when the connection is reset %s", w.when),
			Needs: conformance.NeedService, MPA: w.mpa,
			Run: func(t *conformance.T) {
				s := w.open(t)
				t.Try(s.Reset(), "resetting")
				tellsError(t, s)
			},
		})
	}
	return append(cases, conformance.Case{
		Clause: "rfc5041-6.2.2-6", Name: "rst-at-work",
		Title: "When the connection is reset, the target's Read and its receive complete in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := atWork(t)
			t.Try(s.Reset(), "resetting")
			workFails(t, s)
		},
	}, conformance.Case{
		Clause: "rfc5041-6.2.2-6", Name: "rst-with-a-send-held-up",
		Title: "When the connection is reset, a Send that the peer's window has held up completes in error",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			b := heavyRegion(t, 0)
			s.Posts(service.Post{Op: service.OpSend, SGL: []service.Piece{b.Piece(0, heavy)}})
			s.Await(wire.Send)
			t.Try(s.Reset(), "resetting")
			failsWork(t, s, service.SendQueue)
		},
	})
}

// fatalErrors returns the cases on errors that leave the connection intact (RFC 5041
// §6.2.2).
func fatalErrors() []conformance.Case {
	var cases []conformance.Case
	for _, w := range []struct {
		clause, name, what string
		message            func() wire.Segment
		flaw               wire.Flaw
	}{
		{"rfc5041-6.2.2-2", "crc", "an FPDU with a wrong CRC", func() wire.Segment { return wire.Tagged(wire.Write, 0, 0, nil) }, wire.Flaw{
			CRC: func(crc uint32) uint32 { return crc ^ 1 }, Wrong: "a bit of the CRC is wrong",
		}},
		{"rfc5041-6.2.2-3", "version", "a segment with DV=2", func() wire.Segment {
			s := wire.Tagged(wire.Write, 0, 0, nil)
			s.Version, s.Wrong = 2, "DV is 2"
			return s
		}, wire.Flaw{}},
		{"rfc5041-6.2.2-3", "queue", "a segment for queue 7", func() wire.Segment {
			s := wire.Untagged(wire.Send, conformance.Pattern(4))
			s.QN, s.MSN, s.Wrong = 7, 1, "there is no queue 7"
			return s
		}, wire.Flaw{}},
		{"rfc5041-6.2.2-3", "stag", "a segment with an STag that nobody gave", func() wire.Segment {
			s := wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(4))
			s.Wrong = "nobody gave the STag"
			return s
		}, wire.Flaw{}},
		{"rfc5041-6.2.2-3", "message-offset", "a segment with an MO beyond the buffer", func() wire.Segment {
			s := wire.Untagged(wire.Send, conformance.Pattern(4))
			s.MSN, s.MO, s.Wrong = 1, 1<<20, "MO is beyond the buffer"
			return s
		}, wire.Flaw{}},
	} {
		cases = append(cases, conformance.Case{
			Clause: w.clause, Name: w.name,
			Title: fmt.Sprintf("The target's program is told of an error after %s", w.what),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.AwaitAlive()
				s.PostExact(w.message(), w.flaw)
				tellsError(t, s)
			},
		}, conformance.Case{
			Clause: "rfc5041-6.2.2-7", Name: "terminate-after-" + w.name, Also: []string{"rfc5041-6.2.2-4"},
			Title: fmt.Sprintf("After %s DDP leaves the stream as it is, so that RDMAP can send a Terminate", w.what),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				s.AwaitAlive()
				s.PostExact(w.message(), w.flaw)
				untilTerminate(t, s)
			},
		})
	}
	return cases
}

// untilTerminate makes sure that a Terminate comes, whatever it says.
func untilTerminate(t *conformance.T, s *conformance.Stream) {
	for {
		a, err := s.Next(t.Timeout())
		if err != nil {
			t.Fail("a Terminate", "%v", err)
		}
		if a.Opcode == wire.Terminate {
			return
		}
	}
}
