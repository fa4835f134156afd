package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapLaterTerminates is Terminates of the tester's behind many messages, and behind
// another Terminate (RFC 5040 §5.4, §6.2.1, §7).
var rdmapLaterTerminates = []conformance.Case{
	{
		Clause: "rfc5040-6.2.1-3", Name: "received-later", Also: []string{"rfc5040-5.4-5", "rfc5040-7-2"},
		Title: fmt.Sprintf("After %d Writes and as many Reads, the peer's Terminate makes the target close the connection by FIN", before),
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			manyWrites(s, before)
			readsNothing(t, s, before)
			gives(s)
			end := s.AwaitEnd()
			t.Check(end == wire.Finished, "that the target closes its half by FIN", "%s", end)
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "received-later", Also: []string{"rfc5040-5.4-5", "rfc5040-6.2.1-2"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Sends, the program is told of a Terminate, nothing more comes, and its last receive completes in error", before),
		Run: func(t *conformance.T) {
			s := t.Open(laterReceives(16))
			s.Hello()
			sendsBefore(t, s)
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapTold(t, wire.RDMAPGlobal)
			finishes(t, s)
			rdmapFlushed(t, s, 1)
		},
	},
	{
		Clause: "rfc5040-6.2.1-2", Name: "received-with-reads-outstanding", Also: []string{"rfc5040-5.4-6", "rfc5040-5.4-5"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Reads of the target, a Terminate while four are outstanding and a Send waits for them: nothing more comes, and all five complete in error, in their order", before),
		Run: func(t *conformance.T) {
			const reads = 4
			s := rdmapSpeaking(t, conformance.Setup{})
			rdmapFetchesBefore(t, s)
			var posts []service.Post
			for range reads {
				f := &rdmapFetch{sink: rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite), n: 64}
				posts = append(posts, f.post(0))
			}
			ids := s.Posts(append(posts, service.Post{Op: service.OpSend, Data: conformance.Pattern(8), ReadFence: true})...)
			for range reads {
				s.AwaitMessage(wire.ReadRequest)
			}
			s.Post(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
			rdmapTold(t, wire.RDMAPGlobal)
			finishes(t, s)
			closes(t, s)
			for _, id := range ids {
				c := rdmapCompletion(t, s, service.SendQueue)
				t.Check(c.ID == id && c.Status != service.StatusSuccess, fmt.Sprintf("that request %d completes with an error", id),
					"request %d completing with status %s", c.ID, c.Status)
			}
		},
	},
	{
		Clause: "rfc5040-7-3", Name: "no-response-after-a-terminate", Also: []string{"rfc5040-5.4-5"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Reads, a Terminate while the response to the first of four more can't leave: no other response comes", before),
		Run: func(t *conformance.T) {
			const reads = 4
			s := rdmapTakes(t, reads)
			readsNothing(t, s, before)
			rdmapHoldUp(t, s, reads)
			gives(s)
			rdmapHasFailed(t, s)
			for {
				a, err := s.Next(t.Timeout())
				if over(err) {
					return
				}
				t.Check(err == nil, "that the target ends the connection", "%v", err)
				t.Check(a.Opcode == wire.ReadResponse && a.STag == 0x100, "the response that had been begun, and nothing else", "%s", a.Segment)
			}
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "second-terminate", Also: []string{"rfc5040-7-3"}, Needs: conformance.NeedService,
		Title: "Of two Terminates, the program is told of the first, and not of the second",
		Run: func(t *conformance.T) {
			second := rdmapTelling(wire.TerminateHeader{Code: wire.DDPBounds})
			second.Wrong = "the tester has ended the stream"
			rdmapTwoTerminates(t, t.Open(conformance.Setup{}), second)
		},
	},
	{
		Clause: "rfc5040-5.4-6", Name: "second-terminate-later", Also: []string{"rfc5040-7-3"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Sends, of two Terminates the program is told of the first, and not of the second", before),
		Run: func(t *conformance.T) {
			s := t.Open(laterReceives(16))
			sendsBefore(t, s)
			second := rdmapTelling(wire.TerminateHeader{Code: wire.DDPBounds})
			second.Wrong = "the tester has ended the stream"
			rdmapTwoTerminates(t, s, second)
		},
	},
}

// rdmapTwoTerminates sends two Terminates in one piece. The program is told of the first
// alone, and the connection ends.
func rdmapTwoTerminates(t *conformance.T, s *conformance.Stream, second wire.Segment) {
	s.Hello()
	first := s.Due(rdmapTelling(wire.TerminateHeader{Code: wire.RDMAPGlobal}))
	s.SetMSN(first.QN, first.MSN+1)
	second = s.Due(second)
	sendFrames(s, [][]byte{s.Frame(first.Octets(), wire.Flaw{}), s.Frame(second.Octets(), wire.Flaw{})}, fmt.Sprintf("%s, and %s", first, second), second.Wrong)
	rdmapTold(t, wire.RDMAPGlobal)
	closes(t, s)
	s.AwaitEnd()
	rdmapHasFailed(t, s)
	for {
		e, err := t.Service().Event(t.Context(), 0)
		if service.CodeOf(err) == service.CodeTimeout {
			return
		}
		t.Try(err, "looking for an event of the target")
		t.Check(e.Type != service.EventTerminated, "that the program is told of one Terminate", "%s", e.Text)
	}
}
