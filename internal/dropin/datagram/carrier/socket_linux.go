package carrier

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	batch     = 16        // datagrams for each system call
	inboxSize = 64 << 10  // of the longest that UDP has
	oobSize   = 64        // bytes of control messages
	arenaSize = 256 << 10 // bytes of datagrams that are to leave
	buffer    = 4 << 20   // what the kernel is asked to keep, and may not grant
)

// A socket is a UDP socket that tells the address to which each datagram was sent, and sends from
// any address of the host. The runtime's poller does not know it, as it would wake a thread for
// each datagram. It knows an epoll instance, which has the socket only while a goroutine waits.
type socket struct {
	file   *os.File
	raw    syscall.RawConn
	gate   *os.File // the epoll instance
	watch  syscall.RawConn
	closed atomic.Bool
	six    bool // its addresses are those of IPv6

	in     inbox
	one    incoming
	readFn func(fd uintptr)
	readN  int
	readE  unix.Errno

	out     outbox
	writeFn func(fd uintptr)
	dropped uint64 // datagrams that the system has refused

	waitFn func(epfd uintptr) bool
	armed  bool
	waitE  error
}

// An mmsghdr is a message for recvmmsg and sendmmsg.
type mmsghdr struct {
	unix.Msghdr
	n uint32
}

type messages struct {
	oob   [batch][oobSize]byte
	names [batch]unix.RawSockaddrInet6
	iov   [batch]unix.Iovec
	msgs  [batch]mmsghdr
}

type inbox struct {
	data []byte // inboxSize for each
	messages
}

// An outbox holds datagrams until flush.
type outbox struct {
	arena []byte
	used  int
	list  []leaving
	messages
}

type leaving struct {
	off, n int
	to     netip.AddrPort
	from   netip.Addr // or not valid
}

// openSocket opens the port at an address, or at all of them.
func openSocket(at netip.Addr, port uint16) (*socket, error) {
	if !at.IsValid() {
		s, err := bindSocket(netip.AddrPortFrom(netip.IPv6Unspecified(), port), false, false)
		if !errors.Is(err, unix.EAFNOSUPPORT) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return s, err
		}
		at = netip.IPv4Unspecified()
	}
	return bindSocket(netip.AddrPortFrom(at, port), true, false)
}

// bindSocket binds a socket, to a port that others may have, too, if it is shared.
func bindSocket(at netip.AddrPort, v6only, shared bool) (*socket, error) {
	s := &socket{six: at.Addr().Is6()}
	family := unix.AF_INET
	if s.six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	// The runtime polls no file that blocks. All system calls say themselves that they do not.
	s.file = os.NewFile(uintptr(fd), "udp")
	if shared {
		err = os.NewSyscallError("setsockopt SO_REUSEADDR", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	}
	if err == nil {
		err = s.configure(fd, at, v6only)
	}
	if err == nil {
		err = s.watchIt(fd)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("UDP port %v: %w", at, err), s.close())
	}
	s.in.data = make([]byte, batch*inboxSize)
	s.prepareIn(batch)
	s.out.arena = make([]byte, arenaSize)
	s.readFn, s.writeFn, s.waitFn = s.tryRead, s.tryWrite, s.tryWait
	return s, nil
}

func (s *socket) configure(fd int, at netip.AddrPort, v6only bool) error {
	var name unix.RawSockaddrInet6
	if s.six {
		only := 0
		if v6only {
			only = 1
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only); err != nil {
			return os.NewSyscallError("setsockopt IPV6_V6ONLY", err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1); err != nil {
			return os.NewSyscallError("setsockopt IPV6_RECVPKTINFO", err)
		}
	} else if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_PKTINFO, 1); err != nil {
		return os.NewSyscallError("setsockopt IP_PKTINFO", err)
	}
	for _, o := range []int{unix.SO_RCVBUF, unix.SO_SNDBUF, unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} { // the latter want a privilege
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o, buffer) // the kernel grants what it wants
	}
	_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&name)), uintptr(s.put(&name, at)))
	if errno != 0 {
		return os.NewSyscallError("bind", errno)
	}
	return nil
}

