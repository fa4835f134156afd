package perf

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"urnic/internal/host/plural"
	"urnic/rnic"
)

// Limits of a server where its configuration leaves them open.
const (
	DefaultMaxMemory   = 2 << 30 // bytes, of all sessions
	DefaultMaxSessions = 16
)

// A Server is what a client measures against. It serves several at once.
type Server struct {
	Device      *rnic.Device
	MaxMemory   uint64            // bytes of memory that sessions may take; 0: DefaultMaxMemory
	MaxSessions int               // sessions at once; 0: DefaultMaxSessions
	Log         func(line string) // is notified of sessions, if not nil

	mu       sync.Mutex
	sessions map[[tokenLen]byte]*session
	memory   uint64 // that sessions have
}

// Serve accepts clients until the context ends, and returns when all sessions
// are over: nil then, or the error of the listener.
func (s *Server) Serve(ctx context.Context, l *rnic.Listener) error {
	s.sessions = map[[tokenLen]byte]*session{}
	def(&s.MaxMemory, DefaultMaxMemory)
	def(&s.MaxSessions, DefaultMaxSessions)
	sessions, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(errEnding)
	for {
		r, err := l.Accept(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		g, err := parseGreeting(r.PrivateData())
		switch {
		case err != nil:
			s.reject(ctx, r, err)
		case g.control:
			wg.Go(func() { s.serve(sessions, r) })
		default:
			s.pass(ctx, r, g)
		}
	}
}

var errEnding = errors.New("the server is ending")

func (s *Server) log(format string, args ...any) {
	if s.Log != nil {
		s.Log(fmt.Sprintf(format, args...))
	}
}

func (s *Server) reject(ctx context.Context, r *rnic.ConnRequest, why error) {
	s.log("client %v is rejected: %v", r.RemoteAddr(), why)
	if err := r.Reject(ctx, []byte(clip(why.Error()))); err != nil && ctx.Err() == nil {
		s.log("client %v: %v", r.RemoteAddr(), err)
	}
}

// pass hands a connection for data to its session.
func (s *Server) pass(ctx context.Context, r *rnic.ConnRequest, g greeting) {
	s.mu.Lock()
	session := s.sessions[g.token]
	s.mu.Unlock()
	if session == nil {
		s.reject(ctx, r, errors.New("there is no such session, or it is over: start the client anew"))
		return
	}
	select {
	case session.incoming <- connection{r, int(g.index)}:
	default:
		s.reject(ctx, r, errors.New("too many connections come at once: make them one after another"))
	}
}

// serve serves one client.
func (s *Server) serve(ctx context.Context, r *rnic.ConnRequest) {
	session, err := s.add(r)
	if err != nil {
		s.reject(ctx, r, err)
		return
	}
	defer s.remove(session)
	if err := session.serve(ctx, r); err != nil {
		s.log("client %v: %v", r.RemoteAddr(), err)
		return
	}
	s.log("client %v has finished", r.RemoteAddr())
}

// add enters a new session.
func (s *Server) add(r *rnic.ConnRequest) (*session, error) {
	n := &session{server: s, incoming: make(chan connection, MaxConnecting), host: hostOf(r.LocalAddr())}
	_, _ = rand.Read(n.token[:]) // it never fails
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) >= s.MaxSessions {
		return nil, fmt.Errorf("the server has %d clients already, which is the most that it takes: wait for one to finish", len(s.sessions))
	}
	s.sessions[n.token] = n
	return n, nil
}

// remove drops a session, with what came for it too late.
func (s *Server) remove(n *session) {
	s.mu.Lock()
	delete(s.sessions, n.token)
	s.mu.Unlock()
	for {
		select {
		case c := <-n.incoming:
			_ = c.Close() // nobody waits for it
		default:
			return
		}
	}
}

// reserve takes memory for a session, which release gives back.
func (s *Server) reserve(n uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.MaxMemory-s.memory {
		return fmt.Errorf("the client asks for %s of memory, and the server has %d left of %d: ask for less, or start it with more --max-memory", plural.Count(n, "byte"), s.MaxMemory-s.memory, s.MaxMemory)
	}
	s.memory += n
	return nil
}

func (s *Server) release(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory -= n
}
