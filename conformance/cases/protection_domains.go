package cases

import (
	"fmt"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// protectionDomains: STags of other protection domains and of other streams.
func protectionDomains() []conformance.Case {
	var out []conformance.Case
	add := func(a access, clause, name, title string, also []string, run func(t *conformance.T, s *conformance.Stream)) {
		out = append(out, conformance.Case{
			Clause: clause, Name: a.name + "-" + name, Title: title, Also: also, Needs: conformance.NeedService,
			Run: func(t *conformance.T) { run(t, a.open(t)) },
		})
	}
	const foreign = "an STag of another protection domain"
	for _, a := range accesses[:2] {
		add(a, "rfc5040-8.1.1-2", "into-another-domain", fmt.Sprintf("With the STag of another protection domain, %s is refused and touches nothing", a.title),
			[]string{"rfc5041-8.3.1-2", "rfc5042-6.1.1-2", "rfc5042-6.1.1-1", "rfc5040-8.1-1", "rfc5040-8.1.1-1", "rfc5041-8.3.1-1"},
			func(t *conformance.T, s *conformance.Stream) {
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: remoteAccess, PD: anotherDomain(t)})
				a.refused(s, b, foreign, a.foreign)
			})
		add(a, "rfc5040-8.1.1-3", "through-anothers-stag", fmt.Sprintf("With an STag that is limited to another stream, %s is refused and touches nothing", a.title),
			[]string{"rfc5041-8.3.1-3", "rfc5042-6.1.1-3", "rfc5042-6.1.1-1", "rfc5041-8.3-3"},
			func(t *conformance.T, s *conformance.Stream) {
				needStreamMR(t)
				other := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: remoteAccess, OtherQP: other.QP})
				a.refused(s, b, "an STag of another stream", a.foreign)
			})
		add(a, "rfc5041-8.3-3", "through-the-streams-own-stag", fmt.Sprintf("With an STag that is limited to the stream, %s works", a.title),
			[]string{"rfc5041-8.2-3"},
			func(t *conformance.T, s *conformance.Stream) {
				needStreamMR(t)
				a.works(t, s, s.BufferOf(conformance.BufferSpec{Length: 64, Access: remoteAccess, OtherQP: s.QP}), 0)
			})
		add(a, "rfc5041-8.2-3", "through-a-shared-stag", fmt.Sprintf("With an STag that is not limited to a stream, %s works on each stream of the protection domain", a.title), nil,
			func(t *conformance.T, s *conformance.Stream) {
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: remoteAccess})
				a.works(t, s, b, 0)
				a.works(t, t.Open(conformance.Setup{}), b, 8)
			})
	}
	for _, a := range accesses {
		out = append(out, conformance.Case{
			Clause: "rfc5041-8.2-3", Name: a.name + "-within-a-domain", Needs: conformance.NeedService,
			Title: fmt.Sprintf("A stream of a protection domain of its own reaches the memory of that one, with %s, and not that of the ordinary one", a.title),
			Also:  []string{"rfc5042-6.1.1-2"},
			Run: func(t *conformance.T) {
				a.need(t)
				pd := anotherDomain(t)
				s := t.Open(conformance.Setup{QP: service.QPAttr{PD: pd}})
				a.works(t, s, s.BufferOf(conformance.BufferSpec{Length: 64, Access: a.granted(), PD: pd}), 0)
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: a.granted()})
				a.refused(s, b, foreign, a.foreign)
			},
		})
	}
	for _, x := range []struct {
		clause, name, what string
		spec               func(t *conformance.T) conformance.BufferSpec
	}{
		{"rfc5041-8.2-1", "of-another-domain", "of another protection domain", func(t *conformance.T) conformance.BufferSpec {
			return conformance.BufferSpec{PD: anotherDomain(t)}
		}},
		{"rfc5041-8.2-2", "of-another-stream", "of another stream", func(t *conformance.T) conformance.BufferSpec {
			needStreamMR(t)
			return conformance.BufferSpec{OtherQP: t.Open(conformance.Setup{}).QP}
		}},
	} {
		out = append(out, conformance.Case{
			Clause: x.clause, Name: "told-of-a-write-with-an-stag-" + x.name, Also: []string{"rfc5041-8.3-4"}, Needs: conformance.NeedService,
			Title: fmt.Sprintf("A Write with an STag %s is not placed, and the target's program is told", x.what),
			Run: func(t *conformance.T) {
				spec := x.spec(t)
				spec.Length, spec.Access = 64, remoteAccess
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(spec)
				s.Post(alien(wire.Tagged(wire.Write, b.STag, b.TO, conformance.Pattern(8)), "an STag "+x.what))
				s.AwaitTeardown()
				awaitErrorEvent(t, s)
				s.AwaitUntouched(b)
			},
		})
	}
	return append(out, conformance.Case{
		Clause: "rfc5041-8.3-4", Name: "told-of-a-write-with-an-stag-of-nobody", Needs: conformance.NeedService,
		Title: "A Write with an STag that nobody gave is told to the target's program",
		Run: func(t *conformance.T) {
			s := t.Open(conformance.Setup{})
			s.Post(alien(wire.Tagged(wire.Write, 0xDEADBE00, 0, conformance.Pattern(8)), "an STag that nobody gave"))
			s.AwaitTeardown()
			awaitErrorEvent(t, s)
		},
	})
}

