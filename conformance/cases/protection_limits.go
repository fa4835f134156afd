package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// resourceLimits: shares and limits of resources.
var resourceLimits = []conformance.Case{
	{
		Clause: "rfc5042-6.4.3.1-1", Name: "share-of-receives", Also: []string{"rfc5042-6.4.1-1"}, Needs: conformance.NeedService,
		Title: "A peer that takes three shared receives where two are its share is detected, and another stream gets its share all the same",
		Run: func(t *conformance.T) {
			if f := t.Service().Hello().Features; !f.SRQ || !f.SRQShare {
				t.Skip("the target has no shared receive queues with shares")
			}
			srq, err := t.Service().CreateSRQ(t.Context(), service.SRQArgs{Depth: 8, PerQP: 2, Recvs: service.Recvs(16, 16, 16, 16, 16, 16)})
			t.Try(err, "making a shared receive queue")
			greedy, modest := openSRQ(t, srq.SRQ), openSRQ(t, srq.SRQ)
			for range 3 { // one more than its share
				greedy.Post(wire.Untagged(wire.Send, conformance.Pattern(4)))
			}
			awaitEventOf(t, greedy, service.EventSRQShare)
			modest.Post(wire.Untagged(wire.Send, conformance.Pattern(8)), wire.Untagged(wire.Send, conformance.Pattern(8)))
			modest.AwaitAlive()
			for range 2 {
				c := modest.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
				t.Check(c.Length == 8, "a Send of 8 octets", "%d octets", c.Length)
			}
		},
	},
	{
		Clause: "rfc5042-6.4.3.1-1", Name: "low-water-mark", Needs: conformance.NeedService,
		Title: "A program that has asked for it is told when the peer has left fewer shared receives than it wants",
		Run: func(t *conformance.T) {
			if !t.Service().Hello().Features.SRQ {
				t.Skip("the target has no shared receive queues")
			}
			srq, err := t.Service().CreateSRQ(t.Context(), service.SRQArgs{Depth: 8, Limit: 3, Recvs: service.Recvs(16, 16, 16, 16)})
			t.Try(err, "making a shared receive queue")
			s := openSRQ(t, srq.SRQ)
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(4)), wire.Untagged(wire.Send, conformance.Pattern(4)))
			awaitEventOf(t, s, service.EventSRQLimit)
		},
	},
	{
		Clause: "rfc5042-6.4.6-1", Name: "overflow", Also: []string{"rfc5040-8.1.1-11"}, Needs: conformance.NeedService,
		Title: "When a completion queue overflows, a stream that does not use it goes on: it is read from, and its receives complete",
		Run: func(t *conformance.T) {
			other := t.Open(conformance.Setup{})
			b := other.Buffer(64)
			s := t.Open(conformance.Setup{QP: service.QPAttr{RecvEntries: 1, RecvDepth: 8}, Recvs: []uint32{16, 16, 16, 16}})
			for range 4 {
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(4)))
			}
			awaitEventOf(t, s, service.EventCQOverflow)
			other.Read(b.STag, b.TO, 64)
			other.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
			c := other.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
			t.Check(c.Length == 8, "a Send of 8 octets", "%d octets", c.Length)
		},
	},
	{
		Clause: "rfc5042-6.4.1-1", Name: "domains", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A program gets as many protection domains as there may be, and not one more",
		Run: func(t *conformance.T) {
			most := t.Service().Hello().Limits.Domains
			if most == 0 || most > 4096 {
				t.Skip("the target says of no limit that could be tried")
			}
			made := 0
			for ; made <= most; made++ {
				_, err := t.Service().AllocPD(t.Context())
				if limited(t, err, "making a protection domain") {
					break
				}
			}
			t.Check(made <= most, fmt.Sprintf("%d protection domains at most", most), "%d", made)
		},
	},
	{
		Clause: "rfc5042-6.4.1-1", Name: "memory", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A program can't register more memory than it may have",
		Run: func(t *conformance.T) {
			most := uint64(t.Service().Hello().Limits.Octets)
			if most == 0 {
				t.Skip("the target says of no limit")
			}
			_, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: most + 1, Access: []string{service.RemoteRead}})
			t.Check(limited(t, err, "registering memory"), fmt.Sprintf("that %d octets are too many", most+1), "a region")
		},
	},
	{
		Clause: "rfc5042-6.4.3.2-1", Name: "entries", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "A program can't have as many CQ entries as it likes: making queue pairs with the longest queues comes to an end, or they are cut",
		Run: func(t *conformance.T) {
			limits := t.Service().Hello().Limits
			if limits.Entries == 0 || limits.QPs == 0 {
				t.Skip("the target says of no limit")
			}
			for range limits.QPs + 1 {
				_, err := t.Service().CreateQP(t.Context(), service.QPAttr{SendEntries: limits.Entries, RecvEntries: limits.Entries})
				if limited(t, err, "making a queue pair") {
					return
				}
			}
			t.Fail("an end", "%d queue pairs with %d entries each", limits.QPs+1, 2*limits.Entries)
		},
	},
	{
		Clause: "rfc5042-7.2-2", Name: "a-peer-that-asks-for-all", Needs: conformance.NeedService,
		Title: "A peer that asks for 16382 Reads at a time is not given more than the target's limit",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{ORD: 16382})
			most := t.Service().Hello().Limits.IRD
			t.Check(int(s.IRD) <= most, fmt.Sprintf("an IRD of %d at most", most), "%d", s.IRD)
			s.AwaitAlive()
		},
	},
	{
		Clause: "rfc5042-6.4.3.3-2", Name: "inbound-reads-are-capped", Also: []string{"rfc5040-8.1.1-14"}, Needs: conformance.NeedService,
		Title: "The target's program can cap the peer's outstanding Reads: an IRD of 2 is what the target says, and keeps",
		Run: func(t *conformance.T) {
			two := 2
			s := t.Open(conformance.Setup{Start: service.Start{IRD: &two}})
			t.Check(s.IRD == 2, "that the target says IRD 2", "%d", s.IRD)
			overrunIRD(t, s, 2)
		},
	},
	{
		Clause: "rfc5042-6.4.3.3-2", Name: "outbound-reads-are-capped", Also: []string{"rfc5040-8.1.1-14"}, Needs: conformance.NeedService,
		Title: "The target's program can cap its own outstanding Reads: with ORD 1, one at a time comes",
		Run: func(t *conformance.T) {
			one := 1
			s := t.Open(conformance.Setup{Start: service.Start{ORD: &one}})
			s.Hello()
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
			read := service.Post{Op: service.OpRead, Remote: there(0), SGL: []service.Piece{{MR: b.MR, Length: 8}}}
			s.Posts(read, read)
			for i := range 2 {
				h, err := wire.ParseReadHeader(s.Await(wire.ReadRequest).Payload)
				t.Try(err, "taking the Read Request apart")
				if i == 0 {
					s.AwaitQuiet("as the target's ORD is 1, and a Read is outstanding")
				}
				s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(8)))
				s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			}
		},
	},
}

