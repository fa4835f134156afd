package rdp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"urnic/internal/host/udp"
)

// DefaultPort is the UDP port at which an endpoint listens that is given none. It is not registered.
const DefaultPort = 10908

// udpLargest is the largest segment in a datagram of UDP over IPv4.
const udpLargest = 65507

// udpBuffer is how many bytes the kernel is asked to keep for each direction.
const udpBuffer = 4 << 20

// udpCarrier is RDP over UDP: one segment is one datagram.
type udpCarrier struct {
	sock    *udp.Socket
	batches sync.Pool
}

// UDP opens a UDP socket as a carrier. An address that is not valid, as that of the zero AddrPort, means all addresses of
// this machine; a port of 0 has the system choose one.
func UDP(ctx context.Context, addr netip.AddrPort) (Carrier, error) {
	s, err := udp.Open(ctx, udp.Network(addr.Addr()), udp.Address(addr), udpBuffer)
	if err != nil {
		return nil, fmt.Errorf("rdp: the UDP socket can't be opened: %w", err)
	}
	c := &udpCarrier{sock: s}
	c.batches.New = func() any { return &udpBatch{c: c} }
	return c, nil
}

func (c *udpCarrier) LocalAddr() netip.AddrPort {
	a := c.sock.Local()
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func (c *udpCarrier) MaxSegment() int { return udpLargest + ipHeader }

// local is nothing: a socket has one address, or the checksum does not cover it.
func (c *udpCarrier) local() netip.Addr { return netip.Addr{} }

var (
	errNoIPv6   = errors.New("rdp: the endpoint has an address of IPv4, and can't reach one of IPv6: open it at one of IPv6")
	errOnlyIPv6 = errors.New("rdp: the endpoint has an address of IPv6, and can't reach one of IPv4: open it at one of IPv4")
)

func (c *udpCarrier) buffer() int { return c.sock.Received() }

func (*udpCarrier) mtu(host netip.AddrPort) int { return pathMTU(host) }

func (*udpCarrier) headers(host netip.AddrPort) int { return ipHeaderOf(host.Addr()) + 8 }

func (c *udpCarrier) path(host netip.AddrPort) (netip.AddrPort, error) {
	a := host.Addr().Unmap()
	switch {
	case !c.sock.IPv6() && a.Is6():
		return host, errNoIPv6
	case c.sock.IPv6() && a.Is4() && !c.sock.Local().Addr().IsUnspecified():
		return host, errOnlyIPv6
	}
	port := host.Port()
	if port == 0 {
		port = DefaultPort
	}
	return netip.AddrPortFrom(a, port), nil
}

func (c *udpCarrier) receive(each func(netip.AddrPort, []byte), unreachable func(netip.AddrPort, []byte)) error {
	_, _, err := c.sock.Receive(0, true, func(d udp.Datagram) { each(d.From, d.Data) }, unreachable)
	return err
}

func (c *udpCarrier) close() error { return c.sock.Close() }

func (c *udpCarrier) newBatch() batch { return c.batches.Get().(*udpBatch) }

func (c *udpCarrier) freeBatch(b batch) { c.batches.Put(b) }

// A udpBatch is datagrams.
type udpBatch struct {
	c   *udpCarrier
	out udp.Outbox
}

func (b *udpBatch) room(n int) []byte { return b.out.Room(n) }

func (b *udpBatch) add(n int, to netip.AddrPort) { b.out.Add(n, to, b.c.sock.Joins()) }

func (b *udpBatch) empty() bool { return b.out.Len() == 0 }

func (b *udpBatch) send() error {
	err := b.c.sock.Send(&b.out)
	b.out.Reset()
	return err
}
