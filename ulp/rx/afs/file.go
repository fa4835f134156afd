package afs

import (
	"fmt"

	"urnic/ulp/rx/rpc"
)

// MaxFiles is how many files one call is about at most.
const MaxFiles = 50

// A FID names a file: its volume, its place in that, and a number that no other file at the
// same place has had.
type FID struct{ Volume, Vnode, Unique uint32 }

// FIDLen is the length of an encoded FID.
const FIDLen = 12

// IsDir reports whether the file is a directory: those have odd vnodes.
func (f FID) IsDir() bool { return f.Vnode&1 == 1 }

// String returns the numbers with dots.
func (f FID) String() string { return fmt.Sprintf("%d.%d.%d", f.Volume, f.Vnode, f.Unique) }

// XDR encodes or decodes f.
func (f *FID) XDR(x *rpc.XDR) {
	x.Uint32(&f.Volume)
	x.Uint32(&f.Vnode)
	x.Uint32(&f.Unique)
}

// Types of callbacks.
const (
	CallbackExclusive uint32 = 1
	CallbackShared    uint32 = 2
	CallbackDropped   uint32 = 3
)

// A Callback is a file server's promise to report a change, or the message that there was
// one.
type Callback struct {
	Version uint32
	Expires uint32 // seconds from now on, in a promise
	Type    uint32
}

// CallbackLen is the length of an encoded Callback.
const CallbackLen = 12

// XDR encodes or decodes c.
func (c *Callback) XDR(x *rpc.XDR) {
	x.Uint32(&c.Version)
	x.Uint32(&c.Expires)
	x.Uint32(&c.Type)
}

// Callbacks are files and their callbacks, of which there may be fewer.
type Callbacks struct {
	FIDs      []FID
	Callbacks []Callback
}

// XDR encodes or decodes c.
func (c *Callbacks) XDR(x *rpc.XDR) {
	rpc.Slice(x, &c.FIDs, MaxFiles, FIDLen)
	rpc.Slice(x, &c.Callbacks, MaxFiles, CallbackLen)
}

// Capabilities are bits in words.
type Capabilities struct{ Words []uint32 }

const maxCapabilities = 196 // words

// XDR encodes or decodes c.
func (c *Capabilities) XDR(x *rpc.XDR) { rpc.Uint32s(x, &c.Words, maxCapabilities) }

// XStatsArgs are the arguments of GetXStats, which file servers and their clients have.
type XStatsArgs struct{ Version, Collection int32 }

// XDR encodes or decodes a.
func (a *XStatsArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Version)
	x.Int32(&a.Collection)
}

// XStats is a collection of statistics: words whose meaning depends on the collection.
type XStats struct {
	Version int32
	Time    Time
	Words   []int32
}

const maxXStats = 2048 // words

// XDR encodes or decodes s.
func (s *XStats) XDR(x *rpc.XDR) {
	x.Int32(&s.Version)
	s.Time.XDR(x)
	rpc.Int32s(x, &s.Words, maxXStats)
}
