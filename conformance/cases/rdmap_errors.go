package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapErrors is the cases on errors, beyond the bytes of their Terminates (RFC 5040
// §7).
func rdmapErrors() []conformance.Case {
	return slices.Concat(rdmapFirstError, rdmapLocalErrors)
}

// Of several errors, the first counts; and what follows it doesn't.
var rdmapFirstError = []conformance.Case{
	rdmapTwoErrors("write-then-read", rdmapWrongdoings[0], rdmapWrongdoings[2]),
	rdmapTwoErrors("read-then-write", rdmapWrongdoings[2], rdmapWrongdoings[0]),
	rdmapTwoErrors("opcode-then-queue", rdmapWrongdoings[4], rdmapWrongdoings[1]),
	rdmapTwoErrors("queue-then-opcode", rdmapWrongdoings[1], rdmapWrongdoings[4]),
	{
		Clause: "rfc5040-7.1-5", Name: "two-writes",
		Title: "Of two RDMA Writes to STags that nobody gave, the Terminate has the first one's header",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			first, second := wire.Tagged(wire.Write, 0xDEADBE00, 8, conformance.Pattern(8)), wire.Tagged(wire.Write, 0xDEADBF00, 16, conformance.Pattern(16))
			first.Wrong, second.Wrong = "nobody gave the STag", "nobody gave the STag"
			s.Post(first, second)
			h, err := wire.ParseTerminate(s.AwaitTerminate(wire.DDPInvalidSTag).Payload)
			t.Check(err == nil, "a Terminate Header", "none")
			p, _ := rdmapTail(t, h)
			if p.ddp == nil {
				t.Skip("the Terminate has no DDP header")
			}
			t.Check(bytes.Equal(p.ddp, first.Header()), fmt.Sprintf("the first one's header %x", first.Header()), "%x", p.ddp)
		},
	},
	{
		Clause: "rfc5040-7-3", Name: "no-write-after-an-error", Needs: conformance.NeedService,
		Title: "An RDMA Write behind a wrong message is not placed",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			s.Hello()
			s.Post(rdmapStray(wire.Send, rdmapTagged), wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(64)))
			s.AwaitTerminate(wire.RDMAPOpcode)
			t.Try(s.CloseWrite(), "closing the tester's half")
			s.AwaitEnd()
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc5040-7-3", Name: "no-send-after-an-error", Needs: conformance.NeedService,
		Title: "A Send behind a wrong message is not delivered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapStray(wire.Send, rdmapTagged), wire.Untagged(wire.Send, conformance.Pattern(8)))
			s.AwaitTerminate(wire.RDMAPOpcode)
			rdmapFlushed(t, s, 1)
		},
	},
	{
		Clause: "rfc5040-7-1", Name: "erroneous-after-an-error", Needs: conformance.NeedService,
		Title: "After a wrong message the stream counts as erroneous: the program can't send on it any more",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapStray(wire.Send, rdmapTagged))
			s.AwaitTerminate(wire.RDMAPOpcode)
			rdmapHasFailed(t, s)
			_, err := t.Service().Post(t.Context(), s.QP, service.Post{Op: service.OpSend, Data: conformance.Pattern(8)})
			if err == nil {
				t.Try(s.CloseWrite(), "closing the tester's half")
				c := rdmapCompletion(t, s, service.SendQueue)
				t.Check(c.Status != service.StatusSuccess, "that the Send does not complete with success", "that it does")
			}
		},
	},
	{
		Clause: "rfc5040-7.1-1", Name: "program-is-told", Needs: conformance.NeedService,
		Title: "The target's program is told of an error in what the peer has sent",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapStray(wire.Send, rdmapTagged))
			s.AwaitTerminate(wire.RDMAPOpcode)
			rdmapHasFailed(t, s)
		},
	},
	{
		Clause: "rfc5040-5.4-7", Name: "no-response-after-the-terminate",
		Title: "Reads before a wrong message are answered before the Terminate, or not at all",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			for range min(s.IRD, 8) {
				s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			}
			s.Post(rdmapStray(wire.Send, rdmapTagged))
			rdmapLast(t, s)
		},
	},
	{
		Clause: "rfc5040-5.4-7", Name: "requests-of-the-program-stay", Needs: conformance.NeedService,
		Title: "What the program posts after an error is not sent behind the Terminate",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			s.Post(rdmapStray(wire.Send, rdmapTagged))
			for range 3 {
				_, err := t.Service().Post(t.Context(), s.QP, service.Post{Op: service.OpWrite, Data: conformance.Pattern(8), Remote: rdmapRemote(0)})
				if code := service.CodeOf(err); code != service.CodeState && code != service.CodeRefused {
					t.Try(err, "posting to the target's send queue")
				}
			}
			rdmapLast(t, s)
		},
	},
}

// rdmapTwoErrors is the case of two wrong messages at once.
func rdmapTwoErrors(name string, first, second rdmapWrongdoing) conformance.Case {
	return conformance.Case{
		Clause: "rfc5040-7.1-5", Name: name,
		Title: fmt.Sprintf("Of %s and %s behind it, the Terminate is about the first", first.what, second.what),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Hello()
			first.do(t, s)
			second.do(t, s)
			s.AwaitTerminate(first.code)
		},
	}
}