// watchIt makes the epoll instance, which the runtime polls.
func (s *socket) watchIt(fd int) error {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create", err)
	}
	err = errors.Join(unix.SetNonblock(epfd, true), unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}))
	s.gate = os.NewFile(uintptr(epfd), "epoll")
	var failed, gone error
	s.raw, failed = s.file.SyscallConn()
	s.watch, gone = s.gate.SyscallConn()
	return errors.Join(err, failed, gone)
}

// close has all calls return net.ErrClosed.
func (s *socket) close() error {
	s.closed.Store(true)
	var err error
	for _, f := range []*os.File{s.gate, s.file} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// orClosed is an error of a file, which has no public name if the file is closed.
func (s *socket) orClosed(err error) error {
	if err != nil && s.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// put fills in a socket address for the kernel, and returns its length.
func (s *socket) put(r *unix.RawSockaddrInet6, to netip.AddrPort) uint32 {
	if !s.six {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(r))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: swap(to.Port()), Addr: four(to.Addr())}
		return unix.SizeofSockaddrInet4
	}
	*r = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: swap(to.Port()), Addr: to.Addr().As16()}
	if z := to.Addr().Zone(); z != "" {
		r.Scope_id = scope(z)
	}
	return unix.SizeofSockaddrInet6
}

// four returns an IPv4 address, or 0.0.0.0 if it is none.
func four(a netip.Addr) (b [4]byte) {
	if a = a.Unmap(); a.Is4() {
		b = a.As4()
	}
	return b
}

// addrOf returns a socket address that the kernel has filled in. Zones are numbers.
func addrOf(r *unix.RawSockaddrInet6) netip.AddrPort {
	if r.Family == unix.AF_INET {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(r))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), swap(v4.Port))
	}
	a := netip.AddrFrom16(r.Addr).Unmap()
	if r.Scope_id != 0 && a.Is6() {
		a = a.WithZone(strconv.FormatUint(uint64(r.Scope_id), 10))
	}
	return netip.AddrPortFrom(a, swap(r.Port))
}

// scope returns the number of a zone.
func scope(zone string) uint32 {
	if n, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(n)
	}
	if i, err := net.InterfaceByName(zone); err == nil {
		return uint32(i.Index)
	}
	return 0
}

// swap turns a port over, to and from the order of bytes in the network.
func swap(n uint16) uint16 {
	b := (*[2]byte)(unsafe.Pointer(&n))
	return uint16(b[0])<<8 | uint16(b[1])
}

// await has the thread wait until something can be read.
func (s *socket) await(most time.Duration) {
	_ = s.raw.Control(func(fd uintptr) { // or it is closed
		ts := unix.NsecToTimespec(int64(most))
		_, _ = unix.Ppoll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, &ts, nil) // a signal ends it sooner
	})
}

// wait has the goroutine wait until something can be read.
func (s *socket) wait() error {
	s.armed, s.waitE = false, nil
	return s.orClosed(errors.Join(s.watch.Read(s.waitFn), s.waitE))
}

// tryWait reports whether there is something to read, or waitE. If there is not, the runtime's
// poller waits.
func (s *socket) tryWait(epfd uintptr) bool {
	if !s.armed {
		s.armed = true
		var failed error
		err := s.raw.Control(func(fd uintptr) {
			failed = unix.EpollCtl(int(epfd), unix.EPOLL_CTL_MOD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
		})
		s.waitE = errors.Join(err, failed)
		return s.waitE != nil
	}
	var e [1]unix.EpollEvent
	for {
		n, err := unix.EpollWait(int(epfd), e[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			s.waitE = os.NewSyscallError("epoll_wait", err)
			return true
		}
		return n > 0
	}
}