// openSRQ opens a stream whose receives come from a shared queue.
func openSRQ(t *conformance.T, srq int) *conformance.Stream {
	return t.Open(conformance.Setup{QP: service.QPAttr{SRQ: srq}, Recvs: []uint32{}})
}

// awaitEventOf waits for an event of a type, which may be of the stream.
func awaitEventOf(t *conformance.T, s *conformance.Stream, kind string) {
	expected := "an event " + kind
	for {
		e, err := t.Service().Event(t.Context(), t.Timeout())
		if service.CodeOf(err) == service.CodeTimeout {
			t.Fail(expected, "none")
		}
		t.Try(err, "waiting for an event")
		t.Note("the target tells its program: %s", e.Text)
		if e.Type == kind {
			t.Check(e.QP == 0 || e.QP == s.QP, expected+" of the stream's queue pair", "one of another")
			return
		}
	}
}

// limited reports whether the target has refused something for a limit.
func limited(t *conformance.T, err error, what string) bool {
	if code := service.CodeOf(err); code == service.CodeLimit || code == service.CodeRefused {
		return true
	}
	t.Try(err, what)
	return false
}

// overrunIRD sends one Read more than the target takes at a time, the first of which
// can't be answered yet, and waits for the Terminate.
func overrunIRD(t *conformance.T, s *conformance.Stream, ird int) {
	big := s.Buffer(large)
	s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, large, big.STag, big.TO))
	for i := range ird {
		r := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0)
		if i == ird-1 {
			r = alien(r, "it is one more than the target's IRD")
		}
		s.Post(r)
	}
	const expected = "a Terminate with 0x1202 or 0x1203"
	beforeReading(t, s)
	for {
		a, err := s.Next(t.Timeout())
		if err != nil {
			t.Fail(expected, "%s", err)
		}
		if a.Opcode == wire.ReadResponse {
			t.Check(len(a.Payload) > 0, expected, "responses to all")
			continue
		}
		h, err := wire.ParseTerminate(a.Payload)
		t.Check(a.Opcode == wire.Terminate && err == nil && (h.Code == wire.DDPNoBuffer || h.Code == wire.DDPMSNRange), expected, "%s", a.Segment)
		return
	}
}

