package cases

import (
	"fmt"
	"slices"

	"urnic/conformance"
	"urnic/conformance/service"
	"urnic/conformance/wire"
)

// protectionRights: each way to touch memory, with each set of rights. Atomics on
// memory that is not open to them are RFC 7306's.
func protectionRights() []conformance.Case {
	var out []conformance.Case
	for _, r := range []struct {
		name, what string
		access     []string
	}{
		{"nothing", "no use but local reads", []string{}},
		{"local-use", "local use only", []string{service.LocalWrite}},
		{"reads", "remote reads only", []string{service.RemoteRead}},
		{"writes", "remote writes only", []string{service.LocalWrite, service.RemoteWrite}},
		{"reads-and-writes", "remote reads and writes", remoteAccess},
		{"atomics", "atomics only", atomicRights},
	} {
		for _, a := range accesses {
			granted := slices.Contains(r.access, a.right)
			if a.right == service.RemoteAtomic && !granted {
				continue
			}
			c := conformance.Case{
				Clause: "rfc5040-8.1.1-6", Name: fmt.Sprintf("%s-of-memory-open-for-%s", a.name, r.name), Also: []string{"rfc5041-8.3.1-6"},
				Title: fmt.Sprintf("On memory that is open for %s, %s works", r.what, a.title),
				Needs: conformance.NeedService,
			}
			if !granted {
				c.Title = fmt.Sprintf("On memory that is open for %s, %s is refused and touches nothing", r.what, a.title)
			}
			if a.right == service.RemoteRead && r.name == "writes" {
				c.Also = append(c.Also, "rfc5042-6.3.5-1")
			}
			c.Run = func(t *conformance.T) {
				if r.name == "atomics" {
					needAtomics(t)
				}
				s := a.open(t)
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: r.access})
				if granted {
					a.works(t, s, b, 0)
					return
				}
				a.refused(s, b, fmt.Sprintf("the memory is open for %s", r.what), a.rights)
			}
			out = append(out, c)
		}
	}
	return append(out,
		conformance.Case{
			Clause: "rfc5040-5.2.1-12", Name: "no-octets-of-memory-open-for-writes", Also: []string{"rfc5042-6.3.5-1"},
			Title: "A Read of no octets of memory that is open for writes only is answered: it shows nothing",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.LocalWrite, service.RemoteWrite}})
				s.Read(b.STag, b.TO, 0)
				s.AwaitAlive()
			},
		},
		conformance.Case{
			Clause: "rfc5041-5.2-11", Name: "no-octets-to-memory-open-for-reads",
			Title: "A Write of no octets to memory that is open for reads only passes: it changes nothing",
			Needs: conformance.NeedService,
			Run: func(t *conformance.T) {
				s := t.Open(conformance.Setup{})
				b := s.BufferOf(conformance.BufferSpec{Length: 64, Access: []string{service.RemoteRead}})
				s.Post(wire.Tagged(wire.Write, b.STag, b.TO, nil))
				s.AwaitAlive()
				s.AwaitUntouched(b)
			},
		},
	)
}
