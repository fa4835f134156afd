package machine

import (
	"cmp"
	"slices"
)

// All returns the connections, in any state but CLOSED, in the order of their names.
func (m *Machine) All() []*Conn {
	all := make([]*Conn, 0, len(m.conns))
	for _, c := range m.conns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Conn) int { return a.name.compare(b.name) })
	return all
}

// compare orders names.
func (n Name) compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Version, o.Version), cmp.Compare(n.Local, o.Local), n.Path.Remote.Compare(o.Path.Remote),
		cmp.Compare(n.Remote, o.Remote), n.Path.Local.Compare(o.Path.Local))
}
