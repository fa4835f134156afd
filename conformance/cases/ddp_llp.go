package cases

import (
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// What DDP asks of the layer below it (RFC 5041 §3), as far as it shows above.
var ddpLLP = []conformance.Case{
	{
		Clause: "rfc5041-3-5", Name: "many-in-one",
		Title: "Fifty Sends that come at once, over TCP in one piece of its stream, are delivered as fifty messages",
		Also:  []string{"rfc5041-3-1"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{64}, 50)})
			t.Try(s.SendFrames(framedSends(s, 50), "fifty Sends in fifty FPDUs", ""), "sending")
			for i := range 50 {
				delivers(t, s, conformance.Pattern(i))
			}
		},
	},
	{
		Clause: "rfc5041-3-5", Name: "octet-by-octet",
		Title: "Two Sends whose octets come one at a time are delivered as two messages",
		Also:  []string{"rfc5041-3-1"},
		Needs: conformance.NeedService, MPA: aStream,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{64, 64}})
			for _, b := range slices.Concat(framedSends(s, 2)...) {
				t.Try(s.SendRaw([]byte{b}, "one octet of two Sends", ""), "sending")
			}
			delivers(t, s, nil)
			delivers(t, s, conformance.Pattern(1))
		},
	},
	{
		Clause: "rfc5041-3-8", Name: "any-padding",
		Title: "The length of a Send is that of its segment, without the pad: Sends of 1 to 9 octets are delivered with their lengths",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{16}, 9)})
			for n := 1; n <= 9; n++ {
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(n)))
				delivers(t, s, conformance.Pattern(n))
			}
		},
	},
	{
		Clause: "rfc5041-3-7", Name: "changed-payload",
		Title: "A segment with a changed octet of payload is refused by its digest: Terminate 0x2002",
		Run: func(t *conformance.T) {
			s := changed(t, conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, 0, 0, 0), 18+5)
			s.AwaitTerminate(wire.MPACRC)
		},
	},
	{
		Clause: "rfc5041-3-7", Name: "changed-header",
		Title: "A segment with a changed octet of its DDP header is refused by its digest: Terminate 0x2002",
		Run: func(t *conformance.T) {
			s := changed(t, wire.Tagged(wire.Write, 0, 0, nil), 9)
			s.AwaitTerminate(wire.MPACRC)
		},
	},
	{
		Clause: "rfc5041-7-1", Name: "crc-error",
		Title: "An error of the digest is reported to the target's program",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			reported(t, changed(t, wire.Tagged(wire.Write, 0, 0, nil), 9))
		},
	},
	{
		Clause: "rfc5041-3-4", Name: "never-read",
		Title: "A Send of 16 MiB that the tester never reads, and resets, does not complete with success",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(service.Post{Op: service.OpSend, SGL: []service.Piece{stalled(t)}})
			s.Await(wire.Send)
			t.Try(s.Reset(), "resetting the connection")
			c, err := t.Service().Completion(t.Context(), s.QP, service.SendQueue, t.Timeout())
			t.Try(err, "waiting for a completion of the target")
			t.Check(c.Status != service.StatusSuccess, "that the transfer has failed", "%s", c.Status)
		},
	},
	{
		Clause: "rfc5041-3-10", Name: "graceful-close",
		Title: "When the tester ends its half behind a Send, the target's program is told that the stream was closed, and not of an error",
		Also:  []string{"rfc5041-3-11"},
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{8}})
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(8)))
			delivers(t, s, conformance.Pattern(8))
			drain(t, s)
			const expected = "the event that the stream was closed"
			e, err := t.Service().Event(t.Context(), t.Timeout())
			if service.CodeOf(err) == service.CodeTimeout {
				t.Fail(expected, "none")
			}
			t.Try(err, "waiting for an event of the target")
			t.Check(e.Type == service.EventClosed, expected, "%s: %s", e.Type, e.Text)
		},
	},
}

// stalled returns memory of the target that is more than the lower layer holds on the way, so
// that to send it takes the tester to read.
func stalled(t *conformance.T) service.Piece {
	const n = 16 << 20
	r, err := t.Service().Register(t.Context(), service.RegisterArgs{Length: n})
	t.Try(err, "opening memory of the target")
	return r.Piece(0, n)
}

// unhurried gives the target time for what stands before a Terminate: where tester or target
// are slow, that would take longer than a close may. What is opened then has it.
func unhurried(t *conformance.T) {
	t.Try(t.Service().Configure(t.Context(), service.ConfigureArgs{CloseTimeout: 60_000}), "setting the time limit")
}

// framedSends returns n Sends, of 0, 1, 2 and so on bytes, as the lower layer has them.
func framedSends(s *conformance.Stream, n int) [][]byte {
	var frames [][]byte
	for i := range n {
		m := wire.Untagged(wire.Send, conformance.Pattern(i))
		m.MSN = uint32(i + 1)
		frames = append(frames, s.Frame(m.Octets(), wire.Flaw{}))
	}
	return frames
}

// aStream is what cases need that send a part of a segment.
const aStream = "stream of octets, in which a segment can come in parts"

// changed sends a segment with one of its bytes changed, but not the CRC.
func changed(t *conformance.T, seg wire.Segment, at int) *conformance.Stream {
	s := t.Open(conformance.Setup{})
	s.Hello() // a Responder may send a Terminate only when it has had an FPDU that was right
	s.PostFlawed(seg, wire.Flaw{
		FlipAfter: func(fpdu []byte) { fpdu[s.Lead()+at] ^= 0x10 }, Wrong: "an octet is changed, and the CRC is not",
	})
	return s
}
