package cases

import (
	"bytes"
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// atomicPlaces: where atomics work, and how their words stand there.
func atomicPlaces() []conformance.Case {
	out := []conformance.Case{
		{
			Clause: "rfc7306-5-2", Name: "fetchadd-byte-order",
			Title: "A FetchAdd computes with the target's byte order: of the octets 01 02 ... 08, the right one grows; the original value is big-endian on the wire",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 8)
				octets := []byte{1, 2, 3, 4, 5, 6, 7, 8}
				t.Try(t.Service().MemoryWrite(t.Context(), b.MR, 0, octets), "setting the target's memory")
				orig, grows := uint64(0x0807060504030201), 0
				if t.Service().Hello().Features.ByteOrder == "big" {
					orig, grows = 0x0102030405060708, 7
				}
				tryAtomic(t, s, fetchAdd(b, 0, 0x10, 0), orig)
				octets[grows] += 0x10
				s.AwaitContents(b, 0, octets)
			},
		},
		{
			Clause: "rfc7306-5.1.2-1", Name: "byte-order",
			Title: "A CmpSwap compares and swaps with the target's byte order",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicWord(t, s, 0x0102030405060708)
				tryAtomic(t, s, cmpSwap(b, 0, 0x0102030405060708, 0x1112131415161718), 0x0102030405060708)
				s.AwaitContents(b, 0, inMemory(t, 0x1112131415161718))
			},
		},
		{
			Clause: "rfc7306-5.2.1-2", Name: "odd-offset-of-an-aligned-address", Also: []string{"rfc7306-5.1.1-1"},
			Title: "It is the address that has to be aligned, not the TO: a FetchAdd at the odd TO of an aligned address is carried out",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needAtomics(t)
				needBase(t)
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: atomicRights, Base: 0x10003})
				setWord(t, b, 8, 40)
				tryAtomic(t, s, fetchAdd(b, 8, 2, 0), 40)
				s.AwaitContents(b, 8, inMemory(t, 42))
			},
		},
		{
			Clause: "rfc7306-8.2-4", Name: "aligned-offset-of-an-odd-address", Also: []string{"rfc7306-5.2.1-2", "rfc7306-8.2-5"},
			Title: "It is the address that has to be aligned, not the TO: a FetchAdd at the aligned TO of an odd address is refused, Terminate 0x0207",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needAtomics(t)
				needBase(t)
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: atomicRights, Base: 0x10003})
				s.Post(alien(atomicRequest(fetchAdd(b, 5, 1, 0)), "the address behind the TO is not aligned"))
				s.AwaitTerminate(wire.RDMAPCatastrophic)
				s.AwaitUntouched(b)
			},
		},
	}
	for _, k := range atomicKinds {
		for _, off := range []int{0, 8, 56} {
			out = append(out, conformance.Case{
				Clause: "rfc7306-5.2.1-11", Name: fmt.Sprintf("%s-at-%d-of-64", k.name, off), Also: []string{"rfc7306-5.2.1-2"},
				Title: fmt.Sprintf("%s on the word at octet %d of 64 is carried out, and changes no octet beside it", k.title, off),
				Needs: conformance.NeedService,
				Run: func(t *conformance.T) {
					s := openAtomics(t, conformance.Setup{})
					b := atomicBuffer(s, 64)
					setWord(t, b, off, 0)
					tryAtomic(t, s, k.on(b, off), 0)
					want := bytes.Repeat([]byte{conformance.Fill}, 64)
					copy(want[off:], inMemory(t, 1))
					s.AwaitContents(b, 0, want)
				},
			})
		}
	}
	return out
}

// atomicAlignment: each of the offsets that are not aligned is refused, with the
// code of RFC 7306 §8.2.
func atomicAlignment() []conformance.Case {
	clauses := map[string][]string{
		"fetchadd": {"rfc7306-5.1.1-2", "rfc7306-5.1.1-3", "rfc7306-5.1.1-4", "rfc7306-5.1.1-1"},
		"cmpswap":  {"rfc7306-5.1.2-3", "rfc7306-5.1.2-4", "rfc7306-5.1.2-6", "rfc7306-5.1.2-2"},
	}
	var out []conformance.Case
	for _, k := range atomicKinds {
		of := clauses[k.name]
		for off := 1; off < 8; off++ {
			out = append(out, conformance.Case{
				Clause: "rfc7306-8.2-5", Name: fmt.Sprintf("%s-%d-beyond-a-word", k.name, off), Also: []string{"rfc7306-8.2-4"},
				Title: fmt.Sprintf("%s %d octets beyond an aligned address is refused: Terminate 0x0207", k.title, off),
				Needs: conformance.NeedService,
				Run: func(t *conformance.T) {
					s := openAtomics(t, conformance.Setup{})
					b := atomicBuffer(s, 64)
					s.Post(alien(atomicRequest(k.on(b, 16+off)), "the address is not aligned"))
					s.AwaitTerminate(wire.RDMAPCatastrophic)
				},
			})
		}
		out = append(out, conformance.Case{
			Clause: of[1], Name: k.name + "-unaligned-leaves-memory", Also: []string{of[0], of[3]},
			Title: k.title + " of an unaligned address ends the stream and changes no octet",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				s.Post(alien(atomicRequest(k.on(b, 20)), "the address is not aligned"))
				s.AwaitTeardown()
				s.AwaitUntouched(b)
			},
		}, conformance.Case{
			Clause: of[2], Name: k.name + "-unaligned-terminates",
			Title: k.title + " of an unaligned address is answered by a Terminate, and by nothing else",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				s.Post(alien(atomicRequest(k.on(b, 4)), "the address is not aligned"))
				s.AwaitTerminate()
			},
		}, conformance.Case{
			Clause: map[string]string{"fetchadd": "rfc7306-5.1.1-4", "cmpswap": "rfc7306-5.1.2-5"}[k.name], Name: k.name + "-unaligned-is-told",
			Title: k.title + " of an unaligned address is surfaced: the target's program gets an asynchronous error",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				s.Post(alien(atomicRequest(k.on(b, 4)), "the address is not aligned"))
				s.AwaitTerminate()
				awaitErrorEvent(t, s)
			},
		})
	}
	return out
}

// awaitErrorEvent waits until the target's program is told that the peer has broken
// a rule.
func awaitErrorEvent(t *conformance.T, s *conformance.Stream) {
	const expected = "that the target's program is told of the peer's error"
	e, err := t.Service().Event(t.Context(), t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail(expected, "nothing")
	}
	t.Try(err, "waiting for an event")
	t.Note("the target tells its program: %s", e.Text)
	switch e.Type {
	case service.EventRemoteOperation, service.EventProtection, service.EventCatastrophic:
		t.Check(e.QP == s.QP, expected, "an event %s of queue pair %d", e.Type, e.QP)
	default:
		t.Fail(expected, "an event %s", e.Type)
	}
}
