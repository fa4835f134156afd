package fs

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const (
	maxName   = 256
	maxPath   = 1024
	maxOpaque = 1024
)

// FetchArgs are the arguments of FetchData64.
type FetchArgs struct {
	FID            afs.FID
	Offset, Length int64
}

// XDR encodes or decodes a.
func (a *FetchArgs) XDR(x *rpc.XDR) {
	a.FID.XDR(x)
	x.Int64(&a.Offset)
	x.Int64(&a.Length)
}

// OldFetchArgs are the arguments of FetchData.
type OldFetchArgs struct {
	FID            afs.FID
	Offset, Length int32
}

// XDR encodes or decodes a.
func (a *OldFetchArgs) XDR(x *rpc.XDR) {
	a.FID.XDR(x)
	x.Int32(&a.Offset)
	x.Int32(&a.Length)
}

// StoreArgs are the arguments of StoreData64. The data follows.
type StoreArgs struct {
	FID                        afs.FID
	Status                     StoreStatus
	Offset, Length, FileLength uint64
}

// XDR encodes or decodes a.
func (a *StoreArgs) XDR(x *rpc.XDR) {
	a.FID.XDR(x)
	a.Status.XDR(x)
	x.Uint64(&a.Offset)
	x.Uint64(&a.Length)
	x.Uint64(&a.FileLength)
}

// OldStoreArgs are the arguments of StoreData. The data follows.
type OldStoreArgs struct {
	FID                        afs.FID
	Status                     StoreStatus
	Offset, Length, FileLength uint32
}

// XDR encodes or decodes a.
func (a *OldStoreArgs) XDR(x *rpc.XDR) {
	a.FID.XDR(x)
	a.Status.XDR(x)
	x.Uint32(&a.Offset)
	x.Uint32(&a.Length)
	x.Uint32(&a.FileLength)
}

// Promised is a file's status and a promise.
type Promised struct {
	Status   Status
	Callback afs.Callback
	Sync     Sync
}

// XDR encodes or decodes p.
func (p *Promised) XDR(x *rpc.XDR) {
	p.Status.XDR(x)
	p.Callback.XDR(x)
	p.Sync.XDR(x)
}

// Changed is a file's status after a change.
type Changed struct {
	Status Status
	Sync   Sync
}

// XDR encodes or decodes c.
func (c *Changed) XDR(x *rpc.XDR) {
	c.Status.XDR(x)
	c.Sync.XDR(x)
}

// ACL is a list of rights as text, and its directory's status.
type ACL struct {
	Text string
	Changed
}

// XDR encodes or decodes a.
func (a *ACL) XDR(x *rpc.XDR) {
	x.String(&a.Text, maxOpaque)
	a.Changed.XDR(x)
}

// FIDs is a list of files.
type FIDs struct{ FIDs []afs.FID }

// XDR encodes or decodes f.
func (f *FIDs) XDR(x *rpc.XDR) { rpc.Slice(x, &f.FIDs, afs.MaxFiles, afs.FIDLen) }

// Statuses are the status of many files.
type Statuses struct {
	Statuses  []Status
	Callbacks []afs.Callback
	Sync      Sync
}

// XDR encodes or decodes s.
func (s *Statuses) XDR(x *rpc.XDR) {
	rpc.Slice(x, &s.Statuses, afs.MaxFiles, statusLen)
	rpc.Slice(x, &s.Callbacks, afs.MaxFiles, afs.CallbackLen)
	s.Sync.XDR(x)
}

// StatusArgs are the arguments of StoreStatus.
type StatusArgs struct {
	FID    afs.FID
	Status StoreStatus
}

// XDR encodes or decodes a.
func (a *StatusArgs) XDR(x *rpc.XDR) {
	a.FID.XDR(x)
	a.Status.XDR(x)
}

// NameArgs are a directory and a name in it.
type NameArgs struct {
	Dir  afs.FID
	Name string
}

// XDR encodes or decodes a.
func (a *NameArgs) XDR(x *rpc.XDR) {
	a.Dir.XDR(x)
	x.String(&a.Name, maxName)
}

// CreateArgs are the arguments of CreateFile and MakeDir.
type CreateArgs struct {
	NameArgs
	Status StoreStatus
}

// XDR encodes or decodes a.
func (a *CreateArgs) XDR(x *rpc.XDR) {
	a.NameArgs.XDR(x)
	a.Status.XDR(x)
}

// SymlinkArgs are the arguments of Symlink.
type SymlinkArgs struct {
	NameArgs
	Target string
	Status StoreStatus
}

