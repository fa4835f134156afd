package rpcbind

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// ErrFull says that a table has as many mappings as it may have.
var ErrFull = errors.New("rpcbind: the table is full")

// A Table is an RPCBIND service for a host that has none. Its methods may be called from
// several goroutines.
type Table struct {
	most int

	mu   sync.RWMutex
	rows map[rowKey]row
}

type rowKey struct {
	program, version uint32
	netid            string
}

type row struct {
	addr  netip.AddrPort
	owner string
	own   bool // was added by this process, which alone may remove it
}

// NewTable returns an empty table of at most so many mappings; 0 stands for 1024.
func NewTable(most int) *Table {
	return &Table{most: cmp.Or(max(0, most), 1024), rows: make(map[rowKey]row)}
}

// Add registers a program of this process, which nobody can remove by a call. It returns
// ErrRefused if there is one for the same program, version and transport, ErrFull, or
// another error if the mapping is none.
func (t *Table) Add(m Mapping) error { return t.add(m, true) }

func (t *Table) add(m Mapping, own bool) error {
	six, known := families[m.Netid]
	if !known {
		return fmt.Errorf("rpcbind: there is no transport %.32q: there are %v", m.Netid, slices.Sorted(maps.Keys(families)))
	}
	addr, err := ParseAddr(m.Addr)
	if err != nil {
		return err
	}
	if addr.Addr().Is6() != six || addr.Port() == 0 {
		return fmt.Errorf("rpcbind: %s is no address for %s", m.Addr, m.Netid)
	}
	if len(m.Owner) > maxOwner {
		return fmt.Errorf("rpcbind: an owner's name of %d octets: there may be %d", len(m.Owner), maxOwner)
	}
	k := rowKey{m.Program, m.Version, m.Netid}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, there := t.rows[k]; there {
		return ErrRefused
	}
	if len(t.rows) >= t.most {
		return ErrFull
	}
	t.rows[k] = row{addr, m.Owner, own}
	return nil
}

// Remove removes the mapping of a program, or those over all transports if it has no
// Netid. It returns ErrRefused if there was none.
func (t *Table) Remove(m Mapping) error {
	return t.remove(m.Program, m.Version, func(netid string, _ row) bool { return m.Netid == "" || m.Netid == netid })
}

// remove removes those rows of a version of a program for which that may be.
func (t *Table) remove(program, version uint32, may func(netid string, r row) bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.rows)
	maps.DeleteFunc(t.rows, func(k rowKey, r row) bool {
		return k.program == program && k.version == version && may(k.netid, r)
	})
	if len(t.rows) == before {
		return ErrRefused
	}
	return nil
}

// Mappings returns what is registered, sorted.
func (t *Table) Mappings() []Mapping {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]Mapping, 0, len(t.rows))
	for k, r := range t.rows {
		list = append(list, Mapping{k.program, k.version, k.netid, FormatAddr(r.addr), r.owner})
	}
	slices.SortFunc(list, func(a, b Mapping) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(b.Version, a.Version), cmp.Compare(a.Netid, b.Netid))
	})
	return list
}

// find returns where a program is over a transport: in that version or, if there is none
// and another one will do, in the highest one.
func (t *Table) find(program, version uint32, netid string, other bool) (netip.AddrPort, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if r, ok := t.rows[rowKey{program, version, netid}]; ok || !other {
		return r.addr, ok
	}
	var highest uint32
	var addr netip.AddrPort
	for k, r := range t.rows {
		if k.program == program && k.netid == netid && (!addr.IsValid() || k.version > highest) {
			highest, addr = k.version, r.addr
		}
	}
	return addr, addr.IsValid()
}