// Errors that no message of the tester's has caused.
var rdmapLocalErrors = []conformance.Case{
	{
		Clause: "rfc5040-7.1-2", Name: "send-from-closed-memory", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-7.1-1"},
		Title: "A Send whose memory was closed before its turn: a Terminate without headers comes in its place, and the program is told",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, conformance.Setup{})
			sink, source := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite), rdmapRegion(t, 64)
			ids := s.Posts(
				service.Post{Op: service.OpRead, SGL: []service.Piece{sink.Piece(0, 64)}, Remote: rdmapRemote(0)},
				service.Post{Op: service.OpSend, SGL: []service.Piece{source.Piece(0, 64)}, ReadFence: true},
			)
			request := s.AwaitMessage(wire.ReadRequest)
			t.Try(t.Service().Deregister(t.Context(), source.MR), "closing a region of the target")
			rdmapAnswer(t, s, request)
			a, err := s.Answer(t.Timeout())
			if err != nil {
				t.Fail("a Terminate in place of the Send", "%v", err)
			}
			if a.Opcode == wire.Send {
				t.Skip("the target keeps the memory of requests open that are posted")
			}
			t.Check(a.Opcode == wire.Terminate, "a Terminate in place of the Send", "%s", a.Segment)
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(err == nil && h.Control&(wire.TermD|wire.TermR) == 0 && len(bytes.Trim(h.Tail, "\x00")) == 0, "a Terminate without headers", "%x", a.Payload)
			t.Try(s.CloseWrite(), "closing the tester's half")
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			c := rdmapCompletion(t, s, service.SendQueue)
			t.Check(c.ID == ids[1] && c.Status != service.StatusSuccess, "that the Send completes with an error", "request %d completing with status %s", c.ID, c.Status)
		},
	},
	{
		Clause: "rfc5040-7.1-2", Name: "read-without-ord", Needs: conformance.NeedService,
		Title: "A Read of a target that may have none outstanding: no Read Request comes, but a Terminate without headers, or nothing",
		Run: func(t *conformance.T) {
			s := rdmapSpeaking(t, rdmapShallow(0))
			r := rdmapRegion(t, 64, service.LocalWrite, service.RemoteWrite)
			_, err := t.Service().Post(t.Context(), s.QP, service.Post{Op: service.OpRead, SGL: []service.Piece{r.Piece(0, 64)}, Remote: rdmapRemote(0)})
			if err != nil {
				t.Skip("the target's interface refuses the Read: there is no error for RDMAP to tell of")
			}
			a, err := s.Answer(t.Quiet())
			if err != nil {
				t.Check(s.End() == wire.Open, "a Terminate, or that the stream goes on", "%v", err)
				return // the Read waits for better times
			}
			t.Check(a.Opcode == wire.Terminate, "a Terminate, and no Read Request", "%s", a.Segment)
			h, err := wire.ParseTerminate(a.Payload)
			t.Check(err == nil && h.Control&(wire.TermD|wire.TermR) == 0 && len(bytes.Trim(h.Tail, "\x00")) == 0, "a Terminate without headers", "%x", a.Payload)
		},
	},
	{
		Clause: "rfc5040-7.1-4", Name: "source-closed-while-read", Needs: conformance.NeedService,
		Title: "The source of a Read is closed while the response is under way: the Terminate's RDMA header is brought up to date, or the response comes whole",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			r := rdmapRegion(t, rdmapHuge, service.RemoteRead)
			s.Post(conformance.ReadRequest(0x01020304, 0x1000, rdmapHuge, uint32(r.STag), uint64(r.TO)))
			first, err := s.Answer(t.Timeout()) // it is under way
			t.Check(err == nil && first.Opcode == wire.ReadResponse, "the first segment of a Read Response", "%s", first.Segment)
			closed := make(chan error, 1)
			go func() { closed <- t.Service().Deregister(t.Context(), r.MR) }() // it may wait for the response
			got, last := rdmapTakeResponse(t, s, first)
			if last.Opcode == wire.ReadResponse {
				t.Check(got == rdmapHuge, fmt.Sprintf("%d octets", rdmapHuge), "%d", got)
				return
			}
			h, err := wire.ParseTerminate(last.Payload)
			t.Check(err == nil, "a Terminate Header", "%d octets", len(last.Payload))
			p, _ := rdmapTail(t, h)
			if p.rdma == nil {
				t.Fail("a Terminate with the RDMA Read Request Header, brought up to date", "one without: %x", last.Payload)
			}
			want := wire.ReadHeader{
				SinkSTag: 0x01020304, SinkTO: 0x1000 + uint64(got), Length: uint32(rdmapHuge - got),
				SourceSTag: uint32(r.STag), SourceTO: uint64(r.TO) + uint64(got),
			}.Octets()
			t.Check(bytes.Equal(p.rdma, want), fmt.Sprintf("the RDMA header %x, after %d octets", want, got), "%x", p.rdma)
			t.Try(<-closed, "closing a region of the target")
		},
	},
}

// rdmapTakeResponse takes the rest of a Read Response, whose first segment has come,
// up to its end or to a Terminate. It returns the bytes, and the last segment.
func rdmapTakeResponse(t *conformance.T, s *conformance.Stream, a wire.Arrival) (got int, last wire.Arrival) {
	const expected = "the rest of the Read Response, or a Terminate"
	for {
		if a.Opcode == wire.Terminate {
			return got, a
		}
		t.Check(a.Opcode == wire.ReadResponse, expected, "%s", a.Segment)
		got += len(a.Payload)
		if a.Last {
			return got, a
		}
		var err error
		if a, err = s.Answer(t.Timeout()); err != nil {
			t.Fail(expected, "%v", err)
		}
	}
}
