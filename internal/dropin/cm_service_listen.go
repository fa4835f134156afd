//go:build linux

package dropin

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

// maxServices is how many requests a listener remembers, so that one that comes again is not
// offered again: the oldest is forgotten.
const maxServices = maxBacklog

// A serviceListener is the UDP port of an id of RDMA_PS_UDP that listens.
type serviceListener struct {
	conn *net.UDPConn
	six  bool
	port uint16

	record func(from, to netip.AddrPort, b []byte)

	mu    sync.Mutex
	asked map[serviceKey][]byte // the reply, or nil: the program has not answered
	order []serviceKey          // the oldest first
}

// newServiceListener listens at a copy of a socket.
func newServiceListener(socket *os.File, port uint16, record func(from, to netip.AddrPort, b []byte)) (*serviceListener, error) {
	l := &serviceListener{port: port, record: record, asked: make(map[serviceKey][]byte)}
	err := withFD(socket, func(fd int) error {
		family, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			return err
		}
		if l.six = family == unix.AF_INET6; l.six {
			return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
	})
	if err != nil {
		return nil, err
	}
	c, err := net.FilePacketConn(socket)
	if err != nil {
		return nil, err
	}
	udp, isUDP := c.(*net.UDPConn)
	if !isUDP {
		return nil, errors.Join(syscall.EPROTONOSUPPORT, c.Close())
	}
	l.conn = udp
	return l, nil
}

// serve offers each request once, until the listener is closed. One that is not taken may come again.
func (l *serviceListener) serve(offer func(r *serviceRequest, data []byte) bool) {
	var b [512]byte
	var oob [128]byte
	for {
		n, n2, _, from, err := l.conn.ReadMsgUDPAddrPort(b[:], oob[:])
		if err != nil {
			return
		}
		s, err := datagram.ParseService(b[:n])
		if err != nil || s.Kind != datagram.ServiceRequest {
			continue
		}
		r := &serviceRequest{at: l, key: serviceKey{from, s.ID}, to: pktinfo(oob[:n2])}
		l.record(from, netip.AddrPortFrom(r.to, l.port), b[:n])
		if reply, known := l.begin(r.key); known {
			if reply != nil {
				_ = l.send(r, reply) // the last one was lost, perhaps
			}
			continue
		}
		if !r.to.IsValid() || !offer(r, s.Data) {
			l.forget(r.key)
		}
	}
}

// begin notes a request, and returns the reply to it if it has come before.
func (l *serviceListener) begin(key serviceKey) (reply []byte, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reply, known = l.asked[key]; known {
		return reply, true
	}
	if len(l.order) >= maxServices {
		delete(l.asked, l.order[0])
		l.order = l.order[1:]
	}
	l.asked[key] = nil
	l.order = append(l.order, key)
	return nil, false
}

// forget undoes the last begin.
func (l *serviceListener) forget(key serviceKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.asked, key)
	l.order = l.order[:len(l.order)-1]
}

// answer sends a reply, and keeps it for a request that comes again.
func (l *serviceListener) answer(r *serviceRequest, reply []byte) error {
	l.mu.Lock()
	if _, known := l.asked[r.key]; known {
		l.asked[r.key] = reply
	}
	l.mu.Unlock()
	return l.send(r, reply)
}

// send sends a reply from the address to which the request was sent.
func (l *serviceListener) send(r *serviceRequest, reply []byte) error {
	var oob []byte
	if l.six {
		oob = unix.PktInfo6(&unix.Inet6Pktinfo{Addr: r.to.As16(), Ifindex: zoneIndex(r.to)})
	} else {
		oob = unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: r.to.Unmap().As4()})
	}
	l.record(netip.AddrPortFrom(r.to, l.port), r.key.from, reply)
	_, _, err := l.conn.WriteMsgUDPAddrPort(reply, oob, r.key.from)
	return err
}

func zoneIndex(a netip.Addr) uint32 {
	n, _ := strconv.ParseUint(a.Zone(), 10, 32) // none is 0
	return uint32(n)
}

// pktinfo returns the address of this host that a control message names, with the number of the interface as
// the zone if it is link-local.
func pktinfo(oob []byte) netip.Addr {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return netip.Addr{}
	}
	for _, m := range messages {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4((*unix.Inet4Pktinfo)(unsafe.Pointer(&m.Data[0])).Spec_dst)
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo:
			p := (*unix.Inet6Pktinfo)(unsafe.Pointer(&m.Data[0]))
			a := netip.AddrFrom16(p.Addr)
			if needsZone(a) {
				a = a.WithZone(strconv.FormatUint(uint64(p.Ifindex), 10))
			}
			return a
		}
	}
	return netip.Addr{}
}

// endpointIn returns an endpoint in the family of a socket.
func endpointIn(a netip.AddrPort, family int) endpoint {
	ip := a.Addr()
	e := endpoint{port: a.Port(), scope: interfaceIndex(ip.Zone())}
	if e.ip = ip.WithZone("").Unmap(); family == unix.AF_INET6 {
		e.ip = netip.AddrFrom16(ip.As16())
	}
	return e
}

// interfaceIndex returns the number of a zone, which may be a name.
func interfaceIndex(zone string) uint32 {
	if zone == "" {
		return 0
	}
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	return 0
}