// streamsApart: what one stream does wrong is no other stream's affair.
func streamsApart() []conformance.Case {
	var out []conformance.Case
	for _, x := range []struct {
		name, what string
		also       []string
		harm       func(t *conformance.T, s *conformance.Stream)
	}{
		{"wrong-stag", "a Write with an STag that nobody gave", nil, func(_ *conformance.T, s *conformance.Stream) {
			s.Post(alien(wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8)), "an STag that nobody gave"))
			s.AwaitTeardown()
		}},
		{"wrong-crc", "an FPDU with a wrong CRC", nil, func(_ *conformance.T, s *conformance.Stream) {
			s.PostFlawed(wire.Tagged(wire.Write, 0, 0, nil), wire.Flaw{CRC: func(crc uint32) uint32 { return ^crc }, Wrong: "the CRC is wrong"})
			s.AwaitTeardown()
		}},
		{"reset", "a reset connection", nil, func(t *conformance.T, s *conformance.Stream) {
			t.Try(s.Reset(), "resetting the connection")
		}},
		{"read-overrun", "more Reads than the IRD", []string{"rfc5040-8.1.2-6"}, func(t *conformance.T, s *conformance.Stream) {
			overrunIRD(t, s, 2)
		}},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5042-6.4.3.3-1", Name: "beside-" + x.name, Also: x.also, Needs: conformance.NeedService,
			Title: "After " + x.what + " on one stream, the other stream of the same device goes on: it is read from, written to, and takes as many Reads as before",
			Run: func(t *conformance.T) {
				two := 2
				setup := conformance.Setup{Start: service.Start{IRD: &two}}
				other, s := t.Open(setup), t.Open(setup)
				b := other.Buffer(64)
				x.harm(t, s)
				writeAccess.works(t, other, b, 0)
				read := conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 64, b.STag, b.TO)
				other.Post(read, read)
				other.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 64)
				other.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 64)
			},
		})
	}
	return out
}

// resourcesBack: what streams and registrations have held is there again when they
// are gone.
var resourcesBack = []conformance.Case{
	{
		Clause: "rfc5042-6.4.1-1", Name: "memory-comes-back", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "Memory that is given up can be registered again: half of all and one octet more, twice",
		Run: func(t *conformance.T) {
			most := uint64(t.Service().Hello().Limits.Octets)
			if most == 0 {
				t.Skip("the target says of no limit")
			}
			for range 2 {
				r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: most/2 + 1, Access: []string{service.RemoteRead}})
				t.Check(err == nil, "that half of all memory can be registered", "%v", err)
				t.Try(t.Service().Release(t.Context(), r.MR), "giving up the target's memory")
			}
		},
	},
	{
		Clause: "rfc5042-6.4.1-1", Name: "domains-come-back", Roles: conformance.Responder, Needs: conformance.NeedService,
		Title: "Protection domains that are given up can be had again, as often as one likes",
		Run: func(t *conformance.T) {
			most := t.Service().Hello().Limits.Domains
			for range min(2*most+1, 200) {
				d, err := t.Service().AllocPD(t.Context())
				t.Check(err == nil, "a protection domain", "%v", err)
				t.Try(t.Service().ClosePD(t.Context(), d.PD), "giving up a protection domain")
			}
		},
	},
	{
		Clause: "rfc5042-6.4.1-1", Name: "broken-streams-leave-nothing", Also: []string{"rfc5042-7.2-2"}, Needs: conformance.NeedService,
		Title: "40 streams that end with an error, one after the other, hold nothing any more: the next one opens with the same IRD, and works",
		Run: func(t *conformance.T) {
			most := t.Service().Hello().Limits.IRD
			depth := min(most, 128)
			setup := conformance.Setup{ORD: depth, Start: service.Start{IRD: &depth}}
			for range 40 {
				s := t.Open(setup)
				s.Post(alien(wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8)), "an STag that nobody gave"))
				s.AwaitTeardown()
				t.Try(s.Close(), "closing the connection")
				t.Try(t.Service().CloseQP(t.Context(), s.QP), "giving up the target's queue pair")
				listenerGone(t)
			}
			s := t.Open(setup)
			t.Check(int(s.IRD) == depth, fmt.Sprintf("an IRD of %d", depth), "%d", s.IRD)
			s.AwaitAlive()
		},
	},
}
