package pt

import "urnic/ulp/rx/rpc"

// Limits of the protocol.
const (
	MaxName = 64     // bytes of a name, with its final zero
	MaxList = 500000 // elements of a list: what OpenAFS accepts

	textLen  = 4 * MaxName // bytes of an encoded name in an array
	entryLen = 12*4 + textLen
)

// IDs with a meaning.
const (
	Viewers        int32 = -203 // system:ptsviewers
	Administrators int32 = -204 // system:administrators
	Backup         int32 = -205 // system:backup
	AnyUser        int32 = -101 // system:anyuser
	AuthUser       int32 = -102 // system:authuser
	Anonymous      int32 = 32766
)

// Flags of an entry: who besides its owner may do what.
const (
	FlagStatusAny    int32 = 0x80 // anybody may see it
	FlagStatusMember int32 = 0x40 // members may see it
	FlagOwnedAny     int32 = 0x20 // anybody may list what it owns
	FlagMemberAny    int32 = 0x10 // anybody may list its members
	FlagMemberMember int32 = 0x08 // members may list its members
	FlagAddAny       int32 = 0x04 // anybody may add members
	FlagAddMember    int32 = 0x02 // members may add members
	FlagRemoveMember int32 = 0x01 // members may remove members

	defaultUser  = FlagStatusAny
	defaultGroup = FlagStatusAny | FlagMemberAny
)

// What ListEntries lists, and what NewEntry makes.
const (
	Users  int32 = 1
	Groups int32 = 2

	newGroup = 2
)

// What SetFields sets, besides the flags in its low byte.
const (
	SetGroupQuota   uint32 = 1 << 31
	SetForeignQuota uint32 = 1 << 30
)

// An Entry is a user or a group.
type Entry struct {
	Flags        int32
	ID           int32
	Owner        int32
	Creator      int32
	GroupQuota   int32 // groups that a user may still create
	ForeignQuota int32
	Count        int32 // of a user's groups, or a group's members
	Name         string
}

// XDR encodes or decodes e.
func (e *Entry) XDR(x *rpc.XDR) {
	x.Int32(&e.Flags)
	x.Int32(&e.ID)
	x.Int32(&e.Owner)
	x.Int32(&e.Creator)
	x.Int32(&e.GroupQuota)
	x.Int32(&e.ForeignQuota)
	x.Int32(&e.Count)
	x.Skip(5)
	x.Text(&e.Name, MaxName)
}

// IsGroup reports whether e is a group.
func (e *Entry) IsGroup() bool { return e.ID < 0 }
