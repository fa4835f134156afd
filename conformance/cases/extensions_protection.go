package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// atomicProtection: which memory an atomic may touch (RFC 5040 §8.1.1, which RFC
// 7306 §9 applies to atomics).
func atomicProtection() []conformance.Case {
	var out []conformance.Case
	add := func(clause, name, title string, also []string, run func(t *conformance.T, s *conformance.Stream)) {
		out = append(out, conformance.Case{
			Clause: clause, Name: name, Title: title, Also: also, Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				needAtomics(t)
				run(t, t.Open(conformance.Setup{}))
			},
		})
	}
	bounds := []wire.Code{wire.RDMAPBounds}
	refused := func(s *conformance.Stream, b *conformance.Buffer, h wire.AtomicHeader, wrong string, codes []wire.Code) {
		s.Post(alien(atomicRequest(h), wrong))
		s.AwaitTerminate(codes...)
		s.AwaitUntouched(b)
	}
	outside := []string{"rfc5041-8.3.1-4", "rfc5042-6.2.1-1"}
	for _, n := range []int{57, 60, 63} {
		add("rfc5040-8.1.1-4", fmt.Sprintf("atomic-%d-octets-beyond", 64-n),
			fmt.Sprintf("An atomic on a word of which the region has only %d octets is refused: Terminate 0x0101", n-56), outside,
			func(_ *conformance.T, s *conformance.Stream) {
				b := atomicBuffer(s, n)
				refused(s, b, fetchAdd(b, 56, 1, 0), "the word ends beyond the region", bounds)
			})
	}
	for _, k := range atomicKinds {
		add("rfc5040-8.1.1-4", k.name+"-behind-the-end", k.title+" on the word behind the region is refused: Terminate 0x0101", outside,
			func(_ *conformance.T, s *conformance.Stream) {
				b := atomicBuffer(s, 64)
				refused(s, b, k.on(b, 64), "the word stands behind the region", bounds)
			})
		add("rfc5040-8.1.1-4", k.name+"-before-the-beginning", k.title+" on the word before the region is refused: Terminate 0x0101", outside,
			func(_ *conformance.T, s *conformance.Stream) {
				b := atomicBuffer(s, 64)
				refused(s, b, k.on(b, -8), "the word stands before the region", bounds)
			})
	}
	add("rfc5040-8.1.1-4", "atomic-at-the-end-of-all-offsets", "An atomic whose word would wrap the 64 bits of the TO is refused: Terminate 0x0101 or 0x0104", outside,
		func(_ *conformance.T, s *conformance.Stream) {
			b := atomicBuffer(s, 64)
			h := fetchAdd(b, 0, 1, 0)
			h.TO = ^uint64(0) - 7
			refused(s, b, h, "TO 2^64-8", []wire.Code{wire.RDMAPBounds, wire.RDMAPWrap})
		})

	for _, r := range []struct {
		name, what string
		access     []string
	}{
		{"read", "remote reads only", []string{service.RemoteRead}},
		{"write", "remote writes only", []string{service.LocalWrite, service.RemoteWrite}},
		{"read-and-write", "remote reads and writes", []string{service.RemoteRead, service.LocalWrite, service.RemoteWrite}},
		{"local", "local use only", []string{service.LocalWrite}},
	} {
		for _, k := range atomicKinds {
			add("rfc5040-8.1.1-6", fmt.Sprintf("%s-of-memory-for-%s", k.name, r.name),
				fmt.Sprintf("%s on memory that is open for %s is refused: Terminate 0x0102", k.title, r.what),
				[]string{"rfc5041-8.3.1-6"},
				func(_ *conformance.T, s *conformance.Stream) {
					b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: r.access})
					refused(s, b, k.on(b, 0), "the region grants no atomics", []wire.Code{wire.RDMAPRights, wire.RDMAPInvalidSTag})
				})
		}
	}

	add("rfc5040-8.1.1-2", "atomic-in-another-domain", "An atomic through the STag of another protection domain is refused: Terminate 0x0103",
		[]string{"rfc5041-8.3.1-2", "rfc5042-6.1.1-2"},
		func(t *conformance.T, s *conformance.Stream) {
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: atomicRights, PD: anotherDomain(t)})
			refused(s, b, fetchAdd(b, 0, 1, 0), "an STag of another protection domain", []wire.Code{wire.RDMAPNotAssociated, wire.RDMAPInvalidSTag})
		})
	add("rfc5040-8.1.1-3", "atomic-through-anothers-stag", "An atomic through an STag that is limited to another stream is refused: Terminate 0x0103",
		[]string{"rfc5041-8.3.1-3", "rfc5042-6.1.1-3"},
		func(t *conformance.T, s *conformance.Stream) {
			needStreamMR(t)
			other := t.Open(conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: atomicRights, OtherQP: other.QP})
			refused(s, b, fetchAdd(b, 0, 1, 0), "an STag of another stream", []wire.Code{wire.RDMAPNotAssociated, wire.RDMAPInvalidSTag})
		})
	for _, x := range []struct {
		name, what string
		stag       func(b *conformance.Buffer) uint32
	}{
		{"stag-0", "STag 0", func(*conformance.Buffer) uint32 { return 0 }},
		{"stag-of-another-index", "an STag with another index", func(b *conformance.Buffer) uint32 { return b.STag ^ 0x00040000 }},
		{"stag-of-another-key", "an STag with another key", func(b *conformance.Buffer) uint32 { return b.STag ^ 0x01 }},
	} {
		add("rfc5040-8.1.1-4", "atomic-through-"+x.name, fmt.Sprintf("An atomic through %s, which is nobody's, is refused: Terminate 0x0100", x.what), outside,
			func(_ *conformance.T, s *conformance.Stream) {
				b := atomicBuffer(s, 64)
				h := fetchAdd(b, 0, 1, 0)
				h.STag = x.stag(b)
				refused(s, b, h, x.what, []wire.Code{wire.RDMAPInvalidSTag})
			})
	}
	add("rfc5040-8.1.1-7", "atomic-after-deregistration", "An atomic through an STag that was deregistered is refused, Terminate 0x0100, and changes nothing",
		[]string{"rfc5041-8.3.1-7", "rfc5042-6.2.2-1"},
		func(t *conformance.T, s *conformance.Stream) {
			b := atomicBuffer(s, 64)
			tryAtomic(t, s, fetchAdd(b, 56, 0, 0), 0xA5A5A5A5A5A5A5A5)
			t.Try(t.Service().Deregister(t.Context(), b.MR), "deregistering the memory")
			refused(s, b, fetchAdd(b, 0, 1, 0), "an STag that was deregistered", []wire.Code{wire.RDMAPInvalidSTag})
		})
	return out
}

// anotherDomain has the target make a protection domain that no stream is in.
func anotherDomain(t *conformance.T) int {
	d, err := t.Service().AllocPD(t.Context())
	t.Try(err, "making a protection domain")
	return d.PD
}

// needStreamMR skips a case unless a region can belong to one stream.
func needStreamMR(t *conformance.T) {
	if !t.Service().Hello().Features.StreamMR {
		t.Skip("the target can't limit an STag to one stream")
	}
}
