package vl

import (
	"context"
	"encoding/binary"
	"regexp"
	"sync"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Config says how a database is served.
type Config struct {
	// Admin says who may change the database. Nobody may if it is nil.
	Admin afs.Admin

	// PartLen is how many entries one call of ListAttributesN2 returns at most; 500 if it is 0,
	// as with OpenAFS.
	PartLen int
}

type server struct {
	*DB
	Config
	mu    sync.Mutex
	stats Stats
}

const (
	firstOpcode     = 501
	databaseVersion = 4
	databaseHeader  = 132120 // bytes of the header in front of a database of OpenAFS
)

// NewMux serves a database.
func NewMux(db *DB, c Config) *rpc.Mux {
	if c.PartLen <= 0 {
		c.PartLen = 500
	}
	s := &server{DB: db, Config: c}
	s.stats = Stats{Start: afs.TimeOf(db.now()), Version: databaseVersion, HeaderLen: databaseHeader}
	m := rpc.NewMux("vl")
	s.handleReads(m)
	opCapabilities.Handle(m, func(context.Context, *rpc.Void) (afs.Capabilities, error) { return afs.Capabilities{}, nil })
	handle(m, s, opNewID, admin(s, func(a *rpc.Uint32) (rpc.Uint32, error) {
		id, err := s.NewID(uint32(*a))
		return rpc.Uint32(id), err
	}))
	handle(m, s, opCreate, admin(s, func(e *Entry) (rpc.Void, error) { return rpc.Void{}, s.Create(*e) }))
	handle(m, s, opCreateOld, admin(s, func(e *OldEntry) (rpc.Void, error) { return rpc.Void{}, s.Create(e.Entry) }))
	handle(m, s, opReplace, admin(s, func(a *ReplaceArgs) (rpc.Void, error) {
		return rpc.Void{}, s.Replace(a.ID, a.Type, a.Entry, a.Unlock)
	}))
	handle(m, s, opReplaceOld, admin(s, func(a *OldReplaceArgs) (rpc.Void, error) {
		return rpc.Void{}, s.Replace(a.ID, a.Type, a.Entry.Entry, a.Unlock)
	}))
	handle(m, s, opDelete, admin(s, func(a *Volume) (rpc.Void, error) { return rpc.Void{}, s.Delete(a.ID, a.Type) }))
	handle(m, s, opLock, admin(s, func(a *LockArgs) (rpc.Void, error) { return rpc.Void{}, s.Lock(a.ID, a.Type, uint32(a.What)) }))
	handle(m, s, opUnlock, admin(s, func(a *LockArgs) (rpc.Void, error) { return rpc.Void{}, s.Unlock(a.ID, a.Type, a.What) }))
	handle(m, s, opRegister, admin(s, func(a *Registration) (rpc.Void, error) { return rpc.Void{}, s.Register(*a) }))
	handle(m, s, opChangeAddr, admin(s, func(a *AddrChange) (rpc.Void, error) { return rpc.Void{}, s.ChangeAddr(*a) }))
	return m
}

// handleReads adds the operations that change nothing.
func (s *server) handleReads(m *rpc.Mux) {
	handle(m, s, opProbe, func(context.Context, *rpc.Void) (rpc.Void, error) { return rpc.Void{}, nil })
	handle(m, s, opByID, func(_ context.Context, a *Volume) (Entry, error) { return s.ByID(a.ID, a.Type) })
	handle(m, s, opByName, func(_ context.Context, a *Name) (Entry, error) { return s.ByName(string(*a)) })
	handle(m, s, opByIDU, func(_ context.Context, a *Volume) (UEntry, error) { return withUUIDs(s.ByID(a.ID, a.Type)) })
	handle(m, s, opByNameU, func(_ context.Context, a *Name) (UEntry, error) { return withUUIDs(s.ByName(string(*a))) })
	handle(m, s, opByIDOld, func(_ context.Context, a *Volume) (OldEntry, error) { return old(s.ByID(a.ID, a.Type)) })
	handle(m, s, opByNameOld, func(_ context.Context, a *Name) (OldEntry, error) { return old(s.ByName(string(*a))) })
	handle(m, s, opListEntry, func(_ context.Context, a *rpc.Int32) (NextEntry, error) {
		e, next, left := s.Next(int32(*a))
		return NextEntry{left, next, e}, nil
	})
	handle(m, s, opListEntryOld, func(_ context.Context, a *rpc.Int32) (OldNextEntry, error) {
		e, next, left := s.Next(int32(*a))
		o, err := old(e, nil)
		return OldNextEntry{left, next, o}, err
	})
	handle(m, s, opListOld, func(_ context.Context, a *Attributes) (OldListedEntries, error) {
		l, err := s.listAll(a)
		o := OldListedEntries{Count: l.Count}
		for _, e := range l.Entries {
			if len(e.Sites) <= maxOld {
				o.Entries = append(o.Entries, OldEntry{e})
			}
		}
		return o, err
	})
	handle(m, s, opListN, func(_ context.Context, a *Attributes) (ListedEntries, error) { return s.listAll(a) })
	handle(m, s, opListAttributes, s.list)
	handle(m, s, opAddrs, func(context.Context, *AddrsArgs) (Addrs, error) { return s.addrs(), nil })
	handle(m, s, opAddrsU, func(_ context.Context, a *ServerKey) (Server, error) { return s.Server(*a) })
	handle(m, s, opStats, func(context.Context, *rpc.Void) (Stats, error) { return s.current(), nil })
}

// handle adds an operation, whose calls and failures are counted.
func handle[A, R any](m *rpc.Mux, s *server, op *rpc.Op[A, R], h func(context.Context, *A) (R, error)) {
	op.Handle(m, func(ctx context.Context, a *A) (R, error) {
		r, err := h(ctx, a)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stats.Requests[op.Opcode-firstOpcode]++
		if err != nil {
			s.stats.Aborts[op.Opcode-firstOpcode]++
		}
		return r, err
	})
}

// admin is the handler of a change, which administrators make only.
func admin[A, R any](s *server, change func(*A) (R, error)) func(context.Context, *A) (R, error) {
	return func(ctx context.Context, a *A) (R, error) {
		if !s.Admin.Allows(ctx) {
			var none R
			return none, ErrPermission
		}
		return change(a)
	}
}

// withUUIDs is an entry whose sites are distinguished by UUIDs, or by addresses in their place.
func withUUIDs(e Entry, err error) (UEntry, error) {
	for i := range e.Sites {
		s := &e.Sites[i]
		if s.UUID.IsZero() {
			binary.BigEndian.PutUint32(s.UUID[:4], uint32(s.Server))
		} else {
			s.Flags |= SiteUUID
		}
	}
	return UEntry{e}, err
}

// old is an entry for the first operations.
func old(e Entry, err error) (OldEntry, error) {
	if len(e.Sites) > maxOld {
		return OldEntry{}, ErrBadServer
	}
	return OldEntry{e}, err
}

func (s *server) list(_ context.Context, a *ListArgs) (PartOfEntries, error) {
	var name *regexp.Regexp
	if a.Name != "" {
		var err error
		if name, err = regexp.Compile("^(?:" + a.Name + ")$"); err != nil {
			return PartOfEntries{}, ErrBadName
		}
	}
	part, next := s.List(a.Attributes, name, a.Start, s.PartLen)
	return PartOfEntries{ListedEntries{int32(len(part)), part}, next}, nil
}

// listAll lists without parts.
func (s *server) listAll(a *Attributes) (ListedEntries, error) {
	all, next := s.List(*a, nil, 0, maxEntries)
	if next >= 0 {
		return ListedEntries{}, ErrSizeExceeded
	}
	return ListedEntries{int32(len(all)), all}, nil
}

// addrs lists an address of each server.
func (s *server) addrs() Addrs {
	var a Addrs
	for _, v := range s.Servers() {
		a.Addrs = append(a.Addrs, v.Addrs[0])
	}
	a.Count = int32(len(a.Addrs))
	return a
}

func (s *server) current() Stats {
	n, id := s.counts()
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.MaxVolumeID, stats.Entries = id, n
	return stats
}
