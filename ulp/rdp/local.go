package rdp

import (
	"net"
	"net/netip"
)

// maxLocals bounds how many hosts are known by the address from which this end talks to them.
const maxLocals = 1024

// localFor returns the address from which segments go to a host, for recordings: that of the carrier, or if that is none, the
// one that the system chooses. It is called with the lock held.
func (e *Endpoint) localFor(remote netip.AddrPort) netip.AddrPort {
	local := e.carrier.LocalAddr()
	if !local.Addr().IsUnspecified() || local.Port() == 0 {
		return local
	}
	if known, ok := e.locals[remote.Addr()]; ok {
		return known
	}
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(remote)) // nothing is sent
	if err == nil {
		local = netip.AddrPortFrom(c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), local.Port())
		c.Close() //nolint:errcheck // nothing was sent
	}
	if e.locals == nil || len(e.locals) >= maxLocals {
		e.locals = map[netip.Addr]netip.AddrPort{}
	}
	e.locals[remote.Addr()] = local
	return local
}
