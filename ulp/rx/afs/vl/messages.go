package vl

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// A Volume is a volume ID and a type, or AnyType.
type Volume struct {
	ID   uint32
	Type int32
}

// XDR encodes or decodes v.
func (v *Volume) XDR(x *rpc.XDR) {
	x.Uint32(&v.ID)
	x.Int32(&v.Type)
}

// Name is a volume's name, or its number.
type Name string

// XDR encodes or decodes n.
func (n *Name) XDR(x *rpc.XDR) { x.String((*string)(n), MaxName) }

// ReplaceArgs are the arguments of ReplaceEntryN.
type ReplaceArgs struct {
	Volume
	Entry  Entry
	Unlock int32 // what is unlocked, see UnlockAll
}

// XDR encodes or decodes a.
func (a *ReplaceArgs) XDR(x *rpc.XDR) {
	a.Volume.XDR(x)
	a.Entry.XDR(x)
	x.Int32(&a.Unlock)
}

// OldReplaceArgs are the arguments of ReplaceEntry.
type OldReplaceArgs struct {
	Volume
	Entry  OldEntry
	Unlock int32
}

// XDR encodes or decodes a.
func (a *OldReplaceArgs) XDR(x *rpc.XDR) {
	a.Volume.XDR(x)
	a.Entry.XDR(x)
	x.Int32(&a.Unlock)
}

// Parts of a lock.
const (
	UnlockTime      int32 = 1
	UnlockOperation int32 = 2
	UnlockUser      int32 = 4
	UnlockAll             = UnlockTime | UnlockOperation | UnlockUser
)

// LockArgs are a volume and an operation, or the parts of a lock.
type LockArgs struct {
	Volume
	What int32
}

// XDR encodes or decodes a.
func (a *LockArgs) XDR(x *rpc.XDR) {
	a.Volume.XDR(x)
	x.Int32(&a.What)
}

// What of Attributes counts.
const (
	ByServer    uint32 = 0x01
	ByPartition uint32 = 0x02
	ByID        uint32 = 0x08
	ByFlag      uint32 = 0x10
)

// Attributes select entries.
type Attributes struct {
	Mask      uint32
	Server    afs.Addr
	Partition int32
	ID        uint32
	Flag      uint32
}

// XDR encodes or decodes a.
func (a *Attributes) XDR(x *rpc.XDR) {
	x.Uint32(&a.Mask)
	a.Server.XDR(x)
	x.Int32(&a.Partition)
	x.Skip(1)
	x.Uint32(&a.ID)
	x.Uint32(&a.Flag)
}

// ListArgs are the arguments of ListAttributesN2.
type ListArgs struct {
	Attributes
	Name  string // a regular expression for the volume's name; any name if it is empty
	Start int32
}

// XDR encodes or decodes a.
func (a *ListArgs) XDR(x *rpc.XDR) {
	a.Attributes.XDR(x)
	x.String(&a.Name, MaxName)
	x.Int32(&a.Start)
}

const maxEntries = 20000 // in one answer: OpenAFS sends 500

// ListedEntries are entries of ListAttributesN.
type ListedEntries struct {
	Count   int32
	Entries []Entry
}

// XDR encodes or decodes e.
func (e *ListedEntries) XDR(x *rpc.XDR) {
	x.Int32(&e.Count)
	rpc.Slice(x, &e.Entries, maxEntries, entryLen)
}

// PartOfEntries are entries of ListAttributesN2, and where to continue: -1 at the end.
type PartOfEntries struct {
	ListedEntries
	Next int32
}

// XDR encodes or decodes e.
func (e *PartOfEntries) XDR(x *rpc.XDR) {
	e.ListedEntries.XDR(x)
	x.Int32(&e.Next)
}

// OldListedEntries are entries of ListAttributes.
type OldListedEntries struct {
	Count   int32
	Entries []OldEntry
}

// XDR encodes or decodes e.
func (e *OldListedEntries) XDR(x *rpc.XDR) {
	x.Int32(&e.Count)
	rpc.Slice(x, &e.Entries, maxEntries, oldEntryLen)
}

// NextEntry is the answer of ListEntryN: one entry of all, and where the next one is, 0 at
// the end.
type NextEntry struct {
	Count, Next int32
	Entry       Entry
}

// XDR encodes or decodes e.
func (e *NextEntry) XDR(x *rpc.XDR) {
	x.Int32(&e.Count)
	x.Int32(&e.Next)
	e.Entry.XDR(x)
}

// OldNextEntry is the answer of ListEntry.
type OldNextEntry struct {
	Count, Next int32
	Entry       OldEntry
}

// XDR encodes or decodes e.
func (e *OldNextEntry) XDR(x *rpc.XDR) {
	x.Int32(&e.Count)
	x.Int32(&e.Next)
	e.Entry.XDR(x)
}

// Stats are the counters of a location server.
type Stats struct {
	Start       afs.Time
	Requests    [50]int32 // by opcode, from 501 on
	Aborts      [50]int32
	Version     int32
	HeaderLen   int32
	FreePtr     int32
	EndPtr      int32
	Allocs      int32
	Frees       int32
	MaxVolumeID uint32
	Entries     [types]int32
}

// XDR encodes or decodes s.
func (s *Stats) XDR(x *rpc.XDR) {
	s.Start.XDR(x)
	rpc.Int32Array(x, s.Requests[:])
	rpc.Int32Array(x, s.Aborts[:])
	x.Skip(5)
	for _, v := range []*int32{&s.Version, &s.HeaderLen, &s.FreePtr, &s.EndPtr, &s.Allocs, &s.Frees} {
		x.Int32(v)
	}
	x.Uint32(&s.MaxVolumeID)
	rpc.Int32Array(x, s.Entries[:])
}
