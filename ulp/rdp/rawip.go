package rdp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
)

// Protocol is RDP's number among IP's protocols.
const Protocol = 27

// rawCarrier is RDP over IP. Segments have no ports but their own.
type rawCarrier struct {
	conn *net.IPConn
	addr netip.Addr
	in   []byte
}

// RawIP opens a raw IP socket for protocol 27 as a carrier, at an address of this machine. It needs the privilege
// CAP_NET_RAW. Two endpoints on a machine need two addresses, as each gets all segments to its own.
func RawIP(ctx context.Context, addr netip.Addr) (Carrier, error) {
	if !addr.IsValid() || addr.IsUnspecified() {
		return nil, errors.New("rdp: a raw IP socket needs an address of this machine: give one")
	}
	network := "ip4:27"
	if addr = addr.Unmap(); addr.Is6() {
		network = "ip6:27"
	}
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, network, addr.String())
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("rdp: a raw IP socket needs the privilege CAP_NET_RAW: run as root, or use UDP: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("rdp: the raw IP socket can't be opened: %w", err)
	}
	return &rawCarrier{conn: pc.(*net.IPConn), addr: addr, in: make([]byte, largest)}, nil
}

func (c *rawCarrier) LocalAddr() netip.AddrPort { return netip.AddrPortFrom(c.addr, 0) }

// MaxSegment is what a packet of IPv4 has room for.
func (c *rawCarrier) MaxSegment() int { return largest }

func (c *rawCarrier) local() netip.Addr { return c.addr }

func (*rawCarrier) buffer() int { return 0 }

func (*rawCarrier) mtu(host netip.AddrPort) int { return pathMTU(host) }

func (*rawCarrier) headers(host netip.AddrPort) int { return ipHeaderOf(host.Addr()) }

func (c *rawCarrier) path(host netip.AddrPort) (netip.AddrPort, error) {
	a := host.Addr().Unmap()
	switch {
	case c.addr.Is4() && a.Is6():
		return host, errNoIPv6
	case c.addr.Is6() && a.Is4():
		return host, errOnlyIPv6
	}
	return netip.AddrPortFrom(a, 0), nil
}

func (c *rawCarrier) receive(each func(netip.AddrPort, []byte), _ func(netip.AddrPort, []byte)) error {
	n, from, err := c.conn.ReadFromIP(c.in)
	if err != nil {
		return err
	}
	a, ok := netip.AddrFromSlice(from.IP)
	if !ok {
		return nil
	}
	each(netip.AddrPortFrom(a.Unmap().WithZone(from.Zone), 0), c.in[:n])
	return nil
}

func (c *rawCarrier) close() error { return c.conn.Close() }

func (c *rawCarrier) newBatch() batch { return &plainBatch{one: c.send} }

func (c *rawCarrier) freeBatch(b batch) { b.(*plainBatch).free() }

func (c *rawCarrier) send(segment []byte, to netip.AddrPort) {
	//nolint:errcheck // what the system refuses is lost, as in a network
	c.conn.WriteToIP(segment, &net.IPAddr{IP: to.Addr().AsSlice(), Zone: to.Addr().Zone()})
}
