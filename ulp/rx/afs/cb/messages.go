package cb

import (
	"urnic/ulp/rx/afs"
	"urnic/ulp/rx/rpc"
)

const (
	maxInterfaces = 32
	maxName       = 256
	maxHosts      = 8
	maxConfig     = 100 // words
)

// Codes are the abort codes of the interface.
var Codes = rpc.NewCodes("cb", afs.System)

// ErrNotThisClient is the code of a Probe with another client's UUID.
var ErrNotThisClient = Codes.Define(1, "EPERM", "another client has this address")

// An Interface is a network interface of a client.
type Interface struct {
	Addr afs.Addr
	Mask uint32
	MTU  int32
}

// Identity is who a client is, whatever its addresses.
type Identity struct {
	UUID       afs.UUID
	Interfaces []Interface
}

// XDR encodes or decodes i: three arrays, of which the first places are used.
func (i *Identity) XDR(x *rpc.XDR) {
	n := int32(len(i.Interfaces))
	x.Int32(&n)
	if n < 0 || n > maxInterfaces {
		x.Fail("the number of interfaces", rpc.ErrLong)
		return
	}
	i.UUID.XDR(x)
	if x.Decoding() {
		i.Interfaces = nil
		if n > 0 {
			i.Interfaces = make([]Interface, n)
		}
	}
	i.column(func(f *Interface) { f.Addr.XDR(x) })
	i.column(func(f *Interface) { x.Uint32(&f.Mask) })
	i.column(func(f *Interface) { x.Int32(&f.MTU) })
}

// column encodes or decodes an array with one field of all interfaces.
func (i *Identity) column(field func(*Interface)) {
	for n := range maxInterfaces {
		if n < len(i.Interfaces) {
			field(&i.Interfaces[n])
			continue
		}
		var none Interface
		field(&none)
	}
}

// About is who a client is, and what it can.
type About struct {
	Identity
	Capabilities afs.Capabilities
}

// XDR encodes or decodes a.
func (a *About) XDR(x *rpc.XDR) {
	a.Identity.XDR(x)
	a.Capabilities.XDR(x)
}

// String is a name.
type String string

// XDR encodes or decodes s.
func (s *String) XDR(x *rpc.XDR) { x.String((*string)(s), maxName) }

// Preference is the rank of a server among those of a volume: a low one is preferred.
type Preference struct {
	Server afs.Addr
	Rank   int32
}

// XDR encodes or decodes p.
func (p *Preference) XDR(x *rpc.XDR) {
	p.Server.XDR(x)
	x.Int32(&p.Rank)
}

// Cell is a cell that a client knows, and its database servers.
type Cell struct {
	Name  string
	Hosts []afs.Addr
}

// XDR encodes or decodes c.
func (c *Cell) XDR(x *rpc.XDR) {
	x.String(&c.Name, maxName)
	rpc.Uint32s(x, &c.Hosts, maxHosts)
}

// CacheConfig are the sizes of a client's cache.
type CacheConfig struct {
	Version uint32
	Count   uint32
	Words   []uint32
}

// XDR encodes or decodes c.
func (c *CacheConfig) XDR(x *rpc.XDR) {
	x.Uint32(&c.Version)
	x.Uint32(&c.Count)
	rpc.Uint32s(x, &c.Words, maxConfig)
}
