package udp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	batch     = 16 // messages for each system call
	inboxSize = 64 << 10
	oobSize   = 64 // bytes of control messages
)

// A Socket is a UDP socket whose system calls carry many datagrams. The runtime's poller
// does not know it, as it would wake a thread for each datagram, though a goroutine that spins
// takes it. It knows an epoll instance, which has the socket only while a goroutine waits.
type Socket struct {
	file   *os.File
	raw    syscall.RawConn
	gate   *os.File // the epoll instance
	watch  syscall.RawConn
	closed atomic.Bool
	six    bool // its addresses are those of IPv6
	join   bool // it can send several datagrams as one message
	local  netip.AddrPort

	in     *inbox
	readFn func(fd uintptr)
	waitFn func(epfd uintptr) bool
	armed  bool // gate reports what comes
	waitE  error
	readN  int
	readE  unix.Errno
	until  time.Time // when a spin ends
	events uint32    // that have come

	out     *Outbox
	sender  sender
	writeFn func(fd uintptr)
	sent    int // messages of out that have left
	tries   int // of the message that is next
	dropped int // messages that the system has refused
}

// An mmsghdr is a message for recvmmsg and sendmmsg.
type mmsghdr struct {
	unix.Msghdr
	n uint32
}

// Open opens a socket. The network is udp, udp4 or udp6; buffer is how many bytes of datagrams the kernel is asked to
// keep in each direction, which it may not grant.
func Open(ctx context.Context, network, address string, buffer int) (*Socket, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s := &Socket{local: pc.LocalAddr().(*net.UDPAddr).AddrPort()}
	if err := errors.Join(s.adopt(pc.(*net.UDPConn)), pc.Close()); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	err = s.raw.Control(func(fd uintptr) {
		f := int(fd)
		family, _ := unix.GetsockoptInt(f, unix.SOL_SOCKET, unix.SO_DOMAIN)
		s.six = family == unix.AF_INET6
		_, noGSO := unix.GetsockoptInt(f, unix.SOL_UDP, unix.UDP_SEGMENT)
		s.join = noGSO == nil
		// What the kernel does not know of is done without, and it grants what buffers it wants.
		unix.SetsockoptInt(f, unix.SOL_UDP, unix.UDP_GRO, 1)                //nolint:errcheck // see above
		unix.SetsockoptInt(f, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)      //nolint:errcheck // see above
		unix.SetsockoptInt(f, unix.SOL_SOCKET, unix.SO_SNDBUF, buffer)      //nolint:errcheck // see above
		unix.SetsockoptInt(f, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) //nolint:errcheck // a privilege
		unix.SetsockoptInt(f, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, buffer) //nolint:errcheck // a privilege
		if s.six {
			unix.SetsockoptInt(f, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1) //nolint:errcheck // see above
		}
		unix.SetsockoptInt(f, unix.IPPROTO_IP, unix.IP_RECVERR, 1) //nolint:errcheck // see above
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.readFn, s.waitFn, s.writeFn = s.tryRead, s.wait, s.tryWrite
	return s, nil
}

// adopt takes a socket of package net away from the runtime's poller.
func (s *Socket) adopt(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	fd, failed := -1, error(nil)
	err = raw.Control(func(of uintptr) { fd, failed = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	// The runtime polls no file that blocks. All system calls say themselves that they do not.
	err = unix.SetNonblock(fd, false)
	s.file = os.NewFile(uintptr(fd), "udp")
	s.raw, failed = s.file.SyscallConn()
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	err = errors.Join(unix.SetNonblock(epfd, true), unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}))
	s.gate = os.NewFile(uintptr(epfd), "epoll")
	s.watch, failed = s.gate.SyscallConn()
	return errors.Join(err, failed)
}

// Received returns how many bytes the socket's buffer has for datagrams.
func (s *Socket) Received() int {
	n := 0
	s.raw.Control(func(fd uintptr) { //nolint:errcheck // then it is not known
		n, _ = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	})
	return n
}

// Close has Receive and Send return net.ErrClosed.
func (s *Socket) Close() error {
	s.closed.Store(true)
	var err error
	for _, f := range []*os.File{s.gate, s.file} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// control has f use the descriptor.
func (s *Socket) control(f func(fd uintptr)) error {
	return s.orClosed(s.raw.Control(f))
}

// orClosed is an error of a file, which has no public name if the file is closed.
func (s *Socket) orClosed(err error) error {
	if err != nil && s.closed.Load() {
		return net.ErrClosed
	}
	return err
}
