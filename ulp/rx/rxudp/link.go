package rxudp

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	headers     = 56 // bytes of IPv6, UDP and 8 more, which Rx's peers leave free
	plainMTU    = 1500
	largestRx   = 16384            // the largest packet that peers take
	linksFresh  = 30 * time.Second // for which what is known of the interfaces is taken for true
	leastPacket = 520
)

// links knows the interfaces of the machine.
type links struct {
	most int // bytes of a datagram that are not exceeded; 0: no limit

	mu     sync.Mutex
	at     time.Time
	nets   []linkNet
	lookUp func() []linkNet
	now    func() time.Time
}

// A linkNet is an interface's network.
type linkNet struct {
	prefix netip.Prefix
	addr   netip.Addr // of this machine
	mtu    int
	loop   bool
}

func newLinks(most int) *links { return &links{most: most, lookUp: interfaces, now: time.Now} }

// datagram is the largest datagram that fits the link to a peer.
func (l *links) datagram(peer netip.AddrPort) int {
	mtu := plainMTU
	if n, ok := l.toward(peer.Addr()); ok {
		mtu = n.mtu
	}
	size := min(mtu-headers, largestRx)
	if l.most > 0 {
		size = min(size, l.most)
	}
	return max(size, leastPacket)
}

// source is the address that this machine has for a peer, if that is known.
func (l *links) source(peer netip.Addr) netip.Addr {
	if n, ok := l.toward(peer); ok {
		if n.loop && !n.prefix.Contains(peer) {
			return peer // an address of this machine: it talks to itself
		}
		return n.addr
	}
	return netip.Addr{}
}

// toward returns the network over which an address is reached, if it is one of this
// machine's.
func (l *links) toward(a netip.Addr) (linkNet, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); l.nets == nil || now.Sub(l.at) > linksFresh {
		l.nets, l.at = l.lookUp(), now
	}
	var best linkNet
	found := false
	var loop linkNet
	for _, n := range l.nets {
		if n.loop {
			loop = n
		}
	}
	for _, n := range l.nets {
		if n.addr == a && !n.loop && loop.mtu != 0 {
			return loop, true // traffic to an address of this machine stays within it
		}
		if n.prefix.Contains(a) && (!found || n.prefix.Bits() > best.prefix.Bits()) {
			best, found = n, true
		}
	}
	return best, found
}

// interfaces lists the networks of the interfaces that are up.
func interfaces() []linkNet {
	nets := []linkNet{}
	all, err := net.Interfaces()
	if err != nil {
		return nets
	}
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits())
			nets = append(nets, linkNet{prefix: p.Masked(), addr: p.Addr(), mtu: i.MTU, loop: i.Flags&net.FlagLoopback != 0})
		}
	}
	return nets
}
