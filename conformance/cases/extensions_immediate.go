package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// immediateValue is what Immediate Data carries where it doesn't matter, and
// immediateOctets how it stands on the wire.
const immediateValue = service.Uint64(0x0123456789ABCDEF)

var immediateOctets = []byte{0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF}

// immediateKinds are the two messages.
var immediateKinds = []struct {
	name, title string
	op          wire.Opcode
}{
	{"imm", "Immediate Data", wire.ImmediateData},
	{"imm-se", "Immediate Data with SE", wire.ImmediateDataSE},
}

// immediate returns an Immediate Data message of a value.
func immediate(op wire.Opcode, octets []byte) wire.Segment { return wire.Untagged(op, octets) }

// awaitImmediate waits for the completion of a receive by Immediate Data of a value.
func awaitImmediate(t *conformance.T, s *conformance.Stream, value service.Uint64) *service.Completion {
	c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
	expected := fmt.Sprintf("that a receive completes with Immediate Data 0x%016x", uint64(value))
	t.Check(c.Op == service.OpRecvImmediate && c.Immediate != nil, expected, "%s", c.Op)
	t.Check(*c.Immediate == value, expected, "0x%016x", uint64(*c.Immediate))
	return c
}

// immediates: Immediate Data that come to the target.
var immediates = []conformance.Case{
	{
		Clause: "rfc7306-6.3-3", Name: "delivered",
		Title: "Immediate Data reach the target's program: the 8 octets, and that it is no Send",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{})
			s.Post(immediate(wire.ImmediateData, immediateOctets))
			awaitImmediate(t, s, immediateValue)
		},
	},
	{
		Clause: "rfc7306-6.3-3", Name: "delivered-with-se",
		Title: "Immediate Data with SE reach the target's program: the 8 octets, and that it is no Send",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{})
			s.Post(immediate(wire.ImmediateDataSE, immediateOctets))
			awaitImmediate(t, s, immediateValue)
		},
	},
	{
		Clause: "rfc7306-6.3-3", Name: "solicited",
		Title: "Immediate Data with SE cause an event for a program that waits for solicited ones; Immediate Data don't",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{Recvs: []uint32{16, 16}})
			svc := t.Service()
			t.Try(svc.Arm(t.Context(), service.ArmArgs{QP: s.QP, Queue: service.RecvQueue, Solicited: true}), "arming the target's receive queue")
			s.Post(immediate(wire.ImmediateData, immediateOctets))
			c := awaitImmediate(t, s, immediateValue)
			t.Check(!c.Solicited, "that the receive is not marked as solicited", "that it is")
			err := svc.Fired(t.Context(), s.QP, service.RecvQueue, 0)
			t.Check(service.CodeOf(err) == service.CodeTimeout, "no event", "one (%v)", err)
			s.Post(immediate(wire.ImmediateDataSE, immediateOctets))
			err = svc.Fired(t.Context(), s.QP, service.RecvQueue, t.Timeout())
			t.Check(err == nil, "an event", "none (%v)", err)
			c = awaitImmediate(t, s, immediateValue)
			t.Check(c.Solicited, "that the receive is marked as solicited", "that it isn't")
		},
	},
	{
		Clause: "rfc7306-6.3-2", Name: "one-receive-each",
		Title: "Immediate Data take one receive each, in turn with Sends",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{Recvs: []uint32{}})
			ids, err := t.Service().Recv(t.Context(), s.QP, service.Recvs(16, 16, 16, 16)...)
			t.Try(err, "posting receives")
			s.Post(immediate(wire.ImmediateData, immediateOctets), wire.Untagged(wire.Send, conformance.Pattern(4)),
				immediate(wire.ImmediateDataSE, immediateOctets), wire.Untagged(wire.Send, conformance.Pattern(5)))
			for i, id := range ids {
				c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
				t.Check(c.ID == id, fmt.Sprintf("that receive %d completes", i), "another one")
			}
		},
	},
	{
		Clause: "rfc7306-6.3-2", Name: "no-receive-left", Also: []string{"rfc7306-8.2-1"},
		Title: "Immediate Data for which no receive is left are refused: Terminate 0x1202",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{Recvs: []uint32{16}})
			s.Post(immediate(wire.ImmediateData, immediateOctets), alien(immediate(wire.ImmediateData, immediateOctets), "no receive is left"))
			s.AwaitTerminate(noBufferCodes...)
		},
	},
	{
		Clause: "rfc7306-6.3-3", Name: "in-order",
		Title: "Immediate Data and Sends reach the target's program in the order sent",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{Recvs: []uint32{16, 16, 16, 16, 16}})
			s.Post(
				immediate(wire.ImmediateData, []byte{0, 0, 0, 0, 0, 0, 0, 1}),
				wire.Untagged(wire.Send, []byte{2}),
				immediate(wire.ImmediateDataSE, []byte{0, 0, 0, 0, 0, 0, 0, 3}),
				immediate(wire.ImmediateData, []byte{0, 0, 0, 0, 0, 0, 0, 4}),
				wire.Untagged(wire.SendSE, []byte{5}),
			)
			for i := byte(1); i <= 5; i++ {
				if i == 2 || i == 5 {
					c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
					t.Check(c.Op == service.OpRecv && len(c.Data) == 1 && c.Data[0] == i, fmt.Sprintf("the Send of one octet, %d", i), "%s of %x", c.Op, c.Data)
					continue
				}
				awaitImmediate(t, s, service.Uint64(i))
			}
		},
	},
	{
		Clause: "rfc7306-6.3-3", Name: "after-the-write-before-it",
		Title: "Immediate Data reach the target's program after the Write before them is placed (RFC 7306 §7)",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{})
			const n = 64 << 10
			b := s.Buffer(n)
			data := conformance.Pattern(n)
			s.Post(conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), 1024)...)
			s.Post(immediate(wire.ImmediateData, immediateOctets))
			awaitImmediate(t, s, immediateValue)
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc7306-4.1-1", Name: "invalidate-stag-of-immediate-data",
		Title: "The Invalidate STag of Immediate Data is ignored: they are delivered, and the STag stays valid",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.RemoteRead, service.RemoteInvalidate}})
			m := immediate(wire.ImmediateData, immediateOctets)
			m.Invalidate = b.STag
			s.Post(alien(m, "what is to be ignored is not 0"))
			c := awaitImmediate(t, s, immediateValue)
			t.Check(c.Invalidated == 0, "that nothing is invalidated", "0x%08x", uint32(c.Invalidated))
			s.Read(b.STag, b.TO, 64)
		},
	},
	{
		Clause: "rfc7306-4.1-1", Name: "reserved-bits-of-immediate-data",
		Title: "The reserved bits of DDP and RDMAP in Immediate Data are ignored",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{})
			m := immediate(wire.ImmediateDataSE, immediateOctets)
			m.Reserved, m.RDMAPReserved = 0xF, 3
			s.Post(alien(m, "what is to be ignored is not 0"))
			awaitImmediate(t, s, immediateValue)
			s.AwaitAlive()
		},
	},
}

