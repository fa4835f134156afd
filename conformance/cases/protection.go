package cases

import (
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// protection is the cases on who may touch what memory (RFC 5042, RFC 5040 §8.1,
// RFC 5041 §8).
func protection() []conformance.Case {
	return slices.Concat(
		protectionDomains(), protectionShared, protectionRights(), protectionTags(), protectionBounds(),
		protectionRevoked(), protectionInFlight, protectionWindows(), protectionRebound(), protectionBinding(), protectionWindowLimits(), protectionWindowOwners, protectionLongRead,
		protectionSinks(), stagValues, resourceLimits, streamsApart(), resourcesBack,
	)
}

// An access is a way in which a peer touches memory.
type access struct {
	name, title string
	right       string
	// segments touch n bytes at TO to.
	segments func(stag uint32, to uint64, n int) []wire.Segment
	// works makes sure that 8 bytes at off can be touched so.
	works func(t *conformance.T, s *conformance.Stream, b *conformance.Buffer, off int)

	// The codes for an STag that is nobody's, one that is somebody else's, one that
	// does not grant it, and for bytes outside. A Write's errors are DDP's (RFC 5041
	// §7.2), which has no code for rights; other codes than the first of each are
	// those that an endpoint may come to in other ways.
	invalid, foreign, rights, bounds, wrap []wire.Code
}

var writeAccess = access{
	name: "write", title: "a Write", right: service.RemoteWrite,
	segments: func(stag uint32, to uint64, n int) []wire.Segment {
		return []wire.Segment{wire.Tagged(wire.Write, stag, to, conformance.Pattern(n))}
	},
	works: func(t *conformance.T, s *conformance.Stream, b *conformance.Buffer, off int) {
		s.Post(wire.Tagged(wire.Write, b.STag, b.TO+uint64(off), conformance.Pattern(8)))
		s.AwaitAlive()
		if b.MR != 0 {
			s.AwaitContents(b, off, conformance.Pattern(8))
		}
	},
	invalid: []wire.Code{wire.DDPInvalidSTag},
	foreign: []wire.Code{wire.DDPNotAssociated, wire.DDPInvalidSTag, wire.RDMAPNotAssociated},
	rights:  []wire.Code{wire.DDPNotAssociated, wire.DDPInvalidSTag, wire.RDMAPRights},
	bounds:  []wire.Code{wire.DDPBounds},
	wrap:    []wire.Code{wire.DDPWrap, wire.DDPBounds},
}

var readAccess = access{
	name: "read", title: "a Read", right: service.RemoteRead,
	segments: func(stag uint32, to uint64, n int) []wire.Segment {
		return []wire.Segment{conformance.ReadRequest(conformance.SinkSTag, conformance.SinkTO, uint32(n), stag, to)}
	},
	works: func(_ *conformance.T, s *conformance.Stream, b *conformance.Buffer, off int) {
		s.Read(b.STag, b.TO+uint64(off), 8)
	},
	invalid: []wire.Code{wire.RDMAPInvalidSTag},
	foreign: []wire.Code{wire.RDMAPNotAssociated, wire.RDMAPInvalidSTag},
	rights:  []wire.Code{wire.RDMAPRights, wire.RDMAPInvalidSTag},
	bounds:  []wire.Code{wire.RDMAPBounds},
	wrap:    []wire.Code{wire.RDMAPWrap, wire.RDMAPBounds},
}

var atomicAccess = access{
	name: "atomic", title: "a FetchAdd", right: service.RemoteAtomic,
	segments: func(stag uint32, to uint64, _ int) []wire.Segment {
		return []wire.Segment{atomicRequest(fetchAdd(&conformance.Buffer{STag: stag, TO: to}, 0, 1, 0))}
	},
	works: func(t *conformance.T, s *conformance.Stream, b *conformance.Buffer, off int) {
		s.Post(atomicRequest(fetchAdd(b, off, 1, 0)))
		awaitOriginal(t, s, requestID)
	},
	invalid: readAccess.invalid, foreign: readAccess.foreign, rights: readAccess.rights, bounds: readAccess.bounds, wrap: readAccess.wrap,
}

var accesses = []access{writeAccess, readAccess, atomicAccess}

// open opens a stream for the access; it skips the case if the target can't do it.
func (a access) open(t *conformance.T) *conformance.Stream {
	a.need(t)
	return t.Open(conformance.Setup{})
}

func (a access) need(t *conformance.T) {
	if a.right == service.RemoteAtomic {
		needAtomics(t)
	}
}

// granted are the rights of memory that is open to the access.
func (a access) granted() []string {
	if a.right == service.RemoteRead {
		return []string{service.RemoteRead}
	}
	return []string{service.LocalWrite, a.right}
}

// refused tries the access to the first 8 bytes of a buffer, which must end the
// stream, with one of the codes, and change nothing.
func (a access) refused(s *conformance.Stream, b *conformance.Buffer, wrong string, codes []wire.Code) {
	a.refusedAt(s, b, b.STag, b.TO, 8, wrong, codes)
}

func (a access) refusedAt(s *conformance.Stream, b *conformance.Buffer, stag uint32, to uint64, n int, wrong string, codes []wire.Code) {
	for _, seg := range a.segments(stag, to, n) {
		s.Post(alien(seg, wrong))
	}
	s.AwaitTerminate(codes...)
	s.AwaitUntouched(b)
}

// ended tries the access, which must end the stream and change nothing. Which code
// the Terminate has, other cases judge.
func (a access) ended(s *conformance.Stream, b *conformance.Buffer, stag uint32, to uint64, n int, wrong string) {
	for _, seg := range a.segments(stag, to, n) {
		s.Post(alien(seg, wrong))
	}
	s.AwaitTeardown()
	s.AwaitUntouched(b)
}

// deregister has the target's program take memory back.
func deregister(t *conformance.T, b *conformance.Buffer) {
	t.Note("the target deregisters STag 0x%08x", b.STag)
	t.Try(t.Service().Deregister(t.Context(), b.MR), "deregistering the target's memory")
}

// remoteAccess are the rights to read and to write.
var remoteAccess = []string{service.RemoteRead, service.LocalWrite, service.RemoteWrite}
