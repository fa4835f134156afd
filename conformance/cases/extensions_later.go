package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// extensionsLater is the rules of atomics and Immediate Data for later messages (RFC
// 7306 §5, §6, §8).
var extensionsLater = []conformance.Case{
	{
		Clause: "rfc7306-8.2-5", Name: "unaligned-later", Also: []string{"rfc7306-8.2-4", "rfc7306-5.1.1-2"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d atomics that were carried out, a FetchAdd of an unaligned address is refused, Terminate 0x0207, and changes no octet", before),
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			word, b := atomicWord(t, s, 0), atomicBuffer(s, 64)
			for i := range uint64(before) {
				tryAtomic(t, s, fetchAdd(word, 0, 1, 0), i)
			}
			s.Post(alien(atomicRequest(fetchAdd(b, 20, 1, 0)), "the address is not aligned"))
			s.AwaitTerminate(wire.RDMAPCatastrophic)
			s.AwaitUntouched(b)
		},
	},
	{
		Clause: "rfc7306-8.1-2", Name: "response-to-another-request-later", Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d atomics of the target, an Atomic Response to a Request Identifier that is not outstanding is refused by a Terminate, and completes nothing", before),
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			var first uint32
			for i := range uint64(before) {
				s.Posts(ownFetchAdd(0))
				_, h := awaitAtomicRequest(t, s)
				if i == 0 {
					first = h.RequestID
				}
				s.Post(atomicResponse(h.RequestID, i))
				completesWith(t, s, i)
			}
			s.Posts(ownFetchAdd(0))
			_, h := awaitAtomicRequest(t, s)
			if h.RequestID == first {
				t.Inconclusive("the target gives all its atomics the same Request Identifier")
			}
			s.Post(alien(atomicResponse(first, 1), "the atomic with that identifier is over"))
			s.AwaitTerminate()
			c := endOf(t, s, service.SendQueue)
			t.Check(c.Status != service.StatusSuccess, "that the atomic fails", "that it completes with success")
		},
	},
	{
		Clause: "rfc7306-5.4-5", Name: "read-fence-later", Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d atomics of the target, a Send that is to wait for an atomic is sent when that is answered, and not before", before),
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			for i := range uint64(before) {
				s.Posts(ownFetchAdd(0))
				_, h := awaitAtomicRequest(t, s)
				s.Post(atomicResponse(h.RequestID, i))
				completesWith(t, s, i)
			}
			s.Posts(ownFetchAdd(0), service.Post{Op: service.OpSend, Data: conformance.Pattern(8), ReadFence: true})
			_, h := awaitAtomicRequest(t, s)
			s.AwaitAlive() // its response would come after a Send that does not wait
			s.AwaitQuiet("as the atomic is not answered")
			s.Post(atomicResponse(h.RequestID, before))
			s.AwaitMessage(wire.Send)
			completesWith(t, s, before)
			s.AwaitCompletion(service.SendQueue, service.StatusSuccess)
		},
	},
	{
		Clause: "rfc7306-6.3-7", Name: "imm-of-7-octets-later", Also: []string{"rfc7306-8.1-2"}, Needs: conformance.NeedService,
		Title: fmt.Sprintf("After %d Sends and Immediate Data of 8 octets, Immediate Data of 7 are refused by a Terminate, and not delivered", before-1),
		Run: func(t *conformance.T) {
			s := openImmediate(t, laterReceives(16))
			for range before - 1 {
				s.Post(wire.Untagged(wire.Send, []byte{1}))
				delivers(t, s, []byte{1})
			}
			s.Post(immediate(wire.ImmediateData, immediateOctets))
			awaitImmediate(t, s, immediateValue)
			s.Post(alien(immediate(wire.ImmediateData, conformance.Pattern(7)), "it has 7 octets"))
			s.AwaitTerminate()
			notDelivered(t, s)
		},
	},
}
