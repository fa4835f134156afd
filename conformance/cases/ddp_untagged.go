package cases

import (
	"errors"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// The checks of an untagged segment before it is placed (RFC 5041 §7.1), but for
// those of its MSN.
func ddpUntagged() []conformance.Case {
	cases := slices.Clone(untaggedChecks)
	for _, qn := range []uint32{4, 5, 7, 0x100, 0x10000, 0x1000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF} {
		cases = append(cases, invalidQueue(qn))
	}
	for _, b := range overruns {
		cases = append(cases, b.conform())
	}
	for at, which := range positions {
		cases = append(cases, tooLongAt(at, which), offsetAt(at, which), queueAt(at, which))
	}
	return cases
}

func invalidQueue(qn uint32) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-1", Name: fmt.Sprintf("queue-0x%x", qn), Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("A Send to queue 0x%x, which there is not, is refused: Terminate 0x1201", qn),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.QN, m.MSN, m.Wrong = qn, 1, "a queue that there is not"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(wire.DDPInvalidQN)
		},
	}
}

// tooLong is what goes beyond a receive's end, though it begins within.
var tooLong = []wire.Code{wire.DDPTooLong}

// offsetBeyond is what an MO at or behind the end of a receive is called: it makes
// the message too long as well.
var offsetBeyond = []wire.Code{wire.DDPInvalidMO, wire.DDPTooLong}

// An overrun is a Send of one segment that does not fit a receive of 16 bytes.
type overrun struct {
	clause, name, what string
	mo                 uint32
	n                  int
	codes              []wire.Code
}

var overruns = []overrun{
	{"rfc5041-7.1-4", "one-octet-too-long", "is one octet longer than the receive", 0, conformance.RecvLen + 1, tooLong},
	{"rfc5041-7.1-4", "far-too-long", "is far longer than the receive", 0, 40_000, tooLong},
	{"rfc5041-7.1-3", "mo-at-the-end", "has an MO just behind the receive", conformance.RecvLen, 1, offsetBeyond},
	{"rfc5041-7.1-3", "mo-one-beyond", "has an MO one octet behind the receive's end", conformance.RecvLen + 1, 1, offsetBeyond},
	{"rfc5041-7.1-3", "mo-7fffffff", "has the MO 0x7fffffff", 0x7FFFFFFF, 8, offsetBeyond},
	{"rfc5041-7.1-3", "mo-80000000", "has the MO 0x80000000", 0x80000000, 8, offsetBeyond},
	{"rfc5041-7.1-3", "mo-ffffffff", "has the highest MO", 0xFFFFFFFF, 1, offsetBeyond},
	{"rfc5041-7.1-3", "mo-that-wraps", "has an MO that plus its length is 8, modulo 2^32,", 0xFFFFFFF8, 16, offsetBeyond},
}

func (o overrun) conform() conformance.Case {
	return conformance.Case{
		Clause: o.clause, Name: o.name, Also: []string{"rfc5041-7.2-1"},
		Title: fmt.Sprintf("A Send that %s is refused: Terminate with %s", o.what, conformance.Codes(o.codes...)),
		Needs: conformance.NeedRecv,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(o.n))
			m.MO, m.Wrong = o.mo, "it "+o.what
			s.Post(m)
			s.AwaitTerminate(o.codes...)
		},
	}
}

// seenReceive posts a receive of so many bytes whose memory can be looked at: the
// beginning of the buffer of n bytes that it returns.
func seenReceive(t *conformance.T, s *conformance.Stream, n int, length uint32) *conformance.Buffer {
	b := s.Buffer(n)
	_, err := t.Service().Recv(t.Context(), s.QP, service.Recv{SGL: []service.Piece{{MR: b.MR, Length: length}}})
	t.Try(err, "posting a receive into a region")
	return b
}

// tooLongAt is a message of three segments that leaves the receive in one of them.
func tooLongAt(at int, which string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-4", Name: "too-long-in-the-" + which + "-segment",
		Title: "A Send of three segments whose " + which + " one ends one octet beyond the receive is refused there, Terminate 0x1205; what came before is placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(noReceive)
			b := seenReceive(t, s, 32, uint32(8*at+7))
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(24)), 8)
			segments[at].Wrong = "it ends one octet beyond the receive"
			s.Post(segments...)
			s.AwaitTerminate(wire.DDPTooLong)
			holds(s, b, 0, conformance.Pattern(24)[:8*at])
		},
	}
}

// noReceive is a Setup with which the target posts no receive at first.
var noReceive = conformance.Setup{Recvs: []uint32{}}

// offsetAt is a message of three segments one of which has an MO beyond all.
func offsetAt(at int, which string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-3", Name: "mo-of-the-" + which + "-segment",
		Title: "A Send of three segments whose " + which + " one has an MO behind the receive is refused there; what came before is placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(noReceive)
			b := seenReceive(t, s, 64, 32)
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(24)), 8)
			segments[at].MO, segments[at].Wrong = 40, "an MO behind the receive"
			s.Post(segments...)
			s.AwaitTerminate(offsetBeyond...)
			holds(s, b, 0, conformance.Pattern(24)[:8*at])
		},
	}
}

