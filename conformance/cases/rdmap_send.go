package cases

import (
	"bytes"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// rdmapSends is the cases on the target as the Data Sink of Sends (RFC 5040 §5.3).
func rdmapSends() []conformance.Case {
	return slices.Concat(rdmapSendSizes(), rdmapSendKinds(), rdmapSendRules, rdmapSendsRefused, rdmapSolicited)
}

// rdmapSendSizes is Sends of many sizes into receives that have room for them, or
// just have.
func rdmapSendSizes() []conformance.Case {
	var out []conformance.Case
	for _, m := range []struct{ n, recv, segment int }{
		{0, 64, 1},
		{1, 1, 1},
		{63, 64, 64},
		{64, 64, 64},
		{64, 64, 1},
		{64, 100, 63},
		{1000, 1000, 999},
		{65536, 65536, 1400},
		{65537, 65600, 60000},
		{300000, 300000, 64000},
	} {
		out = append(out, conformance.Case{
			Clause: "rfc5040-5.3-2", Name: fmt.Sprintf("%d-octets-of-%d-in-segments-of-%d", m.n, m.recv, m.segment), Needs: conformance.NeedService,
			Also:  []string{"rfc5040-3.1-1"},
			Title: fmt.Sprintf("A Send of %d octets in segments of %d takes one receive of %d, and the program gets its length and data", m.n, m.segment, m.recv),
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{Recvs: []uint32{uint32(m.recv), 16}})
				data := conformance.Pattern(m.n)
				s.Post(conformance.Segments(wire.Untagged(wire.Send, data), m.segment)...)
				rdmapReceived(t, s, data)
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(16)))
				rdmapReceived(t, s, conformance.Pattern(16))
			},
		})
	}
	return out
}

// rdmapSendKinds is the kinds of Sends, and what the program is told of them.
func rdmapSendKinds() []conformance.Case {
	var out []conformance.Case
	for _, op := range []wire.Opcode{wire.Send, wire.SendSE} {
		solicited := op == wire.SendSE
		for _, segment := range []int{64, 10} {
			out = append(out, conformance.Case{
				Clause: "rfc5040-5.3-2", Name: fmt.Sprintf("opcode-%d-in-segments-of-%d", op, segment), Needs: conformance.NeedService,
				Title: fmt.Sprintf("A %s in segments of %d octets completes a receive, with its data", op, segment),
				Run: func(t *conformance.T) {
					s := t.Open(conformance.Setup{Recvs: []uint32{64}})
					data := conformance.Pattern(33)
					s.Post(conformance.Segments(wire.Untagged(op, data), segment)...)
					c := rdmapReceived(t, s, data)
					if c.Solicited != solicited {
						t.Inconclusive("the completion says solicited=%t: whether it is told there, is the interface's affair", c.Solicited)
					}
				},
			})
		}
	}
	return out
}

