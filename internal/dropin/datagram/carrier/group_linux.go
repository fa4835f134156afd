package carrier

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"urnic/internal/dropin/datagram"
)

// groups are the multicast groups of a port. They have a UDP port of their own, the one before that
// of slot 1, which all processes share: the system gives each of them a copy.
type groups struct {
	mu      sync.Mutex
	members map[netip.Addr][]QueuePair
	sockets [2]*socket // of IPv4 and IPv6, or nil
	list    atomic.Pointer[[]*socket]
}

// ErrNoGroupPort says that there is no UDP port for multicast.
var ErrNoGroupPort = errors.New("multicast has the UDP port before the first one, and there is none before 1")

// GroupPort returns the UDP port of multicast groups.
func (c *Config) GroupPort() (uint16, bool) { return uint16(c.FirstPort - 1), c.FirstPort > 1 }

func (g *groups) opened() []*socket {
	if l := g.list.Load(); l != nil {
		return *l
	}
	return nil
}

func (g *groups) close() (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.opened() {
		err = errors.Join(err, s.close())
	}
	return err
}

// Attach has a queue pair take what comes for a group.
func (p *Port) Attach(qp QueuePair, group netip.Addr) error {
	g := &p.groups
	g.mu.Lock()
	defer g.mu.Unlock()
	members := g.members[group]
	if slices.Contains(members, qp) {
		return nil
	}
	if p.ctx.Err() != nil {
		return net.ErrClosed
	}
	if len(members) == 0 {
		s, err := p.groupSocket(group.Is6())
		if err != nil {
			return err
		}
		if err := s.join(group, true); err != nil {
			return fmt.Errorf("join %v: %w", group, err)
		}
	}
	if g.members == nil {
		g.members = make(map[netip.Addr][]QueuePair)
	}
	g.members[group] = append(slices.Clip(members), qp)
	return nil
}

// Detach undoes Attach, and reports whether there was something to undo.
func (p *Port) Detach(qp QueuePair, group netip.Addr) bool {
	g := &p.groups
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.detach(qp, group)
}

// DetachAll detaches a queue pair from all groups.
func (p *Port) DetachAll(qp QueuePair) {
	g := &p.groups
	g.mu.Lock()
	defer g.mu.Unlock()
	for group := range g.members {
		p.detach(qp, group)
	}
}

func (p *Port) detach(qp QueuePair, group netip.Addr) bool {
	g := &p.groups
	at := slices.Index(g.members[group], qp)
	if at < 0 {
		return false
	}
	left := slices.Delete(slices.Clone(g.members[group]), at, at+1) // who delivers may have the old one
	if g.members[group] = left; len(left) == 0 {
		delete(g.members, group)
		if s := g.sockets[family(group.Is6())]; s != nil {
			_ = s.join(group, false) // or an interface has gone, and the membership with it
		}
	}
	return true
}

func family(six bool) int {
	if six {
		return 1
	}
	return 0
}

// groupSocket returns the socket for groups of IPv4 or IPv6. The caller holds the groups' mu.
func (p *Port) groupSocket(six bool) (*socket, error) {
	g := &p.groups
	if s := g.sockets[family(six)]; s != nil {
		return s, nil
	}
	port, some := p.cfg.GroupPort()
	if !some {
		return nil, ErrNoGroupPort
	}
	at := netip.IPv4Unspecified()
	if six {
		at = netip.IPv6Unspecified()
	}
	s, err := bindSocket(netip.AddrPortFrom(at, port), true, true)
	if err != nil {
		return nil, err
	}
	g.sockets[family(six)] = s
	list := append(slices.Clone(g.opened()), s)
	g.list.Store(&list)
	p.wg.Go(func() { p.serve(s) })
	return s, nil
}

// join joins or leaves a group at all interfaces that are up, and fails if it can at none.
func (s *socket) join(group netip.Addr, on bool) error {
	all, err := net.Interfaces()
	if err != nil {
		return err
	}
	joined := 0
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		var refused error
		failed := s.raw.Control(func(fd uintptr) { refused = s.member(int(fd), group, i.Index, on) })
		if failed = errors.Join(failed, refused); failed == nil || errors.Is(failed, unix.EADDRINUSE) {
			joined++
		} else {
			err = failed
		}
	}
	if joined > 0 {
		return nil
	}
	return errors.Join(err, unix.ENODEV)
}

func (s *socket) member(fd int, group netip.Addr, index int, on bool) error {
	if s.six {
		option := unix.IPV6_LEAVE_GROUP
		if on {
			option = unix.IPV6_JOIN_GROUP
		}
		return os.NewSyscallError("setsockopt", unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, option, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)}))
	}
	option := unix.IP_DROP_MEMBERSHIP
	if on {
		option = unix.IP_ADD_MEMBERSHIP
	}
	return os.NewSyscallError("setsockopt", unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, option, &unix.IPMreqn{Multiaddr: four(group), Ifindex: int32(index)}))
}

// arriveForGroup gives a datagram to all members of its group. The caller holds receiving.
func (p *Port) arriveForGroup(a *Arrival, b []byte) {
	p.groups.mu.Lock()
	members := p.groups.members[a.To.WithZone("")]
	p.groups.mu.Unlock()
	if len(members) == 0 || a.Dest != datagram.Multicast || a.Op != datagram.Send {
		p.foreign[datagram.NoQueuePair].Add(1)
		return
	}
	taken, h := 0, a.Header
	for _, qp := range members {
		if reason := p.check(qp, &h, a.From, b); reason != datagram.Taken {
			p.foreign[reason].Add(1)
			qp.Drop(reason)
			continue
		}
		taken++
	}
	if taken == 0 {
		return
	}
	if !h.Whole(len(a.Payload)) {
		first, message, reason, evicted := p.parts.Add(a.From, &h, a.Payload, p.now())
		p.foreign[datagram.TooMany].Add(uint64(evicted))
		if reason != datagram.Taken {
			p.foreign[reason].Add(1)
		}
		if first == nil {
			return
		}
		a.Header, a.Payload = *first, message
	}
	for _, qp := range members {
		if qp.Admit(&h, a.From) == datagram.Taken {
			qp.Deliver(a)
		}
	}
}
