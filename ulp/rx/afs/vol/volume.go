package vol

import (
	"fmt"
	"math"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Types of volumes.
const (
	ReadWrite int32 = iota
	ReadOnly
	Backup
)

const (
	maxName = 32 // bytes of a name, with its final zero

	infoLen  = 4*maxName + 23*4
	xInfoLen = 4*maxName + 16*4 + (2*accessKinds+4*ageKinds)*4

	accessKinds = 4
	ageKinds    = 6

	maxVolumes = 1 << 16 // in a list
)

// OK is the Status of a volume that can be attached. The other ones are numbers of afs.Volumes.
const OK int32 = 2

// An Info is what a volume server reports about a volume.
type Info struct {
	Name                       string
	ID                         uint32
	Type                       int32
	BackupID, ParentID         uint32
	CloneID                    uint32
	Status                     int32 // OK, or what is wrong
	Copied                     afs.Time
	InUse                      uint8 // 1 if it is on-line
	NeedsSalvage               uint8
	DestroyMe                  uint8
	Created, Accessed, Updated afs.Time
	BackedUp                   afs.Time
	DayUse, Files              int32
	Quota, Size                int32 // KiB
	Flags                      int32
	MinQuota, WeekUse          int32
	Spare                      [2]int32 // as peers send it
}

// XDR encodes or decodes i.
func (i *Info) XDR(x *rpc.XDR) {
	i.front(x)
	x.Byte(&i.NeedsSalvage)
	x.Byte(&i.DestroyMe)
	i.middle(x)
	x.Int32(&i.Flags)
	x.Int32(&i.MinQuota)
	x.Int32(&i.WeekUse)
	rpc.Int32Array(x, i.Spare[:])
}

func (i *Info) front(x *rpc.XDR) {
	x.Text(&i.Name, maxName)
	x.Uint32(&i.ID)
	x.Int32(&i.Type)
	x.Uint32(&i.BackupID)
	x.Uint32(&i.ParentID)
	x.Uint32(&i.CloneID)
	x.Int32(&i.Status)
	i.Copied.XDR(x)
	x.Byte(&i.InUse)
}

func (i *Info) middle(x *rpc.XDR) {
	i.Created.XDR(x)
	i.Accessed.XDR(x)
	i.Updated.XDR(x)
	i.BackedUp.XDR(x)
	x.Int32(&i.DayUse)
	x.Int32(&i.Files)
	x.Int32(&i.Quota)
	x.Int32(&i.Size)
}

const noTime = afs.Time(math.MaxUint32)

// Unchanged returns an Info for SetInfo that changes nothing: its numbers and times are -1.
func Unchanged() Info {
	return Info{
		Copied: noTime, Created: noTime, Accessed: noTime, Updated: noTime, BackedUp: noTime,
		DayUse: -1, Files: -1, Quota: -1, Size: -1, Flags: -1, MinQuota: -1, WeekUse: -1, Spare: [2]int32{-1, -1},
	}
}

// An XInfo is an Info with counters of accesses, and without what a salvage is about.
type XInfo struct {
	Info
	Reads, Writes                [accessKinds]int32 // from the same network, with authentication, and from others
	FilesSame, FilesOther        [ageKinds]int32    // writes to files by the same author and by another, by time since the last
	DirectoriesSame, Directories [ageKinds]int32
}

// XDR encodes or decodes i.
func (i *XInfo) XDR(x *rpc.XDR) {
	i.front(x)
	i.middle(x)
	rpc.Int32Array(x, i.Reads[:])
	rpc.Int32Array(x, i.Writes[:])
	rpc.Int32Array(x, i.FilesSame[:])
	rpc.Int32Array(x, i.FilesOther[:])
	rpc.Int32Array(x, i.DirectoriesSame[:])
	rpc.Int32Array(x, i.Directories[:])
}

// Infos is a list of volumes.
type Infos struct{ Infos []Info }

// XDR encodes or decodes i.
func (i *Infos) XDR(x *rpc.XDR) { rpc.Slice(x, &i.Infos, maxVolumes, infoLen) }

// XInfos is a list of volumes with counters.
type XInfos struct{ Infos []XInfo }

// XDR encodes or decodes i.
func (i *XInfos) XDR(x *rpc.XDR) { rpc.Slice(x, &i.Infos, maxVolumes, xInfoLen) }

// A Status is what a transaction reports about its volume.
type Status struct {
	ID                uint32
	NextUnique        int32
	Type              int32
	ParentID, CloneID uint32
	BackupID          uint32
	RestoredFrom      uint32
	Quota, MinQuota   int32 // KiB
	Owner             int32
	Created, Accessed afs.Time
	Updated, Expires  afs.Time
	BackedUp, Copied  afs.Time
}

// XDR encodes or decodes s.
func (s *Status) XDR(x *rpc.XDR) {
	x.Uint32(&s.ID)
	x.Int32(&s.NextUnique)
	x.Int32(&s.Type)
	x.Uint32(&s.ParentID)
	x.Uint32(&s.CloneID)
	x.Uint32(&s.BackupID)
	x.Uint32(&s.RestoredFrom)
	x.Int32(&s.Quota)
	x.Int32(&s.MinQuota)
	x.Int32(&s.Owner)
	for _, t := range []*afs.Time{&s.Created, &s.Accessed, &s.Updated, &s.Expires, &s.BackedUp, &s.Copied} {
		t.XDR(x)
	}
}

// PartitionName returns a partition's name: "/vicepa" for 0, "/vicepaa" for 26.
func PartitionName(partition int32) string {
	switch {
	case partition < 0 || partition > maxPartition:
		return fmt.Sprintf("partition %d", partition)
	case partition < 26:
		return "/vicep" + string(rune('a'+partition))
	}
	partition -= 26
	return "/vicep" + string(rune('a'+partition/26)) + string(rune('a'+partition%26))
}

// maxPartition is the last partition, "/vicepiu".
const maxPartition = 254

// A Partition is where volumes are. Sizes are in KiB. OpenAFS's server sets no Usable, and
// has the size where its interface calls for the space that is to stay free.
type Partition struct {
	Name, Device string
	LockFD       int32
	Usable       int64
	Free         int64
	Size         int64
}

// XDR encodes or decodes p.
func (p *Partition) XDR(x *rpc.XDR) {
	x.Text(&p.Name, 256)
	x.Text(&p.Device, 256)
	x.Int32(&p.LockFD)
	x.Int64(&p.Usable)
	x.Int64(&p.Free)
	x.Int64(&p.Size)
}

// An OldPartition is a partition of at most 2 TiB.
type OldPartition struct {
	Name, Device       string
	LockFD             int32
	Usable, Free, Size int32
}

// XDR encodes or decodes p.
func (p *OldPartition) XDR(x *rpc.XDR) {
	x.Text(&p.Name, 32)
	x.Text(&p.Device, 32)
	x.Int32(&p.LockFD)
	x.Int32(&p.Usable)
	x.Int32(&p.Free)
	x.Int32(&p.Size)
}

// Partitions is a list of partitions.
type Partitions struct{ Numbers []int32 }

// XDR encodes or decodes p.
func (p *Partitions) XDR(x *rpc.XDR) { rpc.Int32s(x, &p.Numbers, maxPartition+1) }

// OldPartitions are partitions in an array whose unused places are -1.
type OldPartitions struct{ Numbers [26]int32 }

// XDR encodes or decodes p.
func (p *OldPartitions) XDR(x *rpc.XDR) { rpc.Int32Array(x, p.Numbers[:]) }
