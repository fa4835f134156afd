// Package listen listens for TCP connections at the addresses that people give.
//
// Package net takes the wildcard address of either family for both: at 0.0.0.0 it
// listens for IPv6, too. Here an address of one family means that family, so that a
// server that is told to listen at 0.0.0.0 can't be reached by IPv6.
package listen

import (
	"context"
	"net"
	"net/netip"
)

// TCP listens at an address, HOST:PORT. HOST may be an address, a name, or nothing, which
// stands for all addresses of both families; 0.0.0.0 stands for all of IPv4, [::] for all
// of IPv6. The error is that of package net.
func TCP(ctx context.Context, address string) (net.Listener, error) {
	var c net.ListenConfig
	return c.Listen(ctx, Network(address), address)
}

// Network returns what package net has to be told to listen at an address, HOST:PORT, and
// at no other: tcp4 or tcp6 if HOST is an address of that family, else tcp.
func Network(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return "tcp" // package net says what is wrong
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return "tcp"
	case ip.Unmap().Is4():
		return "tcp4"
	}
	return "tcp6"
}
