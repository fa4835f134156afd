package rnic_test

import (
	"context"
	"net"

	"urnic/internal/test/simnet"
	"urnic/rnic"
	"urnic/rnic/rnictest"
)

// A wrapping listener changes the byte streams that it accepts.
type wrapping struct {
	net.Listener
	wrap func(c *simnet.Conn) net.Conn
}

func (l *wrapping) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(c.(*simnet.Conn)), nil
}

// listenWrapped makes a side listen for byte streams that wrap changes.
func (w *world) listenWrapped(s *rnictest.Side, wrap func(c *simnet.Conn) net.Conn) *rnic.Listener {
	w.Helper()
	n, err := w.Listen(context.Background(), ":0")
	if err != nil {
		w.Fatal(err)
	}
	l, err := s.Device.ListenOn(&wrapping{n, wrap})
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// A named connection has addresses that a test chooses.
type named struct {
	*simnet.Conn
	local, remote net.Addr
}

func (c *named) LocalAddr() net.Addr { return c.local }

func (c *named) RemoteAddr() net.Addr { return c.remote }
