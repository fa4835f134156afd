package vl

import (
	"slices"

	"urnic/ulp/rx/afs"
)

const (
	maxServers  = 254
	noAddr      = afs.Addr(0xffffffff)
	maxRegister = 15 // addresses of one server
)

// Register gives the server with this UUID these addresses, which no other server has then.
func (db *DB) Register(r Registration) error {
	if r.UUID.IsZero() || len(r.Addrs) == 0 || len(r.Addrs) > maxRegister {
		return afs.ErrInvalid
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	at := slices.IndexFunc(db.servers, func(s Server) bool { return s.UUID == r.UUID })
	if at < 0 { // known by an address only, until now
		at = slices.IndexFunc(db.servers, func(s Server) bool {
			return s.UUID.IsZero() && len(s.Addrs) > 0 && slices.Contains(r.Addrs, s.Addrs[0])
		})
	}
	if at < 0 {
		if len(db.servers) == maxServers {
			return ErrSitesFull
		}
		at = len(db.servers)
		db.servers = append(db.servers, Server{})
	}
	for i := range db.servers {
		s := &db.servers[i]
		s.Addrs = slices.DeleteFunc(slices.Clone(s.Addrs), func(a afs.Addr) bool { return i != at && slices.Contains(r.Addrs, a) })
	}
	s := &db.servers[at]
	*s = Server{UUID: r.UUID, Unique: s.Unique + 1, Addrs: slices.Clone(r.Addrs)}
	for _, e := range db.entries {
		if e != nil {
			e.Entry = db.stored(e.Entry) // sites that had an address only
		}
	}
	return nil
}

// ChangeAddr replaces an address of a server. A new address of 255.255.255.255 removes the old
// one.
func (db *DB) ChangeAddr(c AddrChange) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if c.New != noAddr && db.serverAt(c.New) >= 0 {
		return ErrMultipleAddress
	}
	at := db.serverAt(c.Old)
	if at < 0 {
		return ErrNoEntry
	}
	s := &db.servers[at]
	s.Unique++
	s.Addrs = slices.Clone(s.Addrs)
	i := slices.Index(s.Addrs, c.Old)
	if c.New != noAddr {
		s.Addrs[i] = c.New
		return nil
	}
	s.Addrs = slices.Delete(s.Addrs, i, i+1)
	return nil
}

// serverAt returns the index of the server with an address, or -1.
func (db *DB) serverAt(a afs.Addr) int {
	return slices.IndexFunc(db.servers, func(s Server) bool { return slices.Contains(s.Addrs, a) })
}

// Servers returns all servers that have addresses.
func (db *DB) Servers() []Server {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(db.servers), func(s Server) bool { return len(s.Addrs) == 0 })
}

// Server returns the server with this key.
func (db *DB) Server(k ServerKey) (Server, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	var at int
	switch k.By {
	case ByAddr:
		at = db.serverAt(k.Addr)
	case ByIndex:
		if k.Index < 1 || k.Index > maxServers {
			return Server{}, ErrBadIndex
		}
		at = int(k.Index) - 1
	case ByUUID:
		at = slices.IndexFunc(db.servers, func(s Server) bool { return s.UUID == k.UUID && !k.UUID.IsZero() })
	default:
		return Server{}, ErrBadMask
	}
	if at < 0 || at >= len(db.servers) || len(db.servers[at].Addrs) == 0 {
		return Server{}, ErrNoEntry
	}
	return db.servers[at], nil
}

// stored returns an entry with addresses of servers in place of what its client knows: sites of
// unknown servers make these known.
func (db *DB) stored(e Entry) Entry {
	e.Sites = slices.Clone(e.Sites)
	for i := range e.Sites {
		s := &e.Sites[i]
		at := db.serverAt(s.Server)
		if at < 0 && s.UUID.IsZero() && len(db.servers) < maxServers {
			at = len(db.servers)
			db.servers = append(db.servers, Server{Addrs: []afs.Addr{s.Server}})
		}
		if at >= 0 && !db.servers[at].UUID.IsZero() {
			s.UUID = db.servers[at].UUID
		}
		s.Flags &^= SiteUUID
	}
	return e
}

// resolved returns an entry with the addresses that its servers have by now.
func (db *DB) resolved(e Entry) Entry {
	e.Sites = slices.Clone(e.Sites)
	for i := range e.Sites {
		s := &e.Sites[i]
		at := db.serverAt(s.Server)
		if !s.UUID.IsZero() {
			at = slices.IndexFunc(db.servers, func(v Server) bool { return v.UUID == s.UUID })
		}
		if at < 0 || len(db.servers[at].Addrs) == 0 {
			continue
		}
		v := &db.servers[at]
		s.UUID, s.Unique = v.UUID, v.Unique
		if !slices.Contains(v.Addrs, s.Server) {
			s.Server = v.Addrs[0]
		}
	}
	return e
}

// sameServer reports whether the server of a site has an address.
func (db *DB) sameServer(s *Site, a afs.Addr) bool {
	if s.Server == a {
		return true
	}
	at := db.serverAt(a)
	return at >= 0 && slices.Contains(db.servers[at].Addrs, s.Server)
}
