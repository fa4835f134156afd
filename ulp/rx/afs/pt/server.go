package pt

import (
	"context"
	"strings"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Config says how a database is served.
type Config struct {
	// Admin says who may change the database and list all of it. Nobody may if it is nil.
	Admin afs.Admin

	// Cell is the realm or cell whose callers are the database's own users. If it is empty,
	// all are.
	Cell string

	// PartLen is how many entries one call of ListEntries returns at most; 500 if it is 0,
	// as with OpenAFS.
	PartLen int
}

type server struct {
	*DB
	Config
}

// NewMux serves a database.
func NewMux(db *DB, c Config) *rpc.Mux {
	if c.PartLen <= 0 {
		c.PartLen = 500
	}
	s := &server{db, c}
	m := rpc.NewMux("pt")
	opCreate.Handle(m, s.create)
	opNew.Handle(m, s.new)
	opDelete.Handle(m, admin(s, func(a *rpc.Int32) error { return s.Delete(int32(*a)) }))
	opAddToGroup.Handle(m, admin(s, func(a *Pair) error { return s.AddToGroup(a.ID, a.Group) }))
	opRemoveFromGroup.Handle(m, admin(s, func(a *Pair) error { return s.RemoveFromGroup(a.ID, a.Group) }))
	opSetMax.Handle(m, admin(s, func(a *SetMaxArgs) error { return s.SetMax(a.ID, a.Group) }))
	opChange.Handle(m, admin(s, func(a *ChangeArgs) error { return s.Change(a.ID, a.Name, a.Owner, a.NewID) }))
	opSetFields.Handle(m, admin(s, func(a *FieldsArgs) error { return s.SetFields(*a) }))
	opNamesToIDs.Handle(m, s.namesToIDs)
	opIDsToNames.Handle(m, func(_ context.Context, a *IDs) (Names, error) { return Names{s.Names(a.IDs)}, nil })
	opListMax.Handle(m, func(context.Context, *rpc.Void) (Maxima, error) { return s.Maxima(), nil })
	opListEntry.Handle(m, func(_ context.Context, a *rpc.Int32) (Entry, error) { return s.Entry(int32(*a)) })
	opListEntries.Handle(m, s.listEntries)
	opListElements.Handle(m, func(_ context.Context, a *rpc.Int32) (List, error) { return list(s.Elements(int32(*a))) })
	opListOwned.Handle(m, func(_ context.Context, a *OwnedArgs) (List, error) { return list(s.Owned(a.ID)) })
	opListSuperGroups.Handle(m, func(_ context.Context, a *rpc.Int32) (List, error) {
		_, err := s.Entry(int32(*a)) // groups do not belong to groups here
		return List{}, err
	})
	opIsMember.Handle(m, s.isMember)
	opGetCPS.Handle(m, func(_ context.Context, a *rpc.Int32) (List, error) { return list(s.CPS(int32(*a))) })
	opGetCPS2.Handle(m, func(_ context.Context, a *HostArgs) (List, error) { return list(s.CPS(a.ID)) })
	opGetHostCPS.Handle(m, func(_ context.Context, a *rpc.Uint32) (List, error) { return s.hostCPS(afs.Addr(*a)) })
	return m
}

// admin is the handler of a change, which administrators make only.
func admin[A any](s *server, change func(*A) error) func(context.Context, *A) (rpc.Void, error) {
	return func(ctx context.Context, a *A) (rpc.Void, error) {
		if !s.Admin.Allows(ctx) {
			return rpc.Void{}, ErrPermission
		}
		return rpc.Void{}, change(a)
	}
}

func list(ids []int32, err error) (List, error) { return List{IDs: ids}, err }

// caller is the ID of whoever calls: the administrators for the cell's own servers, as those sign
// their tickets with the service's key under the name "afs".
func (s *server) caller(ctx context.Context) int32 {
	who := rpc.Caller(ctx)
	if !who.Verified || s.Cell != "" && who.Realm != "" && !strings.EqualFold(who.Realm, s.Cell) {
		return Anonymous
	}
	if who.Name == "afs" {
		return Administrators
	}
	if id, ok := s.Find(who.Name); ok {
		return id
	}
	return Anonymous
}

func (s *server) create(ctx context.Context, a *CreateArgs) (rpc.Void, error) {
	if !s.Admin.Allows(ctx) {
		return rpc.Void{}, ErrPermission
	}
	_, err := s.Create(a.Name, a.ID, a.ID < 0, a.Owner, s.caller(ctx))
	return rpc.Void{}, err
}

func (s *server) new(ctx context.Context, a *NewArgs) (rpc.Int32, error) {
	if !s.Admin.Allows(ctx) {
		return 0, ErrPermission
	}
	if a.Flags&^newGroup != 0 {
		return 0, ErrBadArgument
	}
	id, err := s.Create(a.Name, 0, a.Flags&newGroup != 0, a.Owner, s.caller(ctx))
	return rpc.Int32(id), err
}

func (s *server) namesToIDs(_ context.Context, a *Names) (IDs, error) {
	ids := make([]int32, len(a.Names))
	for i, name := range a.Names {
		id, ok := s.Find(name)
		if local, cell, foreign := strings.Cut(name, "@"); !ok && foreign && s.Cell != "" && strings.EqualFold(cell, s.Cell) {
			id, ok = s.Find(local)
		}
		if !ok {
			id = Anonymous
		}
		ids[i] = id
	}
	return IDs{ids}, nil
}

func (s *server) listEntries(ctx context.Context, a *EntriesArgs) (Entries, error) {
	if !s.Admin.Allows(ctx) {
		return Entries{}, ErrPermission
	}
	part, next := s.Entries(a.Which, a.Start, s.PartLen)
	return Entries{part, next}, nil
}

func (s *server) isMember(_ context.Context, a *Pair) (rpc.Int32, error) {
	yes, err := s.IsMember(a.ID, a.Group)
	if yes {
		return 1, err
	}
	return 0, err
}

// hostCPS lists the groups of a host, which is a user with an address for a name.
func (s *server) hostCPS(host afs.Addr) (List, error) {
	id, ok := s.Find(host.String())
	if !ok {
		return List{}, nil
	}
	return list(s.Elements(id))
}
