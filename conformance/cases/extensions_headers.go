package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/wire"
)

// atomicCodes: operation codes that are reserved or not assigned (RFC 7306 figure
// 5).
func atomicCodes() []conformance.Case {
	var out []conformance.Case
	for code := range uint8(16) {
		if code == wire.FetchAdd || code == wire.CmpSwap {
			continue
		}
		out = append(out, conformance.Case{
			Clause: "rfc7306-5.2.1-7", Name: fmt.Sprintf("code-%d", code), Also: []string{"rfc7306-8.1-2"},
			Title: fmt.Sprintf("An Atomic Request with operation code %d is refused by a Terminate, and changes nothing", code),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				h := fetchAdd(b, 0, 1, 0)
				h.Operation, h.CompareMask = code, 0
				s.Post(alien(atomicRequest(h), fmt.Sprintf("operation code %d", code)))
				s.AwaitTerminate(remoteOperation...)
				s.AwaitUntouched(b)
			},
		})
	}
	return out
}

// atomicHeaders: lengths of the header, fields that are not to be looked at, and
// versions.
func atomicHeaders() []conformance.Case {
	var out []conformance.Case
	for _, n := range []int{0, 4, 28, 44, 51} {
		out = append(out, conformance.Case{
			Clause: "rfc7306-8.2-1", Name: fmt.Sprintf("atomic-request-of-%d-octets", n), Also: []string{"rfc7306-8.1-2"},
			Title: fmt.Sprintf("An Atomic Request of %d octets, where its header has 52, is refused by a Terminate, and changes nothing", n),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				r := atomicRequest(fetchAdd(b, 0, 1, 0))
				r.Payload = r.Payload[:n]
				s.Post(alien(r, "its header is cut short"))
				s.AwaitTerminate()
				s.AwaitUntouched(b)
			},
		})
	}
	for _, n := range []int{53, 56, 64} {
		out = append(out, conformance.Case{
			Clause: "rfc7306-8.2-1", Name: fmt.Sprintf("atomic-request-of-%d-octets", n), Also: []string{"rfc7306-8.1-2"},
			Title: fmt.Sprintf("An Atomic Request of %d octets, where its header has 52 and no payload follows, is refused by a Terminate, and changes nothing", n),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				r := atomicRequest(fetchAdd(b, 0, 1, 0))
				r.Payload = append(r.Payload, make([]byte, n-len(r.Payload))...)
				s.Post(alien(r, "payload follows its header"))
				a, err := s.Next(t.Timeout())
				if err == nil && a.Opcode == wire.AtomicResponse {
					t.Inconclusive("the target passes over what follows the header: no clause says in so many words that it must not")
				}
				t.Check(err == nil && a.Opcode == wire.Terminate, "a Terminate", "%s", gotten(a, err))
				s.AwaitUntouched(b)
			},
		})
	}
	for _, x := range []struct {
		clause, name, title string
		change              func(r *wire.Segment, h *wire.AtomicHeader)
	}{
		{
			"rfc7306-5.2.1-11", "reserved-bits", "The 28 reserved bits of an Atomic Request are ignored",
			func(_ *wire.Segment, h *wire.AtomicHeader) { h.Reserved = 0x0FFFFFFF },
		},
		{
			"rfc7306-5.2.1-11", "reserved-bit-beside-the-code", "The reserved bit beside the operation code is no part of it",
			func(_ *wire.Segment, h *wire.AtomicHeader) { h.Reserved = 1 },
		},
		{
			"rfc7306-5.2.1-11", "compare-fields-of-a-fetchadd", "The compare fields of a FetchAdd are ignored",
			func(_ *wire.Segment, h *wire.AtomicHeader) { h.Compare, h.CompareMask = 0x1111111111111111, 0 },
		},
		{
			"rfc7306-4.1-1", "invalidate-stag-of-an-atomic-request", "The Invalidate STag of an Atomic Request is ignored",
			func(r *wire.Segment, h *wire.AtomicHeader) { r.Invalidate = h.STag },
		},
		{
			"rfc7306-4.1-1", "reserved-bits-of-an-atomic-request", "The reserved bits of DDP and RDMAP in an Atomic Request are ignored",
			func(r *wire.Segment, _ *wire.AtomicHeader) { r.Reserved, r.RDMAPReserved = 0xF, 3 },
		},
	} {
		out = append(out, conformance.Case{
			Clause: x.clause, Name: x.name, Title: x.title + ": it is carried out, and the stream goes on", Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicWord(t, s, 7)
				h := fetchAdd(b, 0, 1, 0)
				var r wire.Segment
				x.change(&r, &h)
				seg := atomicRequest(h)
				seg.Invalidate, seg.Reserved, seg.RDMAPReserved = r.Invalidate, r.Reserved, r.RDMAPReserved
				s.Post(alien(seg, "what is to be ignored is not 0"))
				awaitOriginal(t, s, h.RequestID)
				s.AwaitContents(b, 0, inMemory(t, 8))
				tryAtomic(t, s, fetchAdd(b, 0, 1, 0), 8)
			},
		})
	}
	for _, rv := range []uint8{2, 3} {
		out = append(out, conformance.Case{
			Clause: "rfc7306-8.2-3", Name: fmt.Sprintf("atomic-request-of-version-%d", rv), Also: []string{"rfc7306-4.1-1"},
			Title: fmt.Sprintf("An Atomic Request of RDMA version %d is refused, Terminate 0x0205, and changes nothing", rv),
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := openAtomics(t, conformance.Setup{})
				b := atomicBuffer(s, 64)
				r := atomicRequest(fetchAdd(b, 0, 1, 0))
				r.RV = rv
				s.Post(alien(r, fmt.Sprintf("RV is %d", rv)))
				s.AwaitTerminate(wire.RDMAPVersion)
				s.AwaitUntouched(b)
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc7306-8.2-1", Name: "atomic-request-of-ddp-version-2",
		Title: "An Atomic Request of DDP version 2 is refused, Terminate 0x1206, and changes nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicBuffer(s, 64)
			r := atomicRequest(fetchAdd(b, 0, 1, 0))
			r.Version = 2
			s.Post(alien(r, "DV is 2"))
			s.AwaitTerminate(wire.DDPUntaggedVersion)
			s.AwaitUntouched(b)
		},
	}, conformance.Case{
		Clause: "rfc7306-8.2-1", Name: "atomic-request-with-the-wrong-msn",
		Title: "An Atomic Request with an MSN that is beyond the buffers of queue 1 is refused, and changes nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicBuffer(s, 64)
			r := atomicRequest(fetchAdd(b, 0, 1, 0))
			r.MSN = 0x80000000
			s.PostExact(alien(r, "its MSN is far ahead"), wire.Flaw{})
			s.AwaitTerminate(noBufferCodes...)
			s.AwaitUntouched(b)
		},
	}, conformance.Case{
		Clause: "rfc7306-8.2-1", Name: "atomic-request-with-an-old-msn", Also: []string{"rfc7306-5.2.1-4"},
		Title: "An Atomic Request with the MSN of the one before it is refused, and changes nothing",
		Needs: conformance.NeedService,
		Run: func(t *conformance.T) {
			s := openAtomics(t, conformance.Setup{})
			b := atomicBuffer(s, 64)
			tryAtomic(t, s, fetchAdd(b, 0, 0, 0), 0xA5A5A5A5A5A5A5A5)
			r := atomicRequest(fetchAdd(b, 0, 1, 0))
			r.MSN = 1
			s.PostExact(alien(r, "that MSN has been"), wire.Flaw{})
			s.AwaitTerminate(noBufferCodes...)
			s.AwaitUntouched(b)
		},
	})
}

// gotten describes what came.
func gotten(a wire.Arrival, err error) string {
	if err != nil {
		return err.Error()
	}
	return a.String()
}
