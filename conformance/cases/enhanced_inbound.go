package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// inboundDepths returns the cases on how many Reads of the tester's the target has
// room for (RFC 6581 §9.1, RFC 5040 §6.1): all that were negotiated, and no more.
func inboundDepths() []conformance.Case {
	var cases []conformance.Case
	for _, d := range []struct {
		clause, name string
		ours         depths
		role         conformance.Roles
	}{
		{"rfc5040-6.1-2", "responder-ird-as-replied", depths{16, 4}, conformance.Responder},
		{"rfc5040-6.1-2", "responder-asked-for-1", depths{16, 1}, conformance.Responder},
		{"rfc5040-6.1-2", "responder-asked-for-less", depths{16, 3}, conformance.Responder},
		{"rfc5040-6.1-2", "responder-asked-for-more", depths{16, 5}, conformance.Responder},
		{"rfc6581-9.1-8", "ird-kept", depths{16, wire.NoDepth}, conformance.Responder},
		{"rfc6581-9.1-4", "responder-ord-1", depths{16, 1}, conformance.Initiator},
		{"rfc6581-9.1-4", "responder-ord-3", depths{16, 3}, conformance.Initiator},
		{"rfc6581-9.1-4", "responder-ord-4", depths{16, 4}, conformance.Initiator},
		{"rfc6581-9.1-11", "ird-kept", depths{16, wire.NoDepth}, conformance.Initiator},
	} {
		cases = append(cases, inbound(d.clause, d.name, d.ours, d.role, false))
	}
	return append(cases,
		inbound("rfc5040-6.1-5", "responder", depths{16, 4}, conformance.Responder, true),
		inbound("rfc5040-6.1-5", "responder-asked-for-1", depths{16, 1}, conformance.Responder, true),
		inbound("rfc5040-6.1-5", "initiator", depths{16, 4}, conformance.Initiator, true),
		inbound("rfc6581-9.1-8", "ird-not-exceeded", depths{16, wire.NoDepth}, conformance.Responder, true),
		inbound("rfc6581-9.1-11", "ird-not-exceeded", depths{16, wire.NoDepth}, conformance.Initiator, true),
	)
}

// inbound returns the case that the target gets as many Reads at a time as it
// has room for, or one more.
func inbound(clause, name string, ours depths, role conformance.Roles, more bool) conformance.Case {
	c := conformance.Case{
		Clause: clause, Name: name, Roles: role, Needs: conformance.NeedService,
		Title: fmt.Sprintf("As many Reads as the target, %s, has room for, after %s of the tester, are answered, though they come at once", told, ours),
	}
	if clause != "rfc5040-6.1-2" {
		c.Also = []string{"rfc5040-6.1-2"}
	}
	if more {
		c.Title = fmt.Sprintf("One Read more at a time than the target, %s, has room for, after %s of the tester, is refused", told, ours)
		c.Also = slices.DeleteFunc([]string{"rfc5040-6.1-5"}, func(s string) bool { return s == clause })
	}
	c.Run = func(t *conformance.T) {
		s, params := settle(t, told, ours)
		room := int(params.IRD)
		if s.IRD != wire.NoDepth && role == conformance.Responder {
			t.Check(room == int(s.IRD), fmt.Sprintf("the IRD that the Reply has, %d", s.IRD), "%d", room)
		}
		if role == conformance.Initiator && ours.ord != wire.NoDepth {
			t.Check(room >= ours.ord, fmt.Sprintf("an IRD of at least the Responder's ORD, %d", ours.ord), "%d", room)
		}
		if more {
			tooManyReads(t, s, room)
		} else {
			manyReads(t, s, room)
		}
	}
	return c
}

// A Read of heavy bytes is under way until the tester takes what comes: no pair of
// send and receive buffers has room for so much.
const heavy = 8 << 20

// light is the length of the other Reads.
const light = 8

// heavyRegion opens so much memory of the target, with a Pattern of a seed.
func heavyRegion(t *conformance.T, seed uint8) *service.Region {
	if octets := t.Service().Hello().Limits.Octets; octets < heavy {
		t.Skip("the target's programs have %d octets of memory at most", octets)
	}
	b, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: heavy, Access: []string{service.RemoteRead}, Pattern: &seed})
	t.Try(err, "opening memory of the target")
	return b
}

// crowd sends n Reads at once, of which the first one can't be answered while the
// tester reads nothing.
func crowd(t *conformance.T, s *conformance.Stream, n int) {
	b := heavyRegion(t, 0)
	var frames [][]byte
	for i := range n {
		length := uint32(light)
		if i == 0 {
			length = heavy
		}
		seg := s.Due(conformance.ReadRequest(conformance.SinkSTag, uint64(i), length, uint32(b.STag), uint64(b.TO)))
		s.SetMSN(1, seg.MSN+1)
		frames = append(frames, s.Frame(seg.Octets(), wire.Flaw{}))
	}
	t.Try(s.SendFrames(frames, fmt.Sprintf("%d Read Requests at once, the first one for %d octets", n, heavy), ""), "sending Reads")
}

// manyReads makes sure that n Reads at a time are answered.
func manyReads(t *conformance.T, s *conformance.Stream, n int) {
	crowd(t, s, n)
	for i := range n {
		length := light
		if i == 0 {
			length = heavy
		}
		s.AwaitResponse(conformance.SinkSTag, uint64(i), length)
	}
}

// tooManyReads makes sure that one Read more than there is room for is refused.
func tooManyReads(t *conformance.T, s *conformance.Stream, room int) {
	crowd(t, s, room+1)
	for {
		a, err := s.Next(t.Timeout())
		if over(err) || a.Opcode == wire.Terminate {
			return
		}
		t.Try(err, "waiting for a Terminate")
		t.Check(a.Opcode != wire.ReadResponse || a.TO != uint64(room),
			fmt.Sprintf("that Read %d is refused", room+1), "its response")
	}
}