var rdmapSendRules = []conformance.Case{
	{
		Clause: "rfc5040-5.3-3", Name: "in-the-order-sent", Needs: conformance.NeedService,
		Also:  []string{"rfc5040-5.5-1"},
		Title: "Six Sends of two kinds and many lengths reach the program in the order in which they were sent",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{2000, 2000, 2000, 2000, 2000, 2000}})
			var sent [][]byte
			for i, n := range []int{1500, 1, 0, 700, 3, 2000} {
				op := wire.Send
				if i%2 == 1 {
					op = wire.SendSE
				}
				data := bytes.Repeat([]byte{byte(i + 1)}, n)
				sent = append(sent, data)
				s.Post(conformance.Segments(wire.Untagged(op, data), 512)...)
			}
			for _, data := range sent {
				rdmapReceived(t, s, data)
			}
		},
	},
	{
		Clause: "rfc5040-5.3-3", Name: "behind-a-read", Needs: conformance.NeedService,
		Title: "A Send behind a Read whose response is long reaches the program",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{})
			r := rdmapRegion(t, 300000, service.RemoteRead)
			s.Post(
				conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 300000, uint32(r.STag), uint64(r.TO)),
				wire.Untagged(wire.Send, conformance.Pattern(16)),
			)
			s.AwaitResponse(conformance.SinkSTag, conformance.SinkTO, 300000)
			rdmapReceived(t, s, conformance.Pattern(16))
		},
	},
	{
		Clause: "rfc5040-5.5-7", Name: "not-before-the-last-segment", Needs: conformance.NeedService,
		Title: "A Send reaches the program when its last octet is there, and not before",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64}})
			parts := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(64)), 63)
			s.Post(parts[0])
			rdmapNoCompletion(t, s, service.RecvQueue, "as the Send is not whole")
			s.Post(parts[1])
			rdmapReceived(t, s, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-5.3-6", Name: "empty-send-takes-a-receive", Needs: conformance.NeedService,
		Title: "An empty Send completes a receive with no octets; the next Send takes the next receive",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 64}})
			s.Post(wire.Untagged(wire.Send, nil), wire.Untagged(wire.Send, conformance.Pattern(64)))
			rdmapReceived(t, s, nil)
			rdmapReceived(t, s, conformance.Pattern(64))
		},
	},
	{
		Clause: "rfc5040-5.3-6", Name: "empty-send-with-se-takes-a-receive", Needs: conformance.NeedService,
		Title: "An empty Send with SE completes a receive with no octets",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8}})
			s.Post(wire.Untagged(wire.SendSE, nil))
			rdmapReceived(t, s, nil)
		},
	},
	{
		Clause: "rfc5040-5.3-2", Name: "one-receive-each", Needs: conformance.NeedService,
		Title: "Each Send takes one receive: as many complete as Sends were sent, and no more",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{Recvs: []uint32{64, 64, 64}})
			for range 2 {
				s.Post(conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(32)), 8)...)
			}
			for range 2 {
				rdmapReceived(t, s, conformance.Pattern(32))
			}
			s.AwaitAlive()
			s.AwaitNoCompletion(service.RecvQueue, "as there was no third Send")
		},
	},
	{
		Clause: "rfc5040-5.1-2", Name: "writes-take-no-receive", Needs: conformance.NeedService,
		Title: "RDMA Writes, one of them empty, are placed without the program: it gets no completion",
		Run: func(t *conformance.T) {
			s := rdmapReading(t, conformance.Setup{Recvs: []uint32{64}})
			b := s.Buffer(64)
			s.Post(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(64)), wire.Tagged(wire.Write, b.STag, b.TO, nil))
			s.AwaitAlive()
			s.AwaitContents(b, 0, conformance.Pattern(64))
			s.AwaitNoCompletion(service.RecvQueue, "as RDMA Writes are not delivered")
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
			rdmapReceived(t, s, conformance.Pattern(8))
		},
	},
}

// Sends for which there is no room.
var rdmapSendsRefused = []conformance.Case{
	rdmapTooLong("one-octet-too-long", "one octet longer than the receive", wire.Send, 65, 65),
	rdmapTooLong("one-octet-too-long-se", "one octet longer than the receive", wire.SendSE, 65, 65),
	rdmapTooLong("last-segment-too-long", "whose last segment ends beyond the receive", wire.Send, 65, 64),
	rdmapTooLong("far-too-long", "of 64 KiB, into a receive of 64 octets", wire.Send, 65536, 1400),
	rdmapTooLong("second-segment-straddles", "whose second segment begins in the receive and ends beyond it", wire.Send, 80, 40),
	{
		Clause: "rfc5040-5.3-6", Name: "empty-sends-use-up-receives", Needs: conformance.NeedService,
		Title: "When an empty Send has taken the only receive, a further Send finds none: it is refused, or waits for one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64}})
			s.Post(wire.Untagged(wire.Send, nil))
			rdmapReceived(t, s, nil)
			rdmapNoRoom(t, s, wire.Untagged(wire.Send, conformance.Pattern(8)))
		},
	},
	{
		Clause: "rfc5040-5.3-2", Name: "no-receive", Needs: conformance.NeedService,
		Title: "A Send that finds no receive is refused, or waits for one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{}})
			s.Hello()
			rdmapNoRoom(t, s, wire.Untagged(wire.Send, conformance.Pattern(8)))
		},
	},
	{
		Clause: "rfc5040-5.3-2", Name: "no-receive-se", Needs: conformance.NeedService,
		Title: "A Send with SE that finds no receive is refused, or waits for one",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{}})
			s.Hello()
			rdmapNoRoom(t, s, wire.Untagged(wire.SendSE, conformance.Pattern(8)))
		},
	},
}

