package cases

import (
	"slices"
	"time"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// Delivery: once, in order, when the message is whole, and with what belongs to it
// (RFC 5041 §4.1, §5.3, §5.4).
var ddpDelivery = []conformance.Case{
	{
		Clause: "rfc5041-5.4-1", Name: "not-before-the-last-segment",
		Title: "A Send is not delivered when 15 of its 16 octets are placed, but when the segment with L=1 has come",
		Needs: conformance.NeedService,
		Also:  []string{"rfc5041-4.1-7"},
		Run: func(t *conformance.T) {
			s := t.Open(noReceive)
			b := seenReceive(t, s, 16, 16)
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(16)), 15)
			s.Post(segments[0])
			awaitPlaced(t, b, segments[0].Payload)
			s.AwaitNoCompletion(service.RecvQueue, "as the message is not whole")
			s.Post(segments[1])
			c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
			t.Check(c.Length == 16, "a message of 16 octets", "one of %d", c.Length)
			s.AwaitContents(b, 0, conformance.Pattern(16))
		},
	},
	{
		Clause: "rfc5041-5.3-3", Name: "once",
		Title: "A Send of several segments is delivered once: the second of two receives stays for the next",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16, 16}})
			data := conformance.Pattern(16)
			s.Post(conformance.Segments(wire.Untagged(wire.Send, data), 5)...)
			delivers(t, s, data)
			s.AwaitAlive()
			s.AwaitNoCompletion(service.RecvQueue, "as the one message was delivered")
			s.Post(wire.Untagged(wire.Send, data[:9]))
			delivers(t, s, data[:9])
		},
	},
	{
		Clause: "rfc5041-5.3-4", Name: "in-order",
		Title: "Twenty Sends of different lengths, in one and in several segments, are delivered in the order sent",
		Also:  []string{"rfc5041-5.3-1", "rfc5041-5.4-2"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{100}, 20)})
			for i := range 20 {
				s.Post(conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(5*i)), 10+i)...)
			}
			for i := range 20 {
				delivers(t, s, conformance.Pattern(5*i))
			}
		},
	},
	{
		Clause: "rfc5041-4.1-7", Name: "after-the-writes-before-it",
		Title: "When a Send is delivered, the Write of 300000 octets before it is placed",
		Also:  []string{"rfc5041-5.4-1"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{1}})
			b := s.Buffer(300_000)
			data := conformance.Pattern(b.Length)
			s.Post(conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), 50_000)...)
			s.Post(wire.Untagged(wire.Send, []byte{1}))
			delivers(t, s, []byte{1})
			s.AwaitContents(b, 0, data)
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "read-after-write",
		Title: "A Read Request behind a Write of several segments is answered with what the Write placed",
		Needs: conformance.NeedBuffer,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b := s.Buffer(64)
			data := conformance.Pattern(64)
			s.Post(conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, data), 10)...)
			got := s.Read(b.STag, b.TO, 64)
			t.Check(slices.Equal(got, data), "what was written", "%x", head(got))
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "write-within-a-send",
		Title: "A Send between whose segments a whole Write comes is delivered as it was sent, or the stream ends without",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16}})
			b := s.Buffer(8)
			interleaves(t, s, wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8)))
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "read-request-within-a-send",
		Title: "A Send between whose segments a whole Read Request comes is delivered as it was sent, or the stream ends without",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16}})
			interleaves(t, s, conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0))
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "send-within-a-write",
		Title: "A Send that comes whole between the segments of a Write is delivered as it was sent, or the stream ends without",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{16}})
			b := s.Buffer(16)
			segments := conformance.Segments(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(16)), 8)
			data := conformance.Pattern(12)
			m := wire.Untagged(wire.Send, data)
			m.Wrong = "the message before is not over"
			s.Post(segments[0], m, segments[1])
			deliversOrEnds(t, s, data)
		},
	},
	{
		Clause: "rfc5041-4.3-3", Name: "solicited-event",
		Title: "Of a Send and a Send with SE, the second alone is delivered as solicited: RsvdULP is given to the ULP",
		Also:  []string{"rfc5041-5.4-3"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8, 8, 8}})
			for _, op := range []wire.Opcode{wire.Send, wire.SendSE, wire.Send} {
				s.Post(conformance.Segments(wire.Untagged(op, conformance.Pattern(8)), 3)...)
			}
			for _, want := range []bool{false, true, false} {
				c := delivers(t, s, conformance.Pattern(8))
				t.Check(c.Solicited == want, "that Send with SE alone is solicited", "solicited: %t", c.Solicited)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-3", Name: "invalidate-stag",
		Title: "The target's program is given all 32 bits of the STag that a Send with Invalidate names in RsvdULP",
		Also:  []string{"rfc5041-5.4-3"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			need(t, features(t).Invalidate, "Send with Invalidate")
			s := t.Open(conformance.Setup{Recvs: []uint32{8}})
			b := s.BufferOf(conformance.BufferSpec{Length: 8, Access: []string{
				service.LocalWrite, service.RemoteWrite, service.RemoteInvalidate,
			}})
			m := wire.Untagged(wire.SendInvalidate, conformance.Pattern(8))
			m.Invalidate = b.STag
			s.Post(m)
			c := delivers(t, s, m.Payload)
			t.Check(uint32(c.Invalidated) == b.STag, service.STag(b.STag).String(), "%s", c.Invalidated)
		},
	},
	{
		Clause: "rfc5041-4.2-3", Name: "write-is-no-read-response",
		Title: "A Write to the sink of the target's Read does not complete it, a Read Response does: RsvdULP is given to the ULP",
		Also:  []string{"rfc5041-5.4-3"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			h, b := awaitRead(t, s, 8)
			s.Post(wire.Tagged(wire.Write, h.SinkSTag, h.SinkTO, make([]byte, 8)))
			s.AwaitAlive()
			s.AwaitNoCompletion(service.SendQueue, "as only a Write has come")
			s.Post(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(8)))
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			s.AwaitContents(b, 0, conformance.Pattern(8))
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "read-response-not-before-its-last-segment",
		Title: "The target's Read completes when the last segment of the response has come, and not before",
		Also:  []string{"rfc5041-4.1-7"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			h, b := awaitRead(t, s, 16)
			segments := conformance.Segments(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, conformance.Pattern(16)), 8)
			s.Post(segments[0])
			awaitPlaced(t, b, segments[0].Payload)
			s.AwaitNoCompletion(service.SendQueue, "as the response is not whole")
			s.Post(segments[1])
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			s.AwaitContents(b, 0, conformance.Pattern(16))
		},
	},
}

