package rendezvous

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// dialTCP dials with TCP, from an address of this host if it is valid, so that the
// peer sees the one that it was told. A host with several may have no way from that
// one; any will do then.
func dialTCP(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error) {
	var d net.Dialer
	if from.IsValid() && from.Is4() == to.Addr().Is4() && (!from.IsLoopback() || to.Addr().IsLoopback()) {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
		d.Control = bindLate
		c, err := d.DialContext(ctx, "tcp", to.String())
		if !noWay(err) {
			return c, err
		}
		d = net.Dialer{}
	}
	return d.DialContext(ctx, "tcp", to.String())
}

// noWay reports whether an address can't be dialled from.
func noWay(err error) bool {
	var number syscall.Errno
	return errors.As(err, &number) && (number == syscall.EADDRNOTAVAIL || number == syscall.EINVAL || number == syscall.ENETUNREACH || number == syscall.EHOSTUNREACH)
}
