package perf

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"urnic/internal/host/listen"
)

// A rawServer is the server's side of a round in which connections over bare TCP are
// made and closed.
type rawServer struct {
	listener net.Listener
	done     chan struct{}
	accepted atomic.Uint64
	expected atomic.Uint64 // connections, once that is known
	err      error
}

// listenRaw begins a round, at the address of host.
func listenRaw(ctx context.Context, host string, r *rawSetup) (*rawServer, error) {
	l, err := listen.TCP(ctx, net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s := &rawServer{listener: l, done: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		defer close(s.done)
		defer stop()
		s.err = together(ctx, r.Conns, s.acceptAll)
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.err = errors.Join(s.err, err)
		}
	}()
	return s, nil
}

// portOf returns the port of a listener for TCP.
func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// stop returns what has become of the round. expected is how many connections
// the client has made.
func (s *rawServer) stop(expected uint64) (*result, error) {
	s.expected.Store(expected)
	if s.accepted.Load() >= expected {
		_ = s.listener.Close() // the other error counts
	}
	<-s.done
	return &result{Messages: s.accepted.Load()}, s.err
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

// A rawSet is the server's side of the connections over bare TCP that a case has.
type rawSet struct {
	setup    *rawSetup
	listener net.Listener
	release  func() // gives the memory back
	stop     func() bool
	ready    chan struct{} // closed when all connections are here, or err says why not
	err      error

	mu     sync.Mutex
	conns  []*rawConn
	closed bool
}

// openRaw listens at an address of host, and accepts the connections of a set.
func openRaw(ctx context.Context, host string, r *rawSetup) (*rawSet, error) {
	l, err := listen.TCP(ctx, net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s := &rawSet{setup: r, listener: l, ready: make(chan struct{})}
	s.stop = context.AfterFunc(ctx, s.shut)
	go func() {
		defer close(s.ready)
		defer func() { _ = l.Close() }() // no more are wanted
		for range r.Conns {
			if s.err = s.accept(); s.err != nil {
				return
			}
		}
	}()
	return s, nil
}

func (s *rawSet) accept() error {
	conn, err := s.listener.Accept()
	if err != nil {
		return err
	}
	c, err := newRawConn(conn, s.setup, false)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(errEnding, c.Close())
	}
	s.conns = append(s.conns, c)
	return nil
}

// shut closes the connections, so that nobody waits on them any more.
func (s *rawSet) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	_ = s.listener.Close() // the streams have ended, or the session has an error of its own
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// close gives the set up. No round may be in progress.
func (s *rawSet) close() {
	s.stop()
	s.shut()
	<-s.ready
	s.release()
}

// run does the server's part of a round, and returns what has arrived and what was
// sent.
func (s *rawSet) run(ctx context.Context, r *rawRound) (*result, error) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.err != nil {
		return nil, s.err
	}
	if s.setup.Kind == rawPingPong {
		n, err := s.conns[0].answer(ctx)
		return &result{Messages: n}, err
	}
	sent, received, err := streamAll(s.conns, false, r)
	return &result{Octets: received, Sent: sent}, err
}