// protectionShared: invalidation by a peer of what others use.
var protectionShared = []conformance.Case{
	{
		Clause: "rfc5040-8.1.1-8", Name: "invalidate-a-shared-stag", Needs: conformance.NeedService,
		Title: "A Send with Invalidate for an STag that two streams can use does not invalidate it: the other stream reads on",
		Run: func(t *conformance.T) {
			s, other := openShared(t)
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.RemoteRead, service.RemoteInvalidate}})
			invalidate(s, b.STag, "other streams use the STag, too")
			s.AwaitTeardown()
			other.Read(b.STag, b.TO, 64)
		},
	},
	{
		Clause: "rfc5042-6.1.1-3", Name: "invalidate-anothers-stag", Needs: conformance.NeedService,
		Title: "A Send with Invalidate for an STag that is limited to another stream does not invalidate it: that stream reads on",
		Run: func(t *conformance.T) {
			needStreamMR(t)
			s, other := openShared(t)
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.RemoteRead, service.RemoteInvalidate}, OtherQP: other.QP})
			invalidate(s, b.STag, "the STag is another stream's")
			s.AwaitTeardown()
			other.Read(b.STag, b.TO, 64)
		},
	},
	{
		Clause: "rfc5042-6.1.1-2", Name: "invalidate-in-another-domain", Needs: conformance.NeedService,
		Title: "A Send with Invalidate for an STag of another protection domain does not invalidate it: the stream of that domain reads on",
		Run: func(t *conformance.T) {
			needInvalidate(t)
			pd := anotherDomain(t)
			other := t.Open(conformance.Setup{QP: service.QPAttr{PD: pd}})
			s := t.Open(conformance.Setup{})
			b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.RemoteRead, service.RemoteInvalidate}, PD: pd})
			invalidate(s, b.STag, "an STag of another protection domain")
			s.AwaitTeardown()
			other.Read(b.STag, b.TO, 64)
		},
	},
}

// openShared opens two streams of one protection domain.
func openShared(t *conformance.T) (s, other *conformance.Stream) {
	needInvalidate(t)
	return t.Open(conformance.Setup{}), t.Open(conformance.Setup{})
}

func needInvalidate(t *conformance.T) {
	if !t.Service().Hello().Features.Invalidate {
		t.Skip("the target has no Send with Invalidate")
	}
}

// invalidate sends a Send with Invalidate.
func invalidate(s *conformance.Stream, stag uint32, wrong string) {
	m := wire.Untagged(wire.SendInvalidate, conformance.Pattern(4))
	m.Invalidate = stag
	s.Post(alien(m, wrong))
}
