package rdp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// Resolve returns the addresses of HOST:PORT, of which the port is one of UDP, in the order in which they are to be tried. Without a host,
// the result is one address that has a port only.
func Resolve(ctx context.Context, address string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("rdp: the address is to be HOST:PORT: %w", err)
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, err
	}
	if host == "" {
		return []netip.AddrPort{netip.AddrPortFrom(netip.Addr{}, uint16(port))}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	all := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		all[i] = netip.AddrPortFrom(a.Unmap(), uint16(port))
	}
	return all, nil
}