// rdmapTooLong is the case of a Send of n bytes in segments, into a receive of 64.
func rdmapTooLong(name, title string, op wire.Opcode, n, segment int) conformance.Case {
	return conformance.Case{
		Clause: "rfc5040-7.2-1", Name: "send-" + name, Needs: conformance.NeedService,
		Title: fmt.Sprintf("A %s %s is refused, Terminate 0x1205, and does not complete the receive with success", op, title),
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64}})
			s.Hello()
			parts := conformance.Segments(wire.Untagged(op, conformance.Pattern(n)), segment)
			parts[len(parts)-1].Wrong = "the receive has 64 octets"
			s.Post(parts...)
			codes := []wire.Code{wire.DDPTooLong}
			if segment == 64 { // the second one begins where the receive ends
				codes = append(codes, wire.DDPInvalidMO)
			}
			s.AwaitTerminate(codes...)
			rdmapFlushed(t, s, 1)
		},
	}
}

// rdmapNoRoom sends a Send for which there is no receive. DDP may report that, or try
// to recover by means of the LLP (RFC 5041 §7.1): then it is there when a receive is.
func rdmapNoRoom(t *conformance.T, s *conformance.Stream, m wire.Segment) {
	m.Wrong = "no receive is posted"
	s.Post(m)
	a, err := s.Answer(t.Quiet())
	if err == nil {
		h, short := wire.ParseTerminate(a.Payload)
		t.Check(a.Opcode == wire.Terminate && short == nil && h.Code == wire.DDPNoBuffer,
			"a Terminate with "+conformance.Codes(wire.DDPNoBuffer)+", or that the Send waits", "%s", a.Segment)
		return
	}
	t.Check(s.End() == wire.Open, "a Terminate, or that the Send waits", "%v", err)
	s.PostsRecv(64)
	deliversUnlessRefused(t, s, m.Payload, wire.DDPNoBuffer) // a refusal may come late
}

// rdmapSolicited is the cases on solicited events, which the target may raise.
var rdmapSolicited = []conformance.Case{
	{
		Clause: "rfc5040-5.3-3", Name: "send-with-se-fires", Needs: conformance.NeedService,
		Title: "A program that waits for solicited events alone is woken by a Send with SE, after the Send was delivered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			rdmapArm(t, s)
			s.Post(wire.Untagged(wire.SendSE, conformance.Pattern(8)))
			rdmapReceived(t, s, conformance.Pattern(8))
			err := t.Service().Fired(t.Context(), s.QP, service.RecvQueue, t.Timeout())
			if service.CodeOf(err) == service.CodeTimeout {
				t.Inconclusive("the Send with SE has raised no event, which the target may leave")
			}
			t.Try(err, "waiting for the event")
		},
	},
	{
		Clause: "rfc5040-5.3-3", Name: "send-does-not-fire", Needs: conformance.NeedService,
		Title: "A program that waits for solicited events alone is not woken by a Send, which is delivered all the same",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			rdmapArm(t, s)
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
			rdmapReceived(t, s, conformance.Pattern(8))
			err := t.Service().Fired(t.Context(), s.QP, service.RecvQueue, 0)
			if service.CodeOf(err) != service.CodeTimeout {
				t.Try(err, "looking for an event")
				t.Inconclusive("the Send has raised a solicited event: when there are events, is the interface's affair")
			}
		},
	},
}

func rdmapArm(t *conformance.T, s *conformance.Stream) {
	err := t.Service().Arm(t.Context(), service.ArmArgs{QP: s.QP, Queue: service.RecvQueue, Solicited: true})
	t.Try(err, "arming the target's receive queue")
}
