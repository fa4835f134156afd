package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// eight is how many messages these cases send on a queue, one after the other. To a target
// whose MSNs begin near 2^32, that shows the wrap.
const eight = 8

// ddpMSNEight: MSNs that count up, on each queue and in both directions, from the first
// one on, whatever that is (RFC 5041 §4.3).
var ddpMSNEight = []conformance.Case{
	{
		Clause: "rfc5041-4.3-7", Name: "eight-sends", Needs: conformance.NeedService,
		Title: "The MSNs of eight Sends of the target count up by one from the first, modulo 2^32",
		Run: func(t *conformance.T) {
			s := opened(t)
			s.Posts(slices.Repeat([]service.Post{{Op: service.OpSend, Data: []byte{1}}}, eight)...)
			for i := range uint32(eight) {
				numbered(t, s.Await(wire.Send), i)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-7", Name: "eight-reads", Needs: conformance.NeedService,
		Title: "The MSNs of eight Read Requests of the target count up by one from the first, modulo 2^32",
		Run: func(t *conformance.T) {
			s := opened(t)
			b := s.Buffer(8)
			for i := range uint32(eight) {
				s.Posts(service.Post{Op: service.OpRead, SGL: []service.Piece{{MR: b.MR, Length: 8}}, Remote: theirs})
				a := s.Await(wire.ReadRequest)
				numbered(t, a, i)
				rdmapAnswer(t, s, a.Segment)
				s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
			}
		},
	},
	{
		Clause: "rfc5041-4.3-7", Name: "eight-atomic-responses", Needs: conformance.NeedService,
		Title: "The MSNs of eight Atomic Responses of the target count up by one from the first, modulo 2^32",
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicWord(t, s, 0)
			for i := range uint32(eight) {
				s.Post(atomicRequest(fetchAdd(b, 0, 1, 0)))
				numbered(t, s.Await(wire.AtomicResponse), i)
			}
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "eight-sends-in-turn", Also: []string{"rfc5041-7.1-2", "rfc5041-5.2-5", "rfc5041-5.3-3"}, Needs: conformance.NeedService,
		Title: "Eight Sends whose MSNs count up by one from the first, modulo 2^32, are delivered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{eight}, eight)})
			for i := range eight {
				s.Post(wire.Untagged(wire.Send, conformance.Pattern(i+1)))
			}
			for i := range eight {
				delivers(t, s, conformance.Pattern(i+1))
			}
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "eight-reads-in-turn",
		Title: "Eight Read Requests whose MSNs count up by one from the first, modulo 2^32, are answered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			for range eight {
				s.AwaitAlive()
			}
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "eight-atomic-responses-in-turn", Needs: conformance.NeedService,
		Title: "Eight Atomic Responses whose MSNs count up by one from the first, modulo 2^32, complete the target's atomics",
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			for i := range uint64(eight) {
				s.Posts(ownFetchAdd(0))
				_, h := awaitAtomicRequest(t, s)
				s.Post(atomicResponse(h.RequestID, i))
				completesWith(t, s, i)
			}
		},
	},
	{
		Clause: "rfc5041-7.1-5", Name: "repeated-after-eight", Also: []string{"rfc5041-5.3-3"}, Needs: conformance.NeedService,
		Title: "After eight Sends, one with the MSN of the first is refused, Terminate 0x1203 or 0x1202, and not delivered",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{Recvs: slices.Repeat([]uint32{8}, eight+2)})
			m := wire.Untagged(wire.Send, conformance.Pattern(8))
			for range eight {
				s.Post(m)
				delivers(t, s, m.Payload)
			}
			m.MSN, m.Wrong = t.FirstMSN(), "an MSN that has been"
			s.PostExact(m, wire.Flaw{})
			s.AwaitTerminate(outOfRange...)
			drain(t, s)
			deliversNothing(t, s)
		},
	},
}

// numbered makes sure that a message is the one behind so many others of its queue.
func numbered(t *conformance.T, a wire.Arrival, behind uint32) {
	want := t.FirstMSN() + behind // modulo 2^32
	t.Check(a.MSN == want, fmt.Sprintf("MSN %d on queue %d", want, a.QN), "%s", a.Segment)
}
