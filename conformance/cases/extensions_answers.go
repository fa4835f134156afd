package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// twoRights are those of memory for Reads and atomics.
var twoRights = []string{service.RemoteRead, service.LocalWrite, service.RemoteAtomic}

// atomicAnswers: how Atomic Responses look, and who answers.
var atomicAnswers = []conformance.Case{
	{
		Clause: "rfc7306-5.2.2-1", Name: "response-untagged", Also: []string{"rfc7306-5-3"},
		Title: "An Atomic Response is untagged, and one segment with all of it",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			a := oneResponse(t)
			t.Check(!a.Tagged, "an untagged segment", "%s, tagged", a.Segment)
			t.Check(a.Last && a.MO == 0, "the whole message in one segment", "%s", a.Segment)
		},
	},
	{
		Clause: "rfc7306-5.2.2-2", Name: "response-on-queue-3", Also: []string{"rfc7306-5-3", "rfc7306-5.2-2"},
		Title: "An Atomic Response goes to queue 3, with MSN 1 if it is the first one",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			a := oneResponse(t)
			t.Check(a.QN == 3 && a.MSN == 1, "QN 3 and MSN 1", "%s", a.Segment)
		},
	},
	{
		Clause: "rfc7306-4.1-1", Name: "response-control-fields",
		Title: "An Atomic Response has RV 01b, opcode 1011b, Invalidate STag 0, and nothing in what is reserved",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			a := oneResponse(t)
			t.Check(a.RV == 1 && a.Opcode == wire.AtomicResponse && a.Invalidate == 0 && a.RDMAPReserved == 0 && a.Reserved == 0,
				"RV 1, opcode 11, Invalidate STag 0, reserved bits 0", "%q", a.Fields())
		},
	},
	{
		Clause: "rfc7306-5.2.1-11", Name: "response-of-12-octets",
		Title: "An Atomic Response has the header of figure 6, which has 12 octets, and nothing behind it",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			a := oneResponse(t)
			t.Check(len(a.Payload) == wire.AtomicResponseLen, "12 octets", "%d", len(a.Payload))
		},
	},
	{
		Clause: "rfc5041-4.3-7", Name: "atomic-responses-count", Also: []string{"rfc7306-5.2-2"},
		Title: "The MSNs of Atomic Responses count up from 1, Read Responses between them or not",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: twoRights})
			for n := uint32(1); n <= 3; n++ {
				s.Post(atomicRequest(fetchAdd(b, 0, 1, 0)))
				a := s.Await(wire.AtomicResponse)
				t.Check(a.MSN == n, fmt.Sprintf("MSN %d", n), "%s", a.Segment)
				s.Read(b.STag, b.TO, 16)
			}
		},
	},
	{
		Clause: "rfc7306-5.2.1-6", Name: "atomic-is-not-delivered", Also: []string{"rfc7306-5.2.1-5"},
		Title: "An Atomic Request is answered without the target's program: no receive completes, though one is posted",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{Recvs: []uint32{64}})
			b := atomicWord(t, s, 1)
			tryAtomic(t, s, fetchAdd(b, 0, 1, 0), 1)
			s.AwaitNoCompletion(service.RecvQueue, "as an Atomic Request is not for the program")
			s.Post(wire.Untagged(wire.Send, conformance.Pattern(64)))
			c := s.AwaitCompletion(service.RecvQueue, service.StatusSuccess)
			t.Check(c.Length == 64, "that the Send takes the receive", "%d octets", c.Length)
		},
	},
	{
		Clause: "rfc7306-5.2.1-4", Name: "atomic-takes-one-msn", Also: []string{"rfc7306-5.2-1"},
		Title: "Atomic Requests and Read Requests share queue 1: each takes one buffer, and one MSN",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: twoRights})
			setWord(t, b, 0, 5)
			s.Read(b.STag, b.TO, 8)
			tryAtomic(t, s, fetchAdd(b, 0, 1, 0), 5)
			s.Read(b.STag, b.TO, 8)
			tryAtomic(t, s, fetchAdd(b, 0, 1, 0), 6)
			tryAtomic(t, s, fetchAdd(b, 0, 1, 0), 7)
		},
	},
	{
		Clause: "rfc7306-5.2.1-11", Name: "request-in-two-segments", Also: []string{"rfc5041-5.2-5"},
		Title: "An Atomic Request that comes in two segments is carried out as one",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicWord(t, s, 9)
			s.Post(conformance.Segments(atomicRequest(fetchAdd(b, 0, 1, 0)), 26)...)
			got := awaitOriginal(t, s, requestID)
			t.Check(got == 9, "the original value 9", "%d", got)
			s.AwaitContents(b, 0, inMemory(t, 10))
		},
	},
	{
		Clause: "rfc7306-5.4-3", Name: "not-before-the-last-segment", Also: []string{"rfc7306-5.4-4"},
		Title: "An Atomic Request without its last segment is not carried out: neither is there a response, nor does the memory change",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicBuffer(s, 64)
			parts := conformance.Segments(atomicRequest(fetchAdd(b, 0, 1, 0)), 48)
			s.Post(parts[0])
			s.AwaitQuiet("as the request is not delivered yet")
			s.AwaitUntouched(b)
			s.Post(parts[1])
			awaitOriginal(t, s, requestID)
		},
	},
	{
		Clause: "rfc7306-5.4-4", Name: "after-a-write", Also: []string{"rfc7306-5.4-3"},
		Title: "An atomic is carried out after the Writes before it: it finds what they have placed",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			const n = 64 << 10
			b := s.BufferOf(conformance.BufferSpec{Length: n, Access: []string{service.LocalWrite, service.RemoteWrite, service.RemoteAtomic}})
			w := wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(n))
			copy(w.Payload[n-8:], inMemory(t, 0x0102030405060708))
			s.Post(conformance.Segments(w, 1024)...)
			tryAtomic(t, s, fetchAdd(b, n-8, 1, 0), 0x0102030405060708)
			s.AwaitContents(b, n-8, inMemory(t, 0x0102030405060709))
		},
	},
	identifierCase("zero", 0),
	identifierCase("all-ones", 0xFFFFFFFF),
	identifierCase("top-bit", 0x80000001),
	{
		Clause: "rfc7306-5.2.1-11", Name: "identifier-twice",
		Title: "Two Atomic Requests with the same Request Identifier are both answered with it",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicWord(t, s, 0)
			h := fetchAdd(b, 0, 1, 0)
			s.Post(atomicRequest(h), atomicRequest(h))
			for want := range uint64(2) {
				got := awaitOriginal(t, s, h.RequestID)
				t.Check(got == want, fmt.Sprintf("the original value %d", want), "%d", got)
			}
		},
	},
}

// oneResponse has an atomic carried out, and returns the response.
func oneResponse(t *conformance.T) wire.Arrival {
	s := openAtomics(t, conformance.Setup{})
	b := atomicWord(t, s, 1)
	s.Post(atomicRequest(fetchAdd(b, 0, 1, 0)))
	return s.Await(wire.AtomicResponse)
}

func identifierCase(name string, id uint32) conformance.Case {
	return conformance.Case{
		Clause: "rfc7306-5.2.1-11", Name: "identifier-" + name,
		Title: fmt.Sprintf("The Request Identifier 0x%08x comes back in the Atomic Response", id),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicWord(t, s, 1)
			h := fetchAdd(b, 0, 1, 0)
			h.RequestID = id
			tryAtomic(t, s, h, 1)
		},
	}
}