// XDR encodes or decodes a.
func (a *SymlinkArgs) XDR(x *rpc.XDR) {
	a.NameArgs.XDR(x)
	x.String(&a.Target, maxPath)
	a.Status.XDR(x)
}

// LinkArgs are the arguments of Link.
type LinkArgs struct {
	NameArgs
	File afs.FID
}

// XDR encodes or decodes a.
func (a *LinkArgs) XDR(x *rpc.XDR) {
	a.NameArgs.XDR(x)
	a.File.XDR(x)
}

// RenameArgs are the arguments of Rename.
type RenameArgs struct{ Old, New NameArgs }

// XDR encodes or decodes a.
func (a *RenameArgs) XDR(x *rpc.XDR) {
	a.Old.XDR(x)
	a.New.XDR(x)
}

// Two are the status of two files after a change: of a file and its directory, or of two
// directories.
type Two struct {
	First, Second Status
	Sync          Sync
}

// XDR encodes or decodes t.
func (t *Two) XDR(x *rpc.XDR) {
	t.First.XDR(x)
	t.Second.XDR(x)
	t.Sync.XDR(x)
}

// Made is a new symbolic link.
type Made struct {
	FID       afs.FID
	File, Dir Status
	Sync      Sync
}

// XDR encodes or decodes m.
func (m *Made) XDR(x *rpc.XDR) {
	m.FID.XDR(x)
	m.File.XDR(x)
	m.Dir.XDR(x)
	m.Sync.XDR(x)
}

// Created is a new file or directory, and a promise.
type Created struct {
	FID       afs.FID
	File, Dir Status
	Callback  afs.Callback
	Sync      Sync
}

// XDR encodes or decodes c.
func (c *Created) XDR(x *rpc.XDR) {
	c.FID.XDR(x)
	c.File.XDR(x)
	c.Dir.XDR(x)
	c.Callback.XDR(x)
	c.Sync.XDR(x)
}

// Types of locks.
const (
	LockRead int32 = iota
	LockWrite
)

// LockArgs are the arguments of SetLock.
type LockArgs struct {
	FID  afs.FID
	Type int32
}

// XDR encodes or decodes a.
func (a *LockArgs) XDR(x *rpc.XDR) {
	a.FID.XDR(x)
	x.Int32(&a.Type)
}

// Clock is a server's time.
type Clock struct {
	Seconds afs.Time
	Micros  uint32
}

// XDR encodes or decodes c.
func (c *Clock) XDR(x *rpc.XDR) {
	c.Seconds.XDR(x)
	x.Uint32(&c.Micros)
}

// String is a name.
type String string

// XDR encodes or decodes s.
func (s *String) XDR(x *rpc.XDR) { x.String((*string)(s), maxName) }

// Counters are statistics, by what they count. A client says how many it wants.
type Counters struct{ Counters []uint64 }

const maxCounters = 16

// XDR encodes or decodes c.
func (c *Counters) XDR(x *rpc.XDR) {
	n := uint32(len(c.Counters))
	if x.Uint32(&n); n > maxCounters {
		x.Fail("counters", rpc.ErrLong)
		return
	}
	if x.Decoding() {
		c.Counters = nil
	}
	for i := range n {
		if x.Decoding() {
			c.Counters = append(c.Counters, 0)
		}
		x.Uint64(&c.Counters[i])
	}
}

// A Disk is a partition, with sizes in KiB.
type Disk struct {
	Free, Total int32
	Name        [32]byte
}

// XDR encodes or decodes d.
func (d *Disk) XDR(x *rpc.XDR) {
	x.Int32(&d.Free)
	x.Int32(&d.Total)
	x.Fixed(d.Name[:])
}

// Statistics are the counters of GetStatistics that have a meaning still.
type Statistics struct {
	Now, Booted, Started              afs.Time
	Connections                       int32
	Calls                             uint32
	Fetches, FetchDatas, FetchedBytes uint32
	Stores, StoreDatas, StoredBytes   uint32
	Disks                             [10]Disk
}

// XDR encodes or decodes s.
func (s *Statistics) XDR(x *rpc.XDR) {
	x.Skip(2)
	s.Now.XDR(x)
	s.Booted.XDR(x)
	s.Started.XDR(x)
	x.Int32(&s.Connections)
	x.Uint32(&s.Calls)
	for _, three := range [][]*uint32{{&s.Fetches, &s.FetchDatas, &s.FetchedBytes}, {&s.Stores, &s.StoreDatas, &s.StoredBytes}} {
		for _, v := range three {
			x.Uint32(v)
		}
		x.Skip(1) // a rate
	}
	x.Skip(30) // packets, time of processors, Ethernet, memory, workstations
	rpc.Array(x, s.Disks[:])
}
