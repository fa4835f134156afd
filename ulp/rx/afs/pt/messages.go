package pt

import "urnic/ulp/rx/rpc"

// CreateArgs are the arguments of INewEntry: an entry with a given ID.
type CreateArgs struct {
	Name      string
	ID, Owner int32
}

// XDR encodes or decodes a.
func (a *CreateArgs) XDR(x *rpc.XDR) {
	x.String(&a.Name, MaxName)
	x.Int32(&a.ID)
	x.Int32(&a.Owner)
}

// NewArgs are the arguments of NewEntry: an entry with an ID that the server chooses.
type NewArgs struct {
	Name  string
	Flags int32 // 2 for a group
	Owner int32
}

// XDR encodes or decodes a.
func (a *NewArgs) XDR(x *rpc.XDR) {
	x.String(&a.Name, MaxName)
	x.Int32(&a.Flags)
	x.Int32(&a.Owner)
}

// Pair are two IDs: an element and a group.
type Pair struct{ ID, Group int32 }

// XDR encodes or decodes p.
func (p *Pair) XDR(x *rpc.XDR) {
	x.Int32(&p.ID)
	x.Int32(&p.Group)
}

// Names is a list of names.
type Names struct{ Names []string }

// XDR encodes or decodes n.
func (n *Names) XDR(x *rpc.XDR) { rpc.Strings(x, &n.Names, MaxList, MaxName) }

// IDs is a list of IDs.
type IDs struct{ IDs []int32 }

// XDR encodes or decodes i.
func (i *IDs) XDR(x *rpc.XDR) { rpc.Int32s(x, &i.IDs, MaxList) }

// List is a list of IDs and a number: whether there are more, or where to continue.
type List struct {
	IDs  []int32
	More int32
}

// XDR encodes or decodes l.
func (l *List) XDR(x *rpc.XDR) {
	rpc.Int32s(x, &l.IDs, MaxList)
	x.Int32(&l.More)
}

// Maxima are the IDs behind which new ones are chosen.
type Maxima struct{ User, Group int32 }

// XDR encodes or decodes m.
func (m *Maxima) XDR(x *rpc.XDR) {
	x.Int32(&m.User)
	x.Int32(&m.Group)
}

// SetMaxArgs are the arguments of SetMax.
type SetMaxArgs struct {
	ID    int32
	Group bool
}

// XDR encodes or decodes a. A group is marked by its flag, 2.
func (a *SetMaxArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.ID)
	var flag int32
	if a.Group {
		flag = newGroup
	}
	x.Int32(&flag)
	a.Group = a.Group || x.Decoding() && flag&newGroup != 0
}

// ChangeArgs are the arguments of ChangeEntry. What is empty or zero stays.
type ChangeArgs struct {
	ID    int32
	Name  string
	Owner int32
	NewID int32
}

// XDR encodes or decodes a.
func (a *ChangeArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.ID)
	x.String(&a.Name, MaxName)
	x.Int32(&a.Owner)
	x.Int32(&a.NewID)
}

// FieldsArgs are the arguments of SetFieldsEntry. Mask says what is set.
type FieldsArgs struct {
	ID           int32
	Mask         uint32
	Flags        int32
	GroupQuota   int32
	ForeignQuota int32
}

// XDR encodes or decodes a.
func (a *FieldsArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.ID)
	x.Uint32(&a.Mask)
	x.Int32(&a.Flags)
	x.Int32(&a.GroupQuota)
	x.Int32(&a.ForeignQuota)
	x.Skip(2)
}

// HostArgs are an ID and an IPv4 address, the arguments of GetCPS2.
type HostArgs struct {
	ID   int32
	Host uint32
}

// XDR encodes or decodes a.
func (a *HostArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.ID)
	x.Uint32(&a.Host)
}

// Entries are a part of a list of entries.
type Entries struct {
	Entries []Entry
	Next    int32 // where to continue, -1 at the end
}

// XDR encodes or decodes e.
func (e *Entries) XDR(x *rpc.XDR) {
	rpc.Slice(x, &e.Entries, MaxList, entryLen)
	x.Int32(&e.Next)
}

// EntriesArgs are the arguments of ListEntries.
type EntriesArgs struct {
	Which int32 // Users, Groups, or both
	Start int32
}

// XDR encodes or decodes a.
func (a *EntriesArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Which)
	x.Int32(&a.Start)
}

// OwnedArgs are the arguments of ListOwned.
type OwnedArgs struct {
	ID   int32
	Last int32
}

// XDR encodes or decodes a.
func (a *OwnedArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.ID)
	x.Int32(&a.Last)
}