// immediateLengths: other lengths than 8 bytes.
func immediateLengths() []conformance.Case {
	var out []conformance.Case
	for _, k := range immediateKinds {
		for _, n := range []int{0, 1, 7, 9, 16} {
			out = append(out, conformance.Case{
				Clause: "rfc7306-6.3-7", Name: fmt.Sprintf("%s-of-%d-octets", k.name, n), Also: []string{"rfc7306-8.1-2"},
				Title: fmt.Sprintf("%s of %d octets, where there must be 8, are refused by a Terminate, and not delivered", k.title, n),
				Needs: conformance.NeedService,
				Run: func(t *conformance.T) {
					s := openImmediate(t, conformance.Setup{Recvs: []uint32{64}})
					s.Post(alien(immediate(k.op, conformance.Pattern(n)), fmt.Sprintf("it has %d octets", n)))
					s.AwaitTerminate()
					notDelivered(t, s)
				},
			})
		}
	}
	return out
}

// notDelivered makes sure that the receive of a stream that has ended does not
// complete with success.
func notDelivered(t *conformance.T, s *conformance.Stream) {
	c := endOf(t, s, service.RecvQueue)
	t.Check(c.Status != service.StatusSuccess, "that the message is not delivered", "%s of %d octets with success", c.Op, c.Length)
}

// immediatePieces: Immediate Data in two segments. A message of 8 bytes may be cut
// up (RFC 5041 §5.2), though nobody has reason to; others stay wrong.
var immediatePieces = []conformance.Case{
	{
		Clause: "rfc7306-6.3-7", Name: "two-segments-of-7-octets", Also: []string{"rfc7306-8.1-2"},
		Title: "Immediate Data of 4 and 3 octets in two segments are refused by a Terminate, and not delivered",
		Needs: conformance.NeedService,
		Run:   func(t *conformance.T) { badPieces(t, 7) },
	},
	{
		Clause: "rfc7306-6.3-7", Name: "two-segments-of-9-octets", Also: []string{"rfc7306-8.1-2"},
		Title: "Immediate Data of 4 and 5 octets in two segments are refused by a Terminate, and not delivered",
		Needs: conformance.NeedService,
		Run:   func(t *conformance.T) { badPieces(t, 9) },
	},
	{
		Clause: "rfc7306-6.3-7", Name: "two-segments-of-8-octets", Also: []string{"rfc5041-5.2-5"},
		Title: "Immediate Data of 4 and 4 octets in two segments are 8 octets of data from DDP: they are delivered",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openImmediate(t, conformance.Setup{})
			s.Post(conformance.Segments(immediate(wire.ImmediateData, immediateOctets), 4)...)
			s.Post(conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
			a, err := s.Next(t.Timeout())
			if err == nil && a.Opcode == wire.Terminate {
				t.Inconclusive("the target refuses 8 octets in two segments: RFC 5041 lets any message come so, but no sender has reason to")
			}
			t.Check(err == nil && a.Opcode == wire.ReadResponse, "that the stream goes on", "%s", gotten(a, err))
			awaitImmediate(t, s, immediateValue)
		},
	},
}

