package fs

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Types of files.
const (
	File uint32 = iota + 1
	Directory
	Symlink
)

// Rights to a directory and its files.
const (
	Read       uint32 = 0x01
	Write      uint32 = 0x02
	Insert     uint32 = 0x04
	LookUp     uint32 = 0x08
	Delete     uint32 = 0x10
	Lock       uint32 = 0x20
	Administer uint32 = 0x40

	ReadOnly = Read | LookUp
	All      = Read | Write | Insert | LookUp | Delete | Lock | Administer
)

const (
	statusVersion   = 1
	callbackVersion = 1
	statusLen       = 84
)

// A Status is what a file server reports about a file.
type Status struct {
	Type            uint32
	Links           uint32
	Length          uint64
	DataVersion     uint64 // rises with each change of the content
	Author, Owner   uint32
	Group           uint32
	CallerAccess    uint32 // rights
	AnonymousAccess uint32
	Mode            uint32 // Unix mode bits
	ParentVnode     uint32
	ParentUnique    uint32
	SegmentSize     uint32
	Modified        afs.Time // as the client says
	ServerModified  afs.Time
	SyncCounter     uint32
	Locks           int32 // how many read locks, or -1
	Code            int32 // of an error, in place of all others
}

// XDR encodes or decodes s.
func (s *Status) XDR(x *rpc.XDR) {
	version := uint32(statusVersion)
	x.Uint32(&version)
	x.Uint32(&s.Type)
	x.Uint32(&s.Links)
	lengthLow, versionLow := uint32(s.Length), uint32(s.DataVersion)
	lengthHigh, versionHigh := uint32(s.Length>>32), uint32(s.DataVersion>>32)
	x.Uint32(&lengthLow)
	x.Uint32(&versionLow)
	for _, v := range []*uint32{
		&s.Author, &s.Owner, &s.CallerAccess, &s.AnonymousAccess, &s.Mode, &s.ParentVnode, &s.ParentUnique, &s.SegmentSize,
	} {
		x.Uint32(v)
	}
	s.Modified.XDR(x)
	s.ServerModified.XDR(x)
	x.Uint32(&s.Group)
	x.Uint32(&s.SyncCounter)
	x.Uint32(&versionHigh)
	x.Int32(&s.Locks)
	x.Uint32(&lengthHigh)
	x.Int32(&s.Code)
	if x.Decoding() {
		s.Length, s.DataVersion = uint64(lengthHigh)<<32|uint64(lengthLow), uint64(versionHigh)<<32|uint64(versionLow)
		if version != statusVersion {
			x.Fail("the version of a file's status", rpc.ErrValue)
		}
	}
}

// What of a StoreStatus counts.
const (
	SetModified uint32 = 1
	SetOwner    uint32 = 2
	SetGroup    uint32 = 4
	SetMode     uint32 = 8
	SetSegment  uint32 = 16
)

// A StoreStatus is what a client sets of a file.
type StoreStatus struct {
	Mask         uint32
	Modified     afs.Time
	Owner, Group uint32
	Mode         uint32
	SegmentSize  uint32
}

// XDR encodes or decodes s.
func (s *StoreStatus) XDR(x *rpc.XDR) {
	x.Uint32(&s.Mask)
	s.Modified.XDR(x)
	x.Uint32(&s.Owner)
	x.Uint32(&s.Group)
	x.Uint32(&s.Mode)
	x.Uint32(&s.SegmentSize)
}

// Sync are words with which a server says when a volume was made or restored.
type Sync struct{ Words [6]uint32 }

// XDR encodes or decodes s.
func (s *Sync) XDR(x *rpc.XDR) { rpc.Uint32Array(x, s.Words[:]) }

// VolumeStatus is what a file server reports about a volume. Sizes are in KiB.
type VolumeStatus struct {
	ID, ParentID  uint32
	Online        int8
	InService     int8
	Blessed       int8
	NeedsSalvage  int8
	Type          int32 // 1 for a read-write volume
	MinQuota      int32
	Quota         int32
	Used          int32
	PartitionFree int32
	PartitionSize int32
	Name          string
	OfflineText   string
	MessageOfDay  string
}

// XDR encodes or decodes s.
func (s *VolumeStatus) XDR(x *rpc.XDR) {
	x.Uint32(&s.ID)
	x.Uint32(&s.ParentID)
	for _, c := range []*int8{&s.Online, &s.InService, &s.Blessed, &s.NeedsSalvage} {
		x.Char(c)
	}
	for _, n := range []*int32{&s.Type, &s.MinQuota, &s.Quota, &s.Used, &s.PartitionFree, &s.PartitionSize} {
		x.Int32(n)
	}
	x.String(&s.Name, maxName)
	x.String(&s.OfflineText, maxOpaque)
	x.String(&s.MessageOfDay, maxOpaque)
}
