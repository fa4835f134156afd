package cases

import (
	"encoding/binary"
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// extensions is the cases on atomics and Immediate Data (RFC 7306).
func extensions() []conformance.Case {
	return slices.Concat(
		fetchAddCases(), cmpSwapCases(), atomicPlaces(), atomicAlignment(), atomicProtection(),
		atomicCodes(), atomicHeaders(), atomicAnswers, atomicOrder, atomicDepth(), atomicity,
		ownAtomics(), ownAtomicResponses(), badAtomicResponses(),
		immediates, immediateLengths(), immediatePieces, immediateHeaders(), ownImmediates(),
		extensionTerminates(), extensionsAstray(), extensionsLater,
	)
}

// openAtomics opens a stream to a target with atomics; it skips the case if there
// are none.
func openAtomics(t *conformance.T, setup conformance.Setup) *conformance.Stream {
	needAtomics(t)
	return t.Open(setup)
}

func needAtomics(t *conformance.T) {
	if !t.Service().Hello().Features.Atomics {
		t.Skip("the target has no atomics")
	}
}

// openImmediate opens a stream to a target with Immediate Data; it skips the case
// if there is none.
func openImmediate(t *conformance.T, setup conformance.Setup) *conformance.Stream {
	if !t.Service().Hello().Features.Immediate {
		t.Skip("the target has no Immediate Data")
	}
	return t.Open(setup)
}

// needBase skips a case unless the TOs of a region can begin anywhere.
func needBase(t *conformance.T) {
	if !t.Service().Hello().Features.Base {
		t.Skip("the target chooses itself where the TOs of a region begin")
	}
}

// atomicRights are those of memory for atomics, and for nothing else.
var atomicRights = []string{service.LocalWrite, service.RemoteAtomic}

// atomicBuffer opens n bytes of memory for atomics.
func atomicBuffer(s *conformance.Stream, n int) *conformance.Buffer {
	return s.BufferOf(conformance.BufferSpec{Length: n, Access: atomicRights})
}

// atomicWord opens memory of 64 bytes for atomics, whose first word is v.
func atomicWord(t *conformance.T, s *conformance.Stream, v uint64) *conformance.Buffer {
	b := atomicBuffer(s, 64)
	setWord(t, b, 0, v)
	return b
}

// setWord has the target's program set a word of its memory.
func setWord(t *conformance.T, b *conformance.Buffer, off int, v uint64) {
	err := t.Service().MemoryWrite(t.Context(), b.MR, uint64(off), inMemory(t, v))
	t.Try(err, "setting the target's memory")
}

// inMemory returns the bytes of a word in the target's memory (RFC 7306 §5.1:
// "in the endian format of the target memory").
func inMemory(t *conformance.T, v uint64) []byte {
	if t.Service().Hello().Features.ByteOrder == "big" {
		return binary.BigEndian.AppendUint64(nil, v)
	}
	return binary.LittleEndian.AppendUint64(nil, v)
}

// requestID is the Request Identifier of atomics for which it doesn't matter.
const requestID = 0x7306A70C

// fetchAdd returns the header of a FetchAdd on the word at off.
func fetchAdd(b *conformance.Buffer, off int, add, mask uint64) wire.AtomicHeader {
	return wire.AtomicHeader{
		Operation: wire.FetchAdd, RequestID: requestID, STag: b.STag, TO: b.TO + uint64(off),
		Data: add, Mask: mask, CompareMask: ^uint64(0),
	}
}

// cmpSwap returns the header of a CmpSwap of the whole word at off.
func cmpSwap(b *conformance.Buffer, off int, compare, swap uint64) wire.AtomicHeader {
	return wire.AtomicHeader{
		Operation: wire.CmpSwap, RequestID: requestID, STag: b.STag, TO: b.TO + uint64(off),
		Data: swap, Mask: ^uint64(0), Compare: compare, CompareMask: ^uint64(0),
	}
}

// atomicKinds are the operations, for cases that try both on the word at off.
var atomicKinds = []struct {
	name  string // for IDs
	title string
	on    func(b *conformance.Buffer, off int) wire.AtomicHeader
}{
	{"fetchadd", "FetchAdd", func(b *conformance.Buffer, off int) wire.AtomicHeader { return fetchAdd(b, off, 1, 0) }},
	{"cmpswap", "CmpSwap", func(b *conformance.Buffer, off int) wire.AtomicHeader {
		h := cmpSwap(b, off, 0, 1)
		h.CompareMask = 0 // it always swaps
		return h
	}},
}

// atomicRequest returns the Atomic Request with a header.
func atomicRequest(h wire.AtomicHeader) wire.Segment {
	return wire.Untagged(wire.AtomicRequest, h.Octets())
}

// awaitOriginal waits for the Atomic Response to request id, and returns the value
// in it.
func awaitOriginal(t *conformance.T, s *conformance.Stream, id uint32) uint64 {
	expected := fmt.Sprintf("an Atomic Response of 12 octets to request 0x%08x", id)
	a := s.Await(wire.AtomicResponse)
	r, err := wire.ParseAtomicResult(a.Payload)
	t.Check(err == nil && len(a.Payload) == wire.AtomicResponseLen, expected, "one of %d octets", len(a.Payload))
	t.Check(r.RequestID == id, expected, "one to request 0x%08x", r.RequestID)
	return r.Original
}

// tryAtomic has the target carry out an atomic, and checks the value that comes
// back.
func tryAtomic(t *conformance.T, s *conformance.Stream, h wire.AtomicHeader, original uint64) {
	s.Post(atomicRequest(h))
	got := awaitOriginal(t, s, h.RequestID)
	t.Check(got == original, fmt.Sprintf("the original value 0x%016x in the Atomic Response", original), "0x%016x", got)
}

// endOf closes a connection whose stream has ended, after which the target gives up
// what was outstanding, and returns the next completion of a queue.
func endOf(t *conformance.T, s *conformance.Stream, queue string) *service.Completion {
	t.Try(s.Close(), "closing the connection")
	c, err := t.Service().Completion(t.Context(), s.QP, queue, t.Timeout())
	if service.CodeOf(err) == service.CodeTimeout {
		t.Fail("that the target's "+queue+" queue completes what was outstanding", "nothing")
	}
	t.Try(err, "waiting for a completion of the target")
	return c
}

// alien returns a segment with what is wrong with it.
func alien(seg wire.Segment, wrong string) wire.Segment {
	seg.Wrong = wrong
	return seg
}

// remoteOperation are the codes for what can't be understood or carried out (RFC
// 5040 §4.8 figure 9), where none is named.
var remoteOperation = []wire.Code{wire.RDMAPOpcode, wire.RDMAPCatastrophic, wire.RDMAPOther}

// noBufferCodes are the codes for a message that has no untagged buffer (RFC 5041 §7.2).
var noBufferCodes = []wire.Code{wire.DDPNoBuffer, wire.DDPMSNRange}
