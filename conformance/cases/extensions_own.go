package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// theirSTag and theirTO are where the target's own requests go: memory that the
// tester pretends to have.
const (
	theirSTag = 0xA70C0100
	theirTO   = 0x7306000000001000
)

func there(off uint64) service.Remote {
	return service.Remote{STag: theirSTag, TO: service.Uint64(theirTO + off)}
}

// ownFetchAdd is a FetchAdd for the target's program to post.
func ownFetchAdd(off uint64) service.Post {
	return service.Post{Op: service.OpFetchAdd, Remote: there(off), Add: 0x0123456789ABCDEF, AddMask: 0x8000000080000000}
}

// openOwnAtomics opens a stream on which the target may send atomics.
func openOwnAtomics(t *conformance.T, setup conformance.Setup) *conformance.Stream {
	s := openAtomics(t, setup)
	s.Hello()
	return s
}

// awaitAtomicRequest waits for an Atomic Request of the target.
func awaitAtomicRequest(t *conformance.T, s *conformance.Stream) (wire.Arrival, wire.AtomicHeader) {
	a := s.Await(wire.AtomicRequest)
	h, err := wire.ParseAtomicHeader(a.Payload)
	t.Check(err == nil, "an Atomic Request of 52 octets", "one of %d", len(a.Payload))
	return a, h
}

// atomicResponse returns the Atomic Response to a request.
func atomicResponse(id uint32, original uint64) wire.Segment {
	return wire.Untagged(wire.AtomicResponse, wire.AtomicResult{RequestID: id, Original: original}.Octets())
}

// ownAtomics: the Atomic Requests that the target sends.
func ownAtomics() []conformance.Case {
	part, low := service.Uint64(0xFF00FF00FF00FF00), service.Uint64(0xFFFFFFFF)
	zero := service.Uint64(0)
	out := []conformance.Case{
		ownFields("fetchadd", service.Post{Op: service.OpFetchAdd, Add: 0x0123456789ABCDEF},
			wire.AtomicHeader{Operation: wire.FetchAdd, Data: 0x0123456789ABCDEF, CompareMask: ^uint64(0)}),
		ownFields("fetchadd-mask", service.Post{Op: service.OpFetchAdd, Add: 0x8000000000000001, AddMask: 0x8000000080000001},
			wire.AtomicHeader{Operation: wire.FetchAdd, Data: 0x8000000000000001, Mask: 0x8000000080000001, CompareMask: ^uint64(0)}),
		ownFields("cmpswap", service.Post{Op: service.OpCmpSwap, Compare: 0x0123456789ABCDEF, Swap: 0xFEDCBA9876543210},
			wire.AtomicHeader{Operation: wire.CmpSwap, Data: 0xFEDCBA9876543210, Mask: ^uint64(0), Compare: 0x0123456789ABCDEF, CompareMask: ^uint64(0)}),
		ownFields("cmpswap-masks", service.Post{Op: service.OpCmpSwap, Compare: 0xAB00CD00EF000100, Swap: 0x76543210, CompareMask: &part, SwapMask: &low},
			wire.AtomicHeader{Operation: wire.CmpSwap, Data: 0x76543210, Mask: 0xFFFFFFFF, Compare: 0xAB00CD00EF000100, CompareMask: 0xFF00FF00FF00FF00}),
		ownFields("cmpswap-masks-zero", service.Post{Op: service.OpCmpSwap, Compare: 1, Swap: 2, CompareMask: &zero, SwapMask: &zero},
			wire.AtomicHeader{Operation: wire.CmpSwap, Data: 2, Compare: 1}),
	}
	return append(out,
		conformance.Case{
			Clause: "rfc7306-5.2.1-3", Name: "own-atomic-untagged",
			Title: "The target's Atomic Request is untagged, and one segment",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openOwnAtomics(t, conformance.Setup{})
				s.Posts(ownFetchAdd(0))
				a, _ := awaitAtomicRequest(t, s)
				t.Check(!a.Tagged && a.Last && a.MO == 0, "one untagged segment with MO 0", "%q", a.Fields())
			},
		},
		conformance.Case{
			Clause: "rfc7306-5.2.1-8", Name: "own-atomic-on-queue-1", Also: []string{"rfc7306-5.2-1"},
			Title: "The target's Atomic Request goes to queue 1",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openOwnAtomics(t, conformance.Setup{})
				s.Posts(ownFetchAdd(0))
				a, _ := awaitAtomicRequest(t, s)
				t.Check(a.QN == 1, "QN 1", "%s", a.Segment)
			},
		},
		conformance.Case{
			Clause: "rfc7306-4.1-1", Name: "own-atomic-control-fields",
			Title: "The target's Atomic Request has RV 01b, opcode 1010b, Invalidate STag 0, and nothing in what is reserved",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openOwnAtomics(t, conformance.Setup{})
				s.Posts(ownFetchAdd(0))
				a, h := awaitAtomicRequest(t, s)
				t.Check(a.RV == 1 && a.Invalidate == 0 && a.RDMAPReserved == 0 && a.Reserved == 0, "RV 1, Invalidate STag 0, reserved bits 0", "%q", a.Fields())
				t.Check(h.Reserved == 0, "that the 28 reserved bits of the header are 0", "0x%x", h.Reserved)
			},
		},
		conformance.Case{
			Clause: "rfc7306-5.2-1", Name: "own-atomics-and-reads-count",
			Title: "The target's Atomic Requests and Read Requests share queue 1: their MSNs count up together",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openOwnAtomics(t, conformance.Setup{})
				sink := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite}})
				read := service.Post{Op: service.OpRead, Remote: there(64), SGL: []service.Piece{{MR: sink.MR, Length: 8}}}
				s.Posts(ownFetchAdd(0), read, ownFetchAdd(8), ownFetchAdd(16), read)
				for i, op := range []wire.Opcode{wire.AtomicRequest, wire.ReadRequest, wire.AtomicRequest, wire.AtomicRequest, wire.ReadRequest} {
					a := s.Await(op)
					t.Check(a.QN == 1 && a.MSN == uint32(i+1), fmt.Sprintf("QN 1 and MSN %d", i+1), "%s", a.Segment)
				}
			},
		},
		conformance.Case{
			Clause: "rfc7306-5.2.1-9", Name: "own-atomics-in-order",
			Title: "The target's Atomic Requests come in the order in which its program has posted them, with other messages where they belong",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openOwnAtomics(t, conformance.Setup{})
				s.Posts(
					ownFetchAdd(0), service.Post{Op: service.OpSend, Data: service.Hex{1}},
					service.Post{Op: service.OpCmpSwap, Remote: there(8)}, ownFetchAdd(16), service.Post{Op: service.OpSend, Data: service.Hex{2}},
				)
				expect := func(off uint64) {
					_, h := awaitAtomicRequest(t, s)
					t.Check(h.TO == theirTO+off, fmt.Sprintf("the atomic on TO 0x%x", uint64(theirTO)+off), "one on 0x%x", h.TO)
				}
				expect(0)
				s.Await(wire.Send)
				expect(8)
				expect(16)
				s.Await(wire.Send)
			},
		},
		conformance.Case{
			Clause: "rfc7306-5.2.2-4", Name: "own-atomics-within-ird", Also: []string{"rfc5040-6.1-4"},
			Title: "The target has no more atomics outstanding than were agreed upon for Reads, which is 2; with each response one more comes",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				setup, two := conformance.Setup{IRD: 2}, 2
				if t.Role() == conformance.Initiator { // whose ORD the tester's IRD follows
					setup.Start.ORD = &two
				}
				s := openOwnAtomics(t, setup)
				s.Posts(ownFetchAdd(0), ownFetchAdd(8), ownFetchAdd(16), ownFetchAdd(24))
				_, first := awaitAtomicRequest(t, s)
				_, second := awaitAtomicRequest(t, s)
				s.AwaitQuiet("as two atomics are outstanding, and no more were agreed upon")
				s.Post(atomicResponse(first.RequestID, 1))
				_, third := awaitAtomicRequest(t, s)
				t.Check(third.TO == theirTO+16, "the third atomic", "one on 0x%x", third.TO)
				s.Post(atomicResponse(second.RequestID, 2))
				awaitAtomicRequest(t, s)
			},
		},
	)
}

