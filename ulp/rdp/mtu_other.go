//go:build !linux

package rdp

import "net/netip"

// pathMTU returns how large a packet to a host may be: what Ethernet takes, but on this machine.
func pathMTU(remote netip.AddrPort) int {
	if remote.Addr().IsLoopback() {
		return 0
	}
	return 1500
}
