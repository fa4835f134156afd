//go:build !linux

package udp

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// A Socket is a UDP socket.
type Socket struct {
	conn  *net.UDPConn
	join  bool // never: a message is a datagram
	local netip.AddrPort
	six   bool
}

var inboxes = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// Open opens a socket. The network is udp, udp4 or udp6; buffer is how many bytes of datagrams the system is asked to
// keep in each direction.
func Open(ctx context.Context, network, address string, buffer int) (*Socket, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: pc.(*net.UDPConn)}
	s.local = s.conn.LocalAddr().(*net.UDPAddr).AddrPort()
	s.six = network == "udp" || network == "udp6"
	s.conn.SetReadBuffer(buffer)  //nolint:errcheck // the system grants what it wants
	s.conn.SetWriteBuffer(buffer) //nolint:errcheck // the same
	return s, nil
}

// Received returns how many bytes the socket's buffer has for datagrams: what systems grant.
func (*Socket) Received() int { return 200 << 10 }

// Close has Receive and Send return net.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }

// Receive waits for a datagram and calls each with it. It can't do without waiting.
func (s *Socket) Receive(_ time.Duration, wait bool, each func(Datagram), _ func(netip.AddrPort, []byte)) (got, late bool, err error) {
	if !wait {
		return false, true, nil
	}
	b := inboxes.Get().(*[64 << 10]byte)
	defer inboxes.Put(b)
	n, from, err := s.conn.ReadFromUDPAddrPort(b[:])
	if err != nil {
		return false, true, err
	}
	each(Datagram{netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), b[:n]})
	return true, true, nil
}

// Send sends all of an Outbox. What the system refuses is dropped, as the network might.
func (s *Socket) Send(o *Outbox) error {
	for _, m := range o.messages {
		to := m.to
		if s.six && to.Addr().Is4() {
			to = netip.AddrPortFrom(netip.AddrFrom16(to.Addr().As16()), to.Port())
		}
		s.conn.WriteToUDPAddrPort(o.arena[m.off:m.off+m.n], to) //nolint:errcheck // see above
	}
	return nil
}
