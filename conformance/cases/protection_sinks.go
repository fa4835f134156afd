package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// sinkRead has the target read 32 bytes into a sink that is open for local use
// only, from its byte 16 on, and returns the sink and the Read Request.
func sinkRead(t *conformance.T, s *conformance.Stream) (*conformance.Buffer, wire.ReadHeader) {
	s.Hello()
	b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
	s.Posts(service.Post{Op: service.OpRead, Remote: there(0), SGL: []service.Piece{{MR: b.MR, Offset: 16, Length: 32}}})
	h, err := wire.ParseReadHeader(s.Await(wire.ReadRequest).Payload)
	t.Try(err, "taking the Read Request apart")
	t.Check(h.Length == 32, "a Read of 32 octets", "one of %d", h.Length)
	return b, h
}

// protectionSinks: the sinks of the target's own Reads. They are open to the Read
// Response, and to nothing else.
func protectionSinks() []conformance.Case {
	var out []conformance.Case
	add := func(clause, name, title string, also []string, run func(t *conformance.T, s *conformance.Stream)) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name, Title: title, Also: also, Needs: conformance.NeedService,
			Run: func(t *conformance.T) { run(t, t.Open(conformance.Setup{})) },
		})
	}
	outside := []string{"rfc5040-8.1.1-4", "rfc5041-8.3.1-4"}
	for _, a := range accesses {
		if a.right == service.RemoteAtomic {
			continue
		}
		add("rfc5040-8.1.1-6", a.name+"-of-a-sink-while-the-read-is-outstanding",
			fmt.Sprintf("While the target reads into memory that is open for local use only, %s of it is refused and touches nothing", a.title), []string{"rfc5041-8.3.1-6", "rfc5040-8.1.1-4"},
			func(t *conformance.T, s *conformance.Stream) {
				b, h := sinkRead(t, s)
				a.refusedAt(s, b, h.SinkSTag, h.SinkTO, 8, "the sink of a Read is not open for that", a.rights)
			})
		add("rfc5040-8.1.1-6", a.name+"-of-a-sink-after-the-read",
			fmt.Sprintf("After the target's Read into memory that is open for local use only, %s of it is refused and touches nothing", a.title), []string{"rfc5041-8.3.1-6", "rfc5042-6.2.2-1"},
			func(t *conformance.T, s *conformance.Stream) {
				b, h := sinkRead(t, s)
				answered(s, h)
				for _, seg := range a.segments(h.SinkSTag, h.SinkTO, 8) {
					s.Post(alien(seg, "the Read is over"))
				}
				s.AwaitTerminate(a.rights...)
				readInto(t, b)
			})
	}
	add("rfc5042-6.2.1-1", "response-to-the-sink", "The Read Response to the target's Read is placed where it belongs, and nowhere else", outside,
		func(t *conformance.T, s *conformance.Stream) {
			b, h := sinkRead(t, s)
			answered(s, h)
			readInto(t, b)
			allFill(t, b.MR, 0, 16)
			allFill(t, b.MR, 48, 16)
		})
	add("rfc5042-6.2.1-1", "response-beyond-the-region", "A Read Response that goes beyond the region of the sink is refused, and the Read fails", outside,
		func(t *conformance.T, s *conformance.Stream) {
			b, h := sinkRead(t, s)
			r := wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO+40, conformance.Pattern(32))
			s.Post(alien(r, "it goes beyond the sink's region"))
			s.AwaitTerminate()
			s.AwaitUntouched(b)
			readFails(t, s)
		})
	add("rfc5042-6.2.1-1", "response-before-the-region", "A Read Response that begins before the region of the sink is refused, and the Read fails", outside,
		func(t *conformance.T, s *conformance.Stream) {
			b, h := sinkRead(t, s)
			r := wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO-17, conformance.Pattern(32))
			s.Post(alien(r, "it begins before the sink's region"))
			s.AwaitTerminate()
			s.AwaitUntouched(b)
			readFails(t, s)
		})
	for _, x := range []struct {
		name, what string
		stag       func(t *conformance.T, s *conformance.Stream, h wire.ReadHeader) (uint32, *conformance.Buffer)
	}{
		{"another-local-region", "of another region that is open for local use only", func(_ *conformance.T, s *conformance.Stream, _ wire.ReadHeader) (uint32, *conformance.Buffer) {
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
			return b.STag, b
		}},
		{"a-region-for-reads", "of a region that is open for remote reads only", func(_ *conformance.T, s *conformance.Stream, _ wire.ReadHeader) (uint32, *conformance.Buffer) {
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.RemoteRead}})
			return b.STag, b
		}},
		{"another-domains-region", "of another protection domain", func(t *conformance.T, s *conformance.Stream, _ wire.ReadHeader) (uint32, *conformance.Buffer) {
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: remoteAccess, PD: anotherDomain(t)})
			return b.STag, b
		}},
		{"another-streams-region", "that is limited to another stream", func(t *conformance.T, s *conformance.Stream, _ wire.ReadHeader) (uint32, *conformance.Buffer) {
			needStreamMR(t)
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: remoteAccess, OtherQP: t.Open(conformance.Setup{}).QP})
			return b.STag, b
		}},
	} {
		add("rfc5040-8.1.1-4", "response-to-"+x.name, "A Read Response to an STag "+x.what+" is refused and touches nothing",
			[]string{"rfc5041-8.3.1-4", "rfc5040-8.1.1-6"},
			func(t *conformance.T, s *conformance.Stream) {
				_, h := sinkRead(t, s)
				stag, b := x.stag(t, s, h)
				s.Post(alien(wire.Tagged(wire.ReadResponse, stag, b.TO, conformance.Pattern(32)), "an STag "+x.what))
				s.AwaitTerminate()
				s.AwaitUntouched(b)
				readFails(t, s)
			})
	}
	add("rfc5040-8.1.1-4", "response-before-the-read", "A Read Response to memory that is open for local use only, while no Read is outstanding, is refused and touches nothing",
		[]string{"rfc5041-8.3.1-4"},
		func(_ *conformance.T, s *conformance.Stream) {
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
			s.Post(alien(wire.Tagged(wire.ReadResponse, b.STag, b.TO, conformance.Pattern(32)), "no Read is outstanding"))
			s.AwaitTerminate()
			s.AwaitUntouched(b)
		})
	add("rfc5040-8.1.1-4", "response-after-the-read", "A second Read Response to a sink that is open for local use only is refused, and what was read stays",
		[]string{"rfc5041-8.3.1-4", "rfc5042-6.2.2-1"},
		func(t *conformance.T, s *conformance.Stream) {
			b, h := sinkRead(t, s)
			answered(s, h)
			s.Post(alien(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, make([]byte, 32)), "the Read is over"))
			s.AwaitTerminate()
			readInto(t, b)
		})
	add("rfc5040-8.1.1-4", "response-on-another-stream", "A Read Response to the sink of another stream's outstanding Read is refused and touches nothing; the Read goes on",
		[]string{"rfc5041-8.3.1-4", "rfc5042-6.1.1-3"},
		func(t *conformance.T, s *conformance.Stream) {
			other := t.Open(conformance.Setup{})
			b, h := sinkRead(t, s)
			other.Post(alien(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, make([]byte, 32)), "the Read is another stream's"))
			other.AwaitTerminate()
			s.AwaitUntouched(b)
			answered(s, h)
			readInto(t, b)
		})
	add("rfc5040-8.1.1-4", "atomic-original-beside-the-result", "The original value of the target's own atomic goes to the 8 octets that its program has named, and nowhere else",
		[]string{"rfc5041-8.3.1-4"},
		func(t *conformance.T, s *conformance.Stream) {
			needAtomics(t)
			s.Hello()
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
			post := ownFetchAdd(0)
			post.SGL = []service.Piece{{MR: b.MR, Offset: 16, Length: 8}}
			s.Posts(post)
			_, h := awaitAtomicRequest(t, s)
			s.Post(atomicResponse(h.RequestID, 0x1122334455667788))
			completesWith(t, s, 0x1122334455667788)
			allFill(t, b.MR, 0, 16)
			allFill(t, b.MR, 24, 40)
		})
	return out
}

// answered sends the Read Response to a Read of the target's, and waits for its
// completion.
func answered(s *conformance.Stream, h wire.ReadHeader) {
	s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(int(h.Length))))
	s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
}

// readInto makes sure that the sink holds what sinkRead's Read has brought.
func readInto(t *conformance.T, b *conformance.Buffer) {
	want := conformance.Pattern(32)
	got, err := t.Service().MemoryRead(t.Context(), b.MR, 16, len(want))
	t.Try(err, "looking into the target's memory")
	t.Check(bytes.Equal(got, want), fmt.Sprintf("%x from octet 16 of the sink on", want), "%x", got)
}

// readFails makes sure that the target's Read has not ended with success when its
// stream has.
func readFails(t *conformance.T, s *conformance.Stream) {
	c := endOf(t, s, service.SendQueue)
	t.Check(c.Status != service.StatusSuccess, "that the target's Read fails", "success")
}
