package perf

import (
	"context"
	"net"
	"sync"

	"urnic/internal/host/listen"
)

// Segments is the network of the operating system, as an rnic.Network, that can
// tell how large the segments of its last connection are.
type Segments struct {
	mu   sync.Mutex
	last *net.TCPConn
}

// Dial opens a TCP connection.
func (s *Segments) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if t, is := c.(*net.TCPConn); is {
		s.mu.Lock()
		s.last = t
		s.mu.Unlock()
	}
	return c, nil
}

// Listen listens for TCP connections.
func (*Segments) Listen(ctx context.Context, address string) (net.Listener, error) {
	return listen.TCP(ctx, address)
}

// size returns the bytes of a segment, or 0 if nothing tells. It grows while
// TCP finds out about the path.
func (s *Segments) size() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return 0
	}
	return segmentSize(s.last)
}
