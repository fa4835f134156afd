package vl

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

// AddrsArgs are the arguments of GetAddrs, which are not used.
type AddrsArgs struct{ Handle, Spare int32 }

// XDR encodes or decodes a.
func (a *AddrsArgs) XDR(x *rpc.XDR) {
	x.Int32(&a.Handle)
	x.Int32(&a.Spare)
}

// Addrs is the answer of GetAddrs: an address, or a number in its place, of each server.
type Addrs struct {
	Spare [4]uint32
	Count int32
	Addrs []afs.Addr
}

// XDR encodes or decodes a.
func (a *Addrs) XDR(x *rpc.XDR) {
	rpc.Uint32Array(x, a.Spare[:])
	x.Int32(&a.Count)
	rpc.Uint32s(x, &a.Addrs, maxAddrs)
}

// How GetAddrsU finds a server.
const (
	ByAddr  uint32 = 0x1
	ByIndex uint32 = 0x2
	ByUUID  uint32 = 0x4
)

// ServerKey selects a server: by one of its addresses, its index from 1 on, or its UUID.
type ServerKey struct {
	By    uint32
	Addr  afs.Addr
	Index int32
	UUID  afs.UUID
}

// XDR encodes or decodes k.
func (k *ServerKey) XDR(x *rpc.XDR) {
	x.Uint32(&k.By)
	k.Addr.XDR(x)
	x.Int32(&k.Index)
	x.Skip(1)
	k.UUID.XDR(x)
}

// A Server is a file server that has registered.
type Server struct {
	UUID   afs.UUID
	Unique int32 // rises when the addresses change
	Addrs  []afs.Addr
}

// XDR encodes or decodes s as the answer of GetAddrsU.
func (s *Server) XDR(x *rpc.XDR) {
	s.UUID.XDR(x)
	x.Int32(&s.Unique)
	n := int32(len(s.Addrs)) // says the same as the array's own count
	x.Int32(&n)
	rpc.Uint32s(x, &s.Addrs, maxAddrs)
	if int(n) != len(s.Addrs) {
		x.Fail("the number of addresses", rpc.ErrValue)
	}
}

// Registration are the arguments of RegisterAddrs.
type Registration struct {
	UUID  afs.UUID
	Addrs []afs.Addr
}

// XDR encodes or decodes r.
func (r *Registration) XDR(x *rpc.XDR) {
	r.UUID.XDR(x)
	x.Skip(1)
	rpc.Uint32s(x, &r.Addrs, maxAddrs)
}

// AddrChange are the arguments of ChangeAddr: Old becomes New. If New is 255.255.255.255,
// the server is removed.
type AddrChange struct{ Old, New afs.Addr }

// XDR encodes or decodes c.
func (c *AddrChange) XDR(x *rpc.XDR) {
	c.Old.XDR(x)
	c.New.XDR(x)
}