func badPieces(t *conformance.T, n int) {
	s := openImmediate(t, conformance.Setup{Recvs: []uint32{64}})
	data := conformance.Pattern(n)
	first, last := immediate(wire.ImmediateData, data[:4]), immediate(wire.ImmediateData, data[4:])
	first.Last, last.MO = false, 4
	s.Post(first, alien(last, fmt.Sprintf("the message has %d octets", n)))
	s.AwaitTerminate()
	notDelivered(t, s)
}

// immediateHeaders: fields of Immediate Data that are checked.
func immediateHeaders() []conformance.Case {
	var out []conformance.Case
	add := func(clause, name, title string, codes []wire.Code, bad func() wire.Segment) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name, Title: title, Also: []string{"rfc7306-8.1-2"}, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openImmediate(t, conformance.Setup{Recvs: []uint32{64}})
				s.PostExact(bad(), wire.Flaw{})
				s.AwaitTerminate(codes...)
				notDelivered(t, s)
			},
		})
	}
	for _, k := range immediateKinds {
		for _, rv := range []uint8{2, 3} {
			add("rfc7306-8.2-3", fmt.Sprintf("%s-of-version-%d", k.name, rv), fmt.Sprintf("%s of RDMA version %d are refused, Terminate 0x0205, and not delivered", k.title, rv),
				[]wire.Code{wire.RDMAPVersion},
				func() wire.Segment {
					m := immediate(k.op, immediateOctets)
					m.MSN, m.RV = 1, rv
					return alien(m, fmt.Sprintf("RV is %d", rv))
				})
		}
		for qn := uint32(1); qn <= 3; qn++ {
			codes := remoteOperation
			if qn == 3 { // where nothing is expected
				codes = append([]wire.Code{wire.DDPNoBuffer, wire.DDPInvalidQN}, codes...)
			}
			add("rfc7306-8.2-2", fmt.Sprintf("%s-on-queue-%d", k.name, qn), fmt.Sprintf("%s on queue %d are refused by a Terminate, and not delivered", k.title, qn), codes,
				func() wire.Segment {
					m := immediate(k.op, immediateOctets)
					m.MSN, m.QN = 1, qn
					return alien(m, fmt.Sprintf("it is on queue %d", qn))
				})
		}
	}
	add("rfc7306-8.2-1", "imm-with-an-offset", "Immediate Data of one segment whose MO is 8 are a message of 16 octets: they are refused by a Terminate, and not delivered", nil,
		func() wire.Segment {
			m := immediate(wire.ImmediateData, immediateOctets)
			m.MSN, m.MO = 1, 8
			return alien(m, "its MO is 8, so that the message has 16 octets")
		})
	add("rfc7306-8.2-1", "imm-with-the-wrong-msn", "Immediate Data with an MSN beyond the receives are refused, Terminate 0x1202 or 0x1203, and not delivered", noBufferCodes,
		func() wire.Segment {
			m := immediate(wire.ImmediateData, immediateOctets)
			m.MSN = 0x80000000
			return alien(m, "its MSN is far ahead")
		})
	add("rfc7306-8.2-1", "imm-on-queue-4", "Immediate Data on a queue that doesn't exist are refused, Terminate 0x1201, and not delivered",
		append([]wire.Code{wire.DDPInvalidQN}, remoteOperation...),
		func() wire.Segment {
			m := immediate(wire.ImmediateData, immediateOctets)
			m.MSN, m.QN = 1, 4
			return alien(m, "there is no queue 4")
		})
	add("rfc7306-8.2-1", "imm-of-ddp-version-0", "Immediate Data of DDP version 0 are refused, Terminate 0x1206, and not delivered",
		[]wire.Code{wire.DDPUntaggedVersion},
		func() wire.Segment {
			m := immediate(wire.ImmediateData, immediateOctets)
			m.MSN, m.Version = 1, 0
			return alien(m, "DV is 0")
		})
	return out
}
