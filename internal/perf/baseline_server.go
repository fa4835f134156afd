package perf

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// A rawServer is the server's side of a round over bare TCP.
type rawServer struct {
	round    *rawRound
	listener net.Listener
	done     chan struct{}
	octets   atomic.Uint64
	accepted atomic.Uint64
	expected atomic.Uint64 // connections, once that is known
	err      error
}

// listenRaw begins a round, at the address of host.
func listenRaw(ctx context.Context, host string, r *rawRound) (*rawServer, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s := &rawServer{round: r, listener: l, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		defer close(s.done)
		defer stop()
		if r.Kind == rawConnect {
			s.err = together(ctx, r.Conns, s.acceptAll)
		} else {
			s.err = s.serve(ctx)
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.err = errors.Join(s.err, err)
		}
	}()
	return s, nil
}

func (s *rawServer) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// stop returns what has become of the round. expected is how many connections
// the client has made.
func (s *rawServer) stop(expected uint64) (*result, error) {
	if s.round.Kind == rawConnect {
		s.expected.Store(expected)
		if s.accepted.Load() >= expected {
			_ = s.listener.Close() // the other error counts
		}
	}
	<-s.done
	return &result{Messages: s.accepted.Load(), Octets: s.octets.Load()}, s.err
}

// acceptAll is one of the plain loops that connections are compared with. They
// end when the listener is closed.
func (s *rawServer) acceptAll(ctx context.Context, _ int) error {
	stop := context.AfterFunc(ctx, func() { _ = s.listener.Close() }) // when another one fails
	defer stop()
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			return err
		}
		if n := s.accepted.Add(1); n == s.expected.Load() {
			_ = s.listener.Close() // all have come
		}
	}
}

// serve takes the connections of a round and does its part on each.
func (s *rawServer) serve(ctx context.Context) error {
	errs := make([]error, s.round.Conns)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // closes those that are there, if others fail
	for i := range s.round.Conns {
		conn, err := s.listener.Accept()
		if err != nil {
			return err
		}
		c, err := newRawConn(conn, s.round, false)
		if err != nil {
			return err
		}
		wg.Go(func() {
			stop := context.AfterFunc(ctx, func() { _ = c.Close() })
			defer stop()
			errs[i] = s.serveConn(ctx, c)
			_ = c.Close() // the stream has ended
		})
	}
	wg.Wait()
	return first(errs)
}

func (s *rawServer) serveConn(ctx context.Context, c *rawConn) error {
	if s.round.Kind == rawPingPong {
		return c.answer(ctx)
	}
	err := c.warm(false)
	if err == nil {
		err = c.begin(false)
	}
	if err != nil {
		return err
	}
	_, received, err := c.stream(false)
	s.octets.Add(received)
	return err
}