// ownFields is a case on the header of an atomic that the target's program posts.
func ownFields(name string, post service.Post, want wire.AtomicHeader) conformance.Case {
	post.Remote = there(8)
	return conformance.Case{
		Clause: "rfc7306-5.2.1-1", Name: "own-" + name, Also: []string{"rfc7306-5-2"},
		Title: fmt.Sprintf("The header of the target's atomic (%s) says what its program has asked for: 52 octets as in figure 4", name),
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openOwnAtomics(t, conformance.Setup{})
			s.Posts(post)
			a, h := awaitAtomicRequest(t, s)
			t.Check(len(a.Payload) == wire.AtomicRequestLen, "52 octets", "%d", len(a.Payload))
			t.Check(h.STag == theirSTag && h.TO == theirTO+8, fmt.Sprintf("STag 0x%08x and TO 0x%x", uint32(theirSTag), uint64(theirTO)+8), "STag 0x%08x and TO 0x%x", h.STag, h.TO)
			t.Check(h.Operation == want.Operation, fmt.Sprintf("operation code %d", want.Operation), "%d", h.Operation)
			t.Check(h.Data == want.Data && h.Mask == want.Mask, fmt.Sprintf("data 0x%016x under mask 0x%016x", want.Data, want.Mask), "data 0x%016x under mask 0x%016x", h.Data, h.Mask)
			t.Check(h.Compare == want.Compare && h.CompareMask == want.CompareMask, fmt.Sprintf("compare data 0x%016x under mask 0x%016x", want.Compare, want.CompareMask),
				"compare data 0x%016x under mask 0x%016x", h.Compare, h.CompareMask)
		},
	}
}
