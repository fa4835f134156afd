package cases

import (
	"bytes"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// ddpPieces: payload that goes to several places.
var ddpPieces = []conformance.Case{
	{
		Clause: "rfc5041-5.2-5", Name: "send-into-three-pieces", Also: []string{"rfc5040-5.3-2"}, Needs: conformance.NeedService,
		Title: "A Send of 20 bytes into a receive of three pieces of 8, apart from each other, fills them in turn, and nothing between them",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{}})
			b := s.BufferOf(conformance.BufferSpec{Length: 48, Access: []string{service.LocalWrite}})
			var pieces []service.Piece
			want := bytes.Repeat([]byte{conformance.Fill}, 48)
			data := conformance.Pattern(20)
			for i := range 3 {
				pieces = append(pieces, service.Piece{MR: b.MR, Offset: uint64(16 * i), Length: 8})
				copy(want[16*i:], data[8*i:min(8*i+8, len(data))])
			}
			_, err := t.Service().Recv(t.Context(), s.QP, service.Recv{SGL: pieces})
			t.Try(err, "posting a receive of three pieces")
			s.Post(conformance.Segments(wire.Untagged(wire.Send, data), 7)...)
			s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
			s.AwaitContents(b, 0, want)
		},
	},
	{
		Clause: "rfc5041-5.4-1", Name: "gap-in-a-send", Needs: conformance.NeedService,
		Title: "A Send whose segments leave out 8 of its 24 bytes is not delivered: the stream ends",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: []uint32{24}})
			segments := conformance.Segments(wire.Untagged(wire.Send, conformance.Pattern(24)), 8)
			segments[2].Wrong = "the segment before it is missing"
			s.Post(segments[0], segments[2])
			s.AwaitTeardown()
			deliversNothing(t, s)
		},
	},
	{
		Clause: "rfc5040-8.1.1-4", Name: "stale-response-during-the-next-read", Also: []string{"rfc5041-8.3.1-4", "rfc5042-6.2.2-1"}, Needs: conformance.NeedService,
		Title: "While the target reads into one region, a second response to its Read before, into another region, is refused, and what was read stays",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			b, h := sinkRead(t, s)
			answered(s, h)
			next, _ := sinkRead(t, s)
			s.Post(alien(wire.Tagged(wire.ReadResponse, h.SinkSTag, h.SinkTO, make([]byte, 32)), "that Read is over"))
			s.AwaitTerminate()
			readInto(t, b)
			s.AwaitUntouched(next)
			readFails(t, s)
		},
	},
}
