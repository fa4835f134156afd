package vl

import (
	"strings"

	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// Limits of the protocol.
const (
	MaxName  = 65 // bytes of a name, with its final zero
	MaxSites = 13
	maxOld   = 8   // sites of an entry in its first form
	maxAddrs = 500 // addresses in a list

	entryLen    = 4*MaxName + (1+3*MaxSites+3+3+8)*4
	oldEntryLen = 4*MaxName + (2+3*maxOld+3+2)*4
)

// Types of volumes, as indices and as arguments.
const (
	ReadWrite int32 = iota
	ReadOnly
	Backup

	types = 3

	AnyType int32 = -1
)

// Flags of an entry.
const (
	HasReadWrite uint32 = 0x1000
	HasReadOnly  uint32 = 0x2000
	HasBackup    uint32 = 0x4000
)

// Operations for which an entry is locked. They are flags of the entry, too.
const (
	Move    uint32 = 0x10
	Release uint32 = 0x20
	Clone   uint32 = 0x40  // to make the backup volume
	Delete  uint32 = 0x80  // or to add a site
	Dump    uint32 = 0x100 // or to restore

	operations = Move | Release | Clone | Delete | Dump
)

// Flags of a site.
const (
	NewRelease  uint32 = 0x01 // the site has the volume of a release that is not finished
	SiteRO      uint32 = 0x02
	SiteRW      uint32 = 0x04
	SiteBackup  uint32 = 0x08
	SiteUUID    uint32 = 0x10 // the server is named by its UUID
	DontUse     uint32 = 0x20 // the site has no volume yet
	SiteReplica uint32 = 0x40
)

// A Site is a place of a volume.
type Site struct {
	Server    afs.Addr
	UUID      afs.UUID // of the server, if the flags have SiteUUID
	Unique    int32    // that changes with the server's addresses
	Partition int32
	Flags     uint32
}

// An Entry says where a volume is.
type Entry struct {
	Name    string
	Sites   []Site
	IDs     [types]uint32 // of the read-write, the read-only and the backup volume; 0 for none
	CloneID uint32        // in use while the volume is released
	Flags   uint32
	Match   int32 // in lists: the site that was asked for, and its type << 16
}

// XDR encodes or decodes e as an entry of the N operations, without UUIDs.
func (e *Entry) XDR(x *rpc.XDR) {
	x.Text(&e.Name, MaxName)
	e.sites(x, MaxSites)
	e.ids(x)
	x.Int32(&e.Match)
	x.Skip(8)
}

func (e *Entry) ids(x *rpc.XDR) {
	rpc.Uint32Array(x, e.IDs[:])
	x.Uint32(&e.CloneID)
	x.Uint32(&e.Flags)
}

// count is the number of sites, of at most so many.
func (e *Entry) count(x *rpc.XDR, most int) {
	n := int32(len(e.Sites))
	x.Int32(&n)
	if n < 0 || int(n) > most {
		x.Fail("the number of sites", rpc.ErrLong)
		n = 0
	}
	if x.Decoding() {
		e.Sites = nil
		if n > 0 {
			e.Sites = make([]Site, n)
		}
	}
}

// sites are the number of sites, then their servers, partitions and flags, in arrays of which
// the rest is 0.
func (e *Entry) sites(x *rpc.XDR, most int) {
	e.count(x, most)
	column(e.Sites, most, func(s *Site) { s.Server.XDR(x) })
	e.places(x, most)
}

func (e *Entry) places(x *rpc.XDR, most int) {
	column(e.Sites, most, func(s *Site) { x.Int32(&s.Partition) })
	column(e.Sites, most, func(s *Site) { x.Uint32(&s.Flags) })
}

// column encodes or decodes an array with one field of all sites. What is behind the last site
// has no meaning: vos leaves old values there.
func column(sites []Site, most int, field func(*Site)) {
	for i := range most {
		if i < len(sites) {
			field(&sites[i])
			continue
		}
		var none Site
		field(&none)
	}
}

// An OldEntry is an entry of the first operations, of at most 8 sites.
type OldEntry struct{ Entry }

// XDR encodes or decodes e.
func (e *OldEntry) XDR(x *rpc.XDR) {
	x.Text(&e.Name, MaxName)
	x.Skip(1)
	e.sites(x, maxOld)
	e.ids(x)
}

// A UEntry is an entry of the U operations: its sites have UUIDs. Without the flag SiteUUID,
// an address stands at the front of the UUID.
type UEntry struct{ Entry }

// XDR encodes or decodes e.
func (e *UEntry) XDR(x *rpc.XDR) {
	x.Text(&e.Name, MaxName)
	e.count(x, MaxSites)
	column(e.Sites, MaxSites, func(s *Site) { s.UUID.XDR(x) })
	column(e.Sites, MaxSites, func(s *Site) { x.Int32(&s.Unique) })
	e.places(x, MaxSites)
	e.ids(x)
	x.Int32(&e.Match)
	x.Skip(8)
}

// valid reports what is wrong with an entry from a client.
func (e *Entry) valid() error {
	if !validName(e.Name) {
		return ErrBadName
	}
	if len(e.Sites) == 0 || len(e.Sites) > MaxSites {
		return ErrBadServer
	}
	for _, s := range e.Sites {
		if s.Partition < 0 || s.Partition > 254 {
			return ErrBadPartition
		}
		if s.Flags > 0xff {
			return ErrBadSiteFlags
		}
	}
	return nil
}

// validName reports whether a volume may have a name.
func validName(name string) bool {
	return len(name) < MaxName && strings.TrimLeft(name, ".-_0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}
