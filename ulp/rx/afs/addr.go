package afs

import (
	"encoding/binary"
	"net/netip"

	"urnic/ulp/rx/rpc"
)

// An Addr is an IPv4 address, 0 for none: AFS's interfaces have no others.
type Addr uint32

// AddrOf returns the protocol's address, 0 unless a is an IPv4 address.
func AddrOf(a netip.Addr) Addr {
	if a = a.Unmap(); !a.Is4() {
		return 0
	}
	p := a.As4()
	return Addr(binary.BigEndian.Uint32(p[:]))
}

// Addr returns the address.
func (a Addr) Addr() netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

// String returns the address with dots.
func (a Addr) String() string { return a.Addr().String() }

// XDR encodes or decodes a.
func (a *Addr) XDR(x *rpc.XDR) { x.Uint32((*uint32)(a)) }
