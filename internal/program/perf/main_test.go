package perf

import (
	"context"
	"testing"

	"urnic/internal/test/leakcheck"
	"urnic/rnic"
)

func TestMain(m *testing.M) { leakcheck.Main(m) }

// open opens a device that the test closes.
func open(t *testing.T, cfg rnic.Config) *rnic.Device {
	t.Helper()
	d, err := rnic.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// serve runs a server until the test ends, and returns its address.
func serve(t *testing.T, s *Server) (address string) {
	t.Helper()
	s.Device = open(t, rnic.Config{})
	ctx, cancel := context.WithCancel(context.Background())
	l, err := s.Device.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server: %v", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.memory != 0 || len(s.sessions) != 0 {
			t.Errorf("%d bytes and %d sessions are left", s.memory, len(s.sessions))
		}
	})
	return l.Addr().String()
}

// dial opens a control connection by hand.
func dial(t *testing.T, address string) (*channel, error) {
	t.Helper()
	c, err := newChannel(open(t, rnic.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	read := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-read
		if err := c.close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.qp.Connect(ctx, address, rnic.ConnParam{PrivateData: controlHello(Version)}); err != nil {
		close(read)
		return nil, refusal(err)
	}
	go func() {
		defer close(read)
		c.read(ctx)
	}()
	return c, nil
}
