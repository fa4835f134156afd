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

// Of processes that start at the same time, one has a port, whatever the others do meanwhile; and it can listen there.
func TestPortIsOneProcesssAlone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	const processes = 4
	for range 2000 {
		start := make(chan struct{})
		results := make(chan error, processes)
		var held [processes]io.Closer
		for i := range processes {
			go func() {
				<-start
				p, err := reserveTCP(t.Context(), address)
				if err != nil {
					results <- err
					return
				}
				held[i], err = p.Listen()
				if err != nil {
					err = errors.Join(errors.New("who has the port can't listen"), p.Close())
				}
				results <- err
			}()
		}
		close(start)
		have := 0
		for range processes {
			switch err := <-results; {
			case err == nil:
				have++
			case !errors.Is(err, syscall.EADDRINUSE):
				t.Fatal(err)
			}
		}
		for _, c := range held {
			if c != nil {
				_ = c.Close()
			}
		}
		if have != 1 {
			t.Fatalf("%d processes have the port", have)
		}
	}
}
