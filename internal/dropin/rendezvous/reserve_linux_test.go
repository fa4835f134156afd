package rendezvous

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
)

// A port that is taken is closed, and nobody else's, even if connections of a process
// that has ended were in the way.
func TestReservedPortIsClosedAndNobodyElses(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1", ""} {
		p, err := reserveTCP(t.Context(), net.JoinHostPort(host, "0"))
		if err != nil {
			t.Fatal(err)
		}
		l, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		to := host
		if to == "" {
			to = "127.0.0.1"
		}
		to = net.JoinHostPort(to, port)
		leaveTimeWait(t, l, to)
		address := net.JoinHostPort(host, port)
		if p, err = reserveTCP(t.Context(), address); err != nil {
			t.Fatalf("where a connection has just ended: %v", err)
		}
		for what, take := range map[string]func() (io.Closer, error){
			"another one takes it": func() (io.Closer, error) { return reserveTCP(t.Context(), address) },
			"a server listens":     func() (io.Closer, error) { return net.Listen("tcp", to) },
		} {
			if c, err := take(); !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("%s: %v; want EADDRINUSE", what, err)
				if err == nil {
					_ = c.Close()
				}
			}
		}
		if c, err := net.Dial("tcp", to); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("a call to a closed port: %v; want ECONNREFUSED", err)
			if err == nil {
				_ = c.Close()
			}
		}
		if l, err = p.Listen(); err != nil {
			t.Fatal(err)
		}
		leaveTimeWait(t, l, to)
	}
	if p, err := reserveTCP(t.Context(), "192.0.2.1:0"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("at an address of another host: %v, %v", p, err)
	}
}

// leaveTimeWait connects to a listener, and ends both so that the port is kept by the
// connection.
func leaveTimeWait(t *testing.T, l net.Listener, at string) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}
