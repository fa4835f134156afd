//go:build linux

package dropin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How an id wants its sockets.
type socketOptions struct {
	reuse  bool // RDMA_OPTION_ID_REUSEADDR
	v6only bool // RDMA_OPTION_ID_AFONLY
	tos    int  // RDMA_OPTION_ID_TOS, or -1

	datagram bool // of UDP, for RDMA_PS_UDP
}

// bindSocket returns a socket that has the endpoint, and that: with a port, if it
// left that open. As with rdma_cm, connections that have just ended don't keep a
// port, but any socket that holds it does, whether it listens or not.
//
// The socket is an os.File, so that the Go runtime's poller has it: what that has is
// closed in a child of fork (cmd/liburnic/shim/forked.c).
func bindSocket(a endpoint, o socketOptions) (f *os.File, got endpoint, err error) {
	kind := unix.SOCK_STREAM
	if o.datagram {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(a.family(), kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, endpoint{}, fmt.Errorf("a socket: %w", err)
	}
	f = os.NewFile(uintptr(fd), "socket")
	if err = bindTo(fd, a, o); err == nil {
		var s unix.Sockaddr
		if s, err = unix.Getsockname(fd); err == nil {
			return f, endpointOf(s), nil
		}
	}
	_ = f.Close() // err says why
	return nil, endpoint{}, fmt.Errorf("bind to %v: %w", a, err)
}

// withFD calls f with a socket's descriptor.
func withFD(s *os.File, f func(fd int) error) error {
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = f(int(fd)) }); err != nil {
		return err
	}
	return result
}

func bindTo(fd int, a endpoint, o socketOptions) error {
	if o.v6only && a.ip.Is6() {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return err
		}
	}
	setTOS(fd, a, o.tos)
	if o.reuse {
		setReuse(fd, true)
		return unix.Bind(fd, a.sockaddr())
	}
	err := unix.Bind(fd, a.sockaddr())
	if errors.Is(err, unix.EADDRINUSE) && a.port != 0 && !o.datagram {
		// Those that are in the way may all be connections that have ended, or
		// whose listener has. All other sockets of ids are without SO_REUSEADDR
		// until they listen, so that this takes no port away.
		setReuse(fd, true)
		err = unix.Bind(fd, a.sockaddr())
		setReuse(fd, false)
	}
	return err
}

// setReuse sets SO_REUSEADDR.
func setReuse(fd int, on bool) {
	v := 0
	if on {
		v = 1
	}
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, v) // can't fail on a socket
}

// setTOS sets the type of service, unless that is below 0. On a socket of IPv6
// that goes for both families.
func setTOS(fd int, a endpoint, tos int) {
	if tos < 0 {
		return
	}
	if a.ip.Is6() {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos) // a hint
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, tos)
}

// listenOn makes a bound socket listen, and takes it over if it succeeds.
func listenOn(f *os.File, backlog int) (net.Listener, error) {
	err := withFD(f, func(fd int) error {
		setReuse(fd, true) // what it accepts then leaves the port to the next listener
		err := unix.Listen(fd, backlog)
		if err != nil {
			setReuse(fd, false)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	defer func() { _ = f.Close() }() // FileListener has one of its own
	return net.FileListener(f)
}

// connectSocket connects a bound socket, which it takes over, whatever comes, and
// gives up after a time. It returns the context's error, or one that wraps an Errno.
func connectSocket(ctx context.Context, f *os.File, to endpoint, patience time.Duration) (net.Conn, error) {
	defer func() { _ = f.Close() }() // FileConn has one of its own
	err := withFD(f, func(fd int) error {
		setReuse(fd, true)
		return unix.Connect(fd, to.sockaddr())
	})
	if err != nil && !errors.Is(err, unix.EINPROGRESS) && !errors.Is(err, unix.EINTR) {
		return nil, fmt.Errorf("connect to %v: %w", to, err)
	}
	if err := f.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := connected(f); err != nil {
		switch {
		case ctx.Err() != nil:
			err = context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = syscall.ETIMEDOUT
		}
		return nil, fmt.Errorf("connect to %v: %w", to, err)
	}
	return net.FileConn(f)
}

// connected waits for the end of a connect.
func connected(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = raw.Write(func(fd uintptr) bool {
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || n != 0 {
			if result = err; err == nil {
				result = syscall.Errno(n)
			}
			return true
		}
		_, err := unix.Getpeername(int(fd))
		return err == nil // else it was woken too early
	})
	if err != nil {
		return err
	}
	return result
}

// sourceFor returns the address from which the host reaches another one. It asks
// the routing tables, and sends nothing. from is the source that is wanted, if it
// is not any.
func sourceFor(from, to endpoint) (endpoint, error) {
	fd, err := unix.Socket(to.family(), unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return endpoint{}, err
	}
	defer func() { _ = unix.Close(fd) }() // it has told what it can
	if from.ip.IsValid() && !from.isAny() {
		from.port = 0
		if err := unix.Bind(fd, from.sockaddr()); err != nil {
			return endpoint{}, err
		}
	}
	const discard = 9 // any port will do
	to.port = discard
	if err := unix.Connect(fd, to.sockaddr()); err != nil {
		return endpoint{}, err
	}
	s, err := unix.Getsockname(fd)
	if err != nil {
		return endpoint{}, err
	}
	a := endpointOf(s)
	a.port = 0
	return a, nil
}
