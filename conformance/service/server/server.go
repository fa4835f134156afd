package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"urnic/conformance/service"
	"urnic/rnic"
)

// Defaults of Options, and bounds that are not for choice.
const (
	DefaultMaxSessions = 64
	DefaultOctets      = 32 << 20
	DefaultIdleTimeout = 5 * time.Minute

	maxTimeout  = time.Minute      // of an operation that waits
	maxData     = 1 << 20          // bytes of one memory_read, and of one buffer of the service
	maxQPs      = 128              // queue pairs of a session, and so on
	maxObjects  = 1024             // regions, with the buffers of receives, and windows
	maxDomains  = 16               //
	maxSRQs     = 16               //
	maxListener = 16               //
	maxDepth    = 4096             // requests of one queue
	maxEntries  = 4 * maxDepth     // completions of one queue
	maxQueued   = 64 * maxDepth    // requests or completions of all queues
	maxDepths   = 64 * 128         // IRDs or ORDs of all connections
	maxHalfOpen = 64               // connections whose Request is not in
	maxBuffers  = 16 << 20         // bytes of stream buffers
	maxAccepted = 256              // results of one listener that accepted has not fetched
	writeWait   = 10 * time.Second // for a client that does not read
	lingering   = time.Second      // for a client to read the last answer
	startupWait = time.Minute      // for the start-up of a connection
)

// Options say how a server works. The zero Options are ready for use.
type Options struct {
	// Device is the template for the sessions' devices: the name, a recording,
	// hooks and what it says of MPA. Sessions share its recording, as sections of
	// one file. Its limits are the service's own. A LowerLayer, which sessions share,
	// is taken for DDP over RDP, and records by itself.
	Device rnic.Config

	MaxSessions int           // at a time; 0: DefaultMaxSessions
	Octets      uint64        // of memory a session; 0: DefaultOctets
	IdleTimeout time.Duration // how long a session may ask for nothing; 0: DefaultIdleTimeout

	// ConnectAnywhere lets sessions connect to any address. Else they connect
	// only to the host that their control connection comes from.
	ConnectAnywhere bool

	Release string // the version to be told; "" stands for that of the build
}

// A server has the sessions of one listener.
type server struct {
	Options
	record  *sharedWriter
	refused chan struct{} // a token for each connection that is about to be closed for want of one
	wg      sync.WaitGroup

	mu       sync.Mutex
	sessions int           // there are
	speaking int           // of them have said hello
	silent   []*session    // have not, oldest first
	leaving  bool          // one of the latter makes room
	changed  chan struct{} // closed and replaced when any of these changes
}

// Serve serves the sessions of those who connect, until the context ends or the
// listener fails. It closes the listener, and returns when all sessions and what
// they held are gone: nil if it was the context that ended it, and the recording,
// if there is one, could be written.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	s := &server{Options: o.withDefaults()}
	s.changed, s.refused = make(chan struct{}), make(chan struct{}, s.MaxSessions)
	if o.Device.Record != nil {
		s.record = &sharedWriter{w: o.Device.Record}
	}
	err := s.accept(ctx, l)
	s.wg.Wait()
	return errors.Join(err, s.record.failed())
}

// accept takes connections, whose sessions end when it returns.
func (s *server) accept(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer l.Close() //nolint:errcheck // the error that ended it is told
	pause := time.Millisecond
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // nobody will serve it
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // no descriptors left, perhaps: sessions that end free some
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = time.Millisecond
		c := newSession(s, conn)
		if s.enter(ctx, c) {
			s.wg.Go(func() { s.serve(ctx, c) })
		} else {
			s.wg.Go(func() { s.refuse(ctx, conn) })
		}
	}
}

func (o Options) withDefaults() Options {
	if o.MaxSessions <= 0 {
		o.MaxSessions = DefaultMaxSessions
	}
	if o.Octets == 0 {
		o.Octets = DefaultOctets
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = DefaultIdleTimeout
	}
	if o.Device.Name == "" {
		o.Device.Name = "urnic0"
	}
	if o.Device.Logger == nil {
		o.Device.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Release == "" {
		o.Release = "(devel)"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			o.Release = info.Main.Version
		}
	}
	return o
}

// serve is one control connection that has a place.
func (s *server) serve(ctx context.Context, c *session) {
	defer c.conn.Close() //nolint:errcheck // the client is gone, or has been told why
	defer s.leave(c)
	c.run(ctx)
}

// refuse is one that has none.
func (s *server) refuse(ctx context.Context, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the client is gone, or has been told why
	sendLine(conn, answerTo(0, nil, &service.Error{Code: service.CodeLimit, Message: "there are as many sessions as may be: try again when one has ended"}))
	select {
	case s.refused <- struct{}{}:
		defer func() { <-s.refused }()
		linger(ctx, conn)
	default:
	}
}

// enter takes a place for a session. If there is none, the oldest session that has not
// said hello makes room. It reports false if all have, or the context ends.
func (s *server) enter(ctx context.Context, c *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.sessions >= s.MaxSessions {
		if s.speaking >= s.MaxSessions {
			return false
		}
		if !s.leaving && len(s.silent) > 0 {
			s.leaving = true
			_ = s.silent[0].conn.Close() // which ends it
			s.silent = slices.Delete(s.silent, 0, 1)
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if ctx.Err() != nil {
			return false
		}
	}
	s.sessions++
	s.silent = append(s.silent, c)
	return true
}

// speaks notes that a session has said hello.
func (s *server) speaks(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.silent, c); i >= 0 {
		s.silent = slices.Delete(s.silent, i, i+1)
		s.speaking++
		c.counted = true
		s.change()
	}
}

// leave gives the place of a session back.
func (s *server) leave(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
	if i := slices.Index(s.silent, c); i >= 0 {
		s.silent = slices.Delete(s.silent, i, i+1)
	} else if c.counted {
		s.speaking--
	} else {
		s.leaving = false
	}
	s.change()
}

// change tells who waits. The caller holds mu.
func (s *server) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// linger ends this side's half of a connection, and waits a moment for the client
// to end the other one: closing it with something unread would reset it, and
// could destroy the last answer on its way.
func linger(ctx context.Context, conn net.Conn) {
	if w, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite() // it is closed anyway
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(lingering))
	_, _ = io.CopyN(io.Discard, conn, service.MaxLine)
}

// A sharedWriter keeps what several devices record apart: each Write is of one
// of them, and a pcapng file may have many sections. Only the first head counts,
// as all are the same.
type sharedWriter struct {
	mu   sync.Mutex
	w    io.Writer
	head []byte
	err  error // the first one
}

// Write implements io.Writer.
func (w *sharedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.head == nil:
		w.head = bytes.Clone(p)
	case bytes.Equal(p, w.head):
		return len(p), nil
	}
	n, err := w.w.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// failed returns the first error that writing has met.
func (w *sharedWriter) failed() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