// queueAt is a message of three segments one of which has a QN that there is not.
func queueAt(at int, which string) conformance.Case {
	return conformance.Case{
		Clause: "rfc5041-7.1-1", Name: "queue-of-the-" + which + "-segment",
		Title: "A Send of three segments whose " + which + " one goes to queue 4, which there is not, is refused there; what came before is placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(noReceive)
			b := seenReceive(t, s, 24, 24)
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(24)), 8)
			for i, seg := range segments {
				seg = s.Due(seg)
				if i == at {
					seg.QN, seg.Wrong = 4, "a queue that there is not"
				}
				s.PostExact(seg, wire.Flaw{})
			}
			s.AwaitTerminate(wire.DDPInvalidQN)
			holds(s, b, 0, conformance.Pattern(24)[:8*at])
		},
	}
}

var untaggedChecks = []conformance.Case{
	{
		Clause: "rfc5041-7.1-1", Name: "before-msn-and-mo",
		Title: "A Send to a queue that there is not, with an MSN and an MO that could not be either, is refused for its queue: Terminate 0x1201",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			m.QN, m.MSN, m.MO, m.Wrong = 4, 0xFFFFFFF0, 0xFFFFFFF0, "a queue that there is not, with an MSN and an MO that make no sense"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(wire.DDPInvalidQN)
		},
	},
	{
		Clause: "rfc5041-7.1-1", Name: "queue-3-without-a-request",
		Title: "An Atomic Response that no request of the target waits for is refused, whether there is a queue 3 or not",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := wire.Untagged(wire.AtomicResponse, wire.AtomicResult{}.Octets())
			m.Wrong = "an answer to nothing"
			s.Post(m)
			s.AwaitTerminate(wire.DDPInvalidQN, wire.DDPNoBuffer, wire.DDPMSNRange, wire.RDMAPOpcode, wire.RDMAPOther)
		},
	},
	{
		Clause: "rfc5041-7.1-1", Name: "queues-that-there-are",
		Title: "A Send to queue 0 and a Read Request to queue 1 are taken, one after the other, each with its own MSN",
		Also:  []string{"rfc5041-7.1-5"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8, 8}})
			for i := range 3 {
				data := conformance.Pattern(8 - i)
				s.Post(wire.Untagged(wire.Send, data))
				s.AwaitAlive()
				delivers(t, s, data)
			}
		},
	},
	{
		Clause: "rfc5041-7.1-2", Name: "no-receive", Also: []string{"rfc5041-7.2-1"},
		Title: "A Send for which no receive was ever posted is refused, Terminate 0x1202, or kept until there is one",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(noReceive)
			noBuffer(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-2", Name: "receives-used-up",
		Title: "A second Send, with one receive that the first has taken, is refused, Terminate 0x1202, or kept until there is another",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8}})
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
			delivers(t, s, conformance.Pattern(8))
			noBuffer(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-2", Name: "no-receive-and-mo-beyond",
		Title: "A Send with MSN 2 and the highest MO, where one receive is posted, is refused for its MSN: there is no buffer that the MO could be compared with",
		Needs: conformance.NeedRecv,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			m := s.Due(wire.Untagged(wire.Send, conformance.Pattern(8)))
			m.MSN, m.MO, m.Wrong = m.MSN+1, 0xFFFFFFFF, "an MSN for which no receive is posted, and an MO that makes no sense"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(wire.DDPNoBuffer, wire.DDPMSNRange)
		},
	},
	{
		Clause: "rfc5041-7.1-4", Name: "receive-of-no-octets",
		Title: "A Send of one octet for a receive of none is refused: Terminate 0x1205 or 0x1204",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{0}})
			m := wire.Untagged(wire.Send, conformance.Pattern(1))
			m.Wrong = "it is one octet longer than the receive"
			s.Post(m)
			s.AwaitTerminate(offsetBeyond...)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5041-7.1-4", Name: "as-long-as-the-receive",
		Title: "A Send as long as the receive is delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{1000}})
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(1000)))
			delivers(t, s, conformance.Pattern(1000))
		},
	},
	{
		Clause: "rfc5041-7.1-4", Name: "receive-of-its-own-queue-position",
		Title: "The second of two Sends is measured against the second receive: it fits that, though not the first",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{4, 40}})
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(4)), wire.Untagged(wire.Send, conformance.Pattern(40)))
			delivers(t, s, conformance.Pattern(4))
			delivers(t, s, conformance.Pattern(40))
		},
	},
}

// noBuffer sends a message for which no receive is posted. A target may try to
// mend that without telling (RFC 5041 §7.1): then the message is for the receive
// that is posted next.
func noBuffer(t *conformance.T, s *conformance.Stream) {
	m := wire.Untagged(wire.Send, conformance.Pattern(8))
	m.Wrong = "no receive is posted for it"
	s.Post(m)
	a, err := s.Next(t.Timeout())
	if errors.Is(err, wire.ErrSilence) {
		s.PostsRecv(8)
		delivers(t, s, m.Payload)
		return
	}
	terminates(t, a, err, wire.DDPNoBuffer)
}
