package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// A boundSocket is a socket that has a port and does not listen: TCP refuses
// connections to it. It is an os.File, so that the Go runtime's poller has it: what
// that has is closed in a child of fork.
type boundSocket struct {
	file  *os.File
	claim *os.File // or nil
}

// reserveTCP takes a port at an address. With no host that is all addresses, IPv6 and
// IPv4, or what the host has of them.
func reserveTCP(_ context.Context, address string) (Port, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	var claim *os.File
	if port != "0" { // which is another one for each
		if claim, err = claimPort(address); err != nil {
			return nil, err
		}
	}
	p, err := reserve(address, host, port)
	if err != nil {
		closeClaim(claim)
		return nil, err
	}
	p.claim = claim
	return p, nil
}

func reserve(address, host, port string) (*boundSocket, error) {
	if host != "" {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		return bindSocket(address, at, true)
	}
	p, err := bindSocket(address, netip.MustParseAddrPort("[::]:"+port), false)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		p, err = bindSocket(address, netip.MustParseAddrPort("0.0.0.0:"+port), false)
	}
	return p, err
}

func bindSocket(name string, at netip.AddrPort, v6only bool) (*boundSocket, error) {
	family := unix.AF_INET
	if at.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("a socket for %s: %w", name, err)
	}
	if err = bindAlone(fd, at, v6only); err != nil {
		_ = unix.Close(fd) // err says why
		return nil, fmt.Errorf("bind to %s: %w", name, err)
	}
	return &boundSocket{file: os.NewFile(uintptr(fd), "rendezvous port")}, nil
}

// claimPort returns a socket that only one process of a network can have for an address. A port that does not listen is
// no such thing: before it listens it must allow other sockets to be bound, and one of them could listen first.
// Where there are no such sockets, it returns nil: then only that moment is dangerous.
func claimPort(address string) (*os.File, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil //nolint:nilerr // see above
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@urnic rendezvous " + address})
	if err == nil {
		return os.NewFile(uintptr(fd), "claim of a rendezvous port"), nil
	}
	_ = unix.Close(fd) // err says why
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("another process has taken %s: %w", address, err)
	}
	return nil, nil
}

// bindAlone binds a socket so that no other one can have the port.
func bindAlone(fd int, at netip.AddrPort, v6only bool) error {
	if at.Addr().Is6() {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, flag(v6only)); err != nil {
			return err
		}
	}
	to, err := sockaddr(at)
	if err != nil {
		return err
	}
	if err = unix.Bind(fd, to); !errors.Is(err, unix.EADDRINUSE) {
		return err
	}
	// Perhaps only connections of a process that has ended are in the way. Several
	// sockets can be bound to a port with SO_REUSEADDR, but one alone can listen:
	// listening for a moment decides between processes that start at the same time.
	setReuse(fd, true)
	if err := unix.Bind(fd, to); err != nil {
		return err
	}
	if err := unix.Listen(fd, 0); err != nil {
		return err
	}
	setReuse(fd, false) // from here on, nobody else can bind
	return unix.Shutdown(fd, unix.SHUT_RDWR)
}

// sockaddr returns an address as the system has it.
func sockaddr(at netip.AddrPort) (unix.Sockaddr, error) {
	a := at.Addr()
	if a.Is4() {
		return &unix.SockaddrInet4{Port: int(at.Port()), Addr: a.As4()}, nil
	}
	s := &unix.SockaddrInet6{Port: int(at.Port()), Addr: a.As16()}
	if zone := a.Zone(); zone != "" {
		i, err := net.InterfaceByName(zone)
		if err != nil {
			return nil, err
		}
		s.ZoneId = uint32(i.Index)
	}
	return s, nil
}

// setReuse sets SO_REUSEADDR.
func setReuse(fd int, on bool) {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, flag(on)) // can't fail on a socket
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// Listen opens the port. Connections that it has accepted do not keep the port from
// the next process: they inherit SO_REUSEADDR.
func (s *boundSocket) Listen() (net.Listener, error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var listening error
	err = raw.Control(func(fd uintptr) {
		setReuse(int(fd), true)
		if listening = unix.Listen(int(fd), unix.SOMAXCONN); listening != nil {
			setReuse(int(fd), false)
		}
	})
	if err = errors.Join(err, listening); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l, err := net.FileListener(s.file)
	if err == nil {
		err = s.file.Close() // the listener has a descriptor of its own
		closeClaim(s.claim)  // a port that listens is nobody else's
	}
	return l, err
}

// Close gives the port back.
func (s *boundSocket) Close() error {
	closeClaim(s.claim)
	return s.file.Close()
}

func closeClaim(f *os.File) {
	if f != nil {
		_ = f.Close() // nothing was written
	}
}
