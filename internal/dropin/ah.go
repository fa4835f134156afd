//go:build linux

package dropin

import (
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"urnic/internal/dropin/datagram"
)

// An addressHandle is a struct ibv_ah's: where datagrams go.
type addressHandle struct {
	pd *protectionDomain
	route
}

// A route is the way to a host. Zones are numbers.
type route struct {
	to, from netip.Addr
	payload  int // the most that one datagram carries
}

// An ibvAH is as much of struct ibv_ah as is needed.
type ibvAH struct {
	_      [2]unsafe.Pointer
	handle uint32
}

// AHCreate makes an address handle.
func (e *Engine) AHCreate(pd Handle, attr *AHAttr) (Handle, Errno) {
	p := e.pds.get(pd)
	if p == nil || attr == nil {
		return 0, syscall.EINVAL
	}
	if why := e.noDatagrams(); why != "" {
		return 0, e.refuse(syscall.EOPNOTSUPP, "create AH: %s", why)
	}
	r, number := e.routeTo(attr.IsGlobal != 0, e.portGIDs(p.ctx.device, attr.Port), attr.SGIDIndex, attr.DGID)
	if number != ok {
		return 0, e.refuse(number, "create AH: there is no GID %d, or GID %v names no host", attr.SGIDIndex, netip.AddrFrom16(attr.DGID))
	}
	h := e.ahs.add(&addressHandle{pd: p, route: r})
	if h == 0 {
		return 0, syscall.ENOMEM
	}
	p.ahs.Add(1)
	return h, ok
}

// AHDestroy gives an address handle up. Requests that name it continue.
func (e *Engine) AHDestroy(ah Handle) Errno {
	a := e.ahs.remove(ah)
	if a == nil {
		return syscall.EINVAL
	}
	a.pd.ahs.Add(-1)
	return ok
}

// routeTo returns the way from one of a port's GIDs to a GID. If there is none, the peer is on this host.
func (e *Engine) routeTo(global bool, all []GID, index uint32, dgid [16]byte) (r route, _ Errno) {
	if !global {
		r.to = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if a := e.settings.rendezvous.address; a.IsValid() {
			r.to = a
		}
		r.from, r.payload = r.to, datagram.MaxPayload
		return r, ok
	}
	if uint64(index) >= uint64(len(all)) {
		return r, syscall.EINVAL
	}
	own := &all[index]
	r.from, r.to = netip.AddrFrom16(own.Raw).Unmap(), addressOf(dgid)
	if r.to.IsUnspecified() {
		return r, syscall.EINVAL
	}
	if needsZone(r.to) {
		r.to = r.to.WithZone(strconv.Itoa(int(own.IfIndex)))
	}
	if needsZone(r.from) || r.to.IsMulticast() && r.from.Is6() {
		r.from = r.from.WithZone(strconv.Itoa(int(own.IfIndex)))
	}
	r.payload = datagram.MaxPayload
	if !e.isLocal(r.to.WithZone("")) {
		r.payload = payloadOf(int(own.IfIndex), r.to.Is6())
	}
	return r, ok
}

// addressOf returns the address that a GID stands for. A group of IPv4 has two forms: that of all addresses of
// IPv4, and ff0e::ffff:a.b.c.d, as RoCE v1 has it.
func addressOf(gid [16]byte) netip.Addr {
	if [12]byte(gid[:12]) == [12]byte{0: 0xff, 1: 0x0e, 10: 0xff, 11: 0xff} && gid[12]>>4 == 0xe {
		return netip.AddrFrom4([4]byte(gid[12:]))
	}
	return netip.AddrFrom16(gid).Unmap()
}

func needsZone(a netip.Addr) bool {
	return a.Is6() && (a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast())
}

const (
	ipv4Len = 20
	ipv6Len = 40
	udpLen  = 8
	leastIP = 576 // bytes that any path takes
)

// payloadOf returns how much of a message fits into a packet of an interface.
func payloadOf(index int, six bool) int {
	mtu := 1500
	if i, err := net.InterfaceByIndex(index); err == nil && i.MTU >= leastIP {
		mtu = i.MTU
	}
	headers := ipv4Len + udpLen + datagram.HeaderLen
	if six {
		headers += ipv6Len - ipv4Len
	}
	return min(mtu-headers, datagram.MaxPayload)
}