// awaitPlaced waits until data stand at the beginning of a buffer; or for as long
// as nothing may come, as a target may place them later.
func awaitPlaced(t *conformance.T, b *conformance.Buffer, data []byte) {
	deadline := time.Now().Add(t.Quiet())
	for time.Now().Before(deadline) {
		got, err := t.Service().MemoryRead(t.Context(), b.MR, 0, len(data))
		t.Try(err, "looking into the target's memory")
		if slices.Equal(got, data) {
			return
		}
	}
}

// interleaves sends a message between the two segments of a Send. The RFC says
// neither that this may be done nor that it must not: what is wrong is to deliver
// something else than was sent.
func interleaves(t *conformance.T, s *conformance.Stream, other wire.Segment) {
	data := conformance.Pattern(16)
	segments := conformance.Segments(wire.Untagged(wire.Send, data), 8)
	other.Wrong = "the message before is not over"
	s.Post(segments[0], other, segments[1])
	deliversOrEnds(t, s, data)
}

// deliversOrEnds makes sure that a receive completes with these data, or without
// success.
func deliversOrEnds(t *conformance.T, s *conformance.Stream, data []byte) {
	c, err := t.Service().Completion(t.Context(), s.QP, service.RecvQueue, t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail("that the Send is delivered, or the stream ends", "neither")
	}
	t.Try(err, "waiting for a completion of the target")
	if c.Status == service.StatusSuccess {
		t.Check(slices.Equal(c.Data, data), "the Send as it was sent", "%x", head(c.Data))
	}
}
