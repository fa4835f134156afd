package rpcrdma

import (
	"context"
	"errors"
	"sync"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
)

// A Server carries out calls of many connections, by one service.
type Server struct {
	service oncrpc.Service
	cfg     Config
	pulled  *budget // bytes of Read chunks
	blamed  blamed
	replies *budget
	idle    idleMemory
	places  *oncrpc.Places

	mu       sync.Mutex
	conns    map[*Peer]struct{}
	serving  map[*rnic.Listener]context.CancelCauseFunc
	shutdown bool
	credits  int
	wg       sync.WaitGroup // of Serve, and of connections
}

// NewServer returns a server for a service. It returns an error if the configuration
// can't be carried out.
func NewServer(s oncrpc.Service, cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	srv := &Server{service: s, cfg: cfg, credits: cfg.Credits, conns: make(map[*Peer]struct{}), serving: make(map[*rnic.Listener]context.CancelCauseFunc)}
	srv.pulled = newBudget(cfg.MaxPulledAll, cfg.MaxPulled)
	srv.replies = newBudget(cfg.MaxRepliesAll, cfg.MaxReplies)
	srv.idle.most = int64(idleShares * max(0, cfg.MaxIdle))
	srv.places = oncrpc.NewPlaces(cfg.MaxConnections, cfg.PerHost)
	return srv, nil
}

// Serve carries out the calls that come to a listener, until the context ends, whose
// error it then returns when the connections are closed, or Shutdown is called; it
// returns nil then. The listener stays open.
func Serve(ctx context.Context, l *rnic.Listener, s oncrpc.Service, cfg Config) error {
	srv, err := NewServer(s, cfg)
	if err != nil {
		return err
	}
	err = srv.Serve(ctx, l)
	return errors.Join(err, srv.Close())
}

// Serve accepts connections of a listener, and carries out their calls. It
// returns the context's error when that ends, nil after Shutdown or Close, or an error of
// the listener. Connections live on.
func (s *Server) Serve(ctx context.Context, l *rnic.Listener) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	if s.shutdown {
		s.mu.Unlock()
		return nil
	}
	s.serving[l] = cancel
	s.wg.Add(1)
	s.mu.Unlock()
	defer s.wg.Done()
	for {
		request, err := l.Accept(ctx)
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.serving, l)
			if s.shutdown {
				return nil
			}
			return err
		}
		a, err := s.admit(request)
		if err != nil {
			s.cfg.Logger.Warn("a connection is rejected", "peer", request.RemoteAddr(), "error", err)
			go func() { _ = request.Reject(ctx, nil) }()
			continue
		}
		go s.open(ctx, l.Device(), request, a)
	}
}

// admit counts a connection in that is about to be opened.
func (s *Server) admit(request *rnic.ConnRequest) (oncrpc.Admission, error) {
	a, err := s.places.Take(s.cfg.Admit, request.LocalAddr(), request.RemoteAddr())
	if err != nil {
		return a, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shutdown {
		s.places.Give(a)
		return a, ErrShutdown
	}
	s.wg.Add(1)
	return a, nil
}

// open accepts a connection, and sees to it until it is over.
func (s *Server) open(ctx context.Context, dev *rnic.Device, request *rnic.ConnRequest, a oncrpc.Admission) {
	defer s.wg.Done()
	p, err := s.accept(ctx, dev, request, a)
	if err == nil {
		defer p.e.serve.debt.leave()
		defer p.e.serve.all.leave()
	}
	s.mu.Lock()
	if err == nil {
		s.conns[p] = struct{}{}
		p.e.serve.setCredits(s.credits)
		if s.shutdown {
			p.e.fail(ErrShutdown)
		}
	}
	s.mu.Unlock()
	if err != nil {
		s.places.Give(a)
		s.cfg.Logger.Warn("a connection can't be accepted", "peer", request.RemoteAddr(), "error", err)
		return
	}
	if s.cfg.Connected != nil {
		s.cfg.Connected(p)
	}
	stop := p.e.endIdle()
	p.e.run()
	stop()
	s.places.Give(a)
	s.mu.Lock()
	delete(s.conns, p)
	s.mu.Unlock()
	s.cfg.Logger.Debug("a connection has ended", "peer", p.e.remote, "error", p.e.cause())
}

func (s *Server) accept(ctx context.Context, dev *rnic.Device, request *rnic.ConnRequest, a oncrpc.Admission) (*Peer, error) {
	e, err := newEndpoint(dev, s.cfg)
	if err != nil {
		return nil, errors.Join(err, request.Close())
	}
	e.serve = newResponder(e, s.service, s.cfg.Credits, true)
	e.mem.shared = &s.idle
	e.serve.blamed, e.serve.admission = &s.blamed, a
	if s.cfg.ReverseCredits > 0 {
		e.calls = newRequester(e, s.cfg.ReverseCredits, false)
	}
	e.settle(request.PrivateData())
	p := &Peer{e}
	e.serve.ctx = context.WithValue(e.ctx, peerKey{}, p)
	param := s.cfg.Conn
	param.PrivateData = s.cfg.private()
	if err := request.Accept(ctx, e.qp, param); err != nil {
		return nil, errors.Join(err, e.release())
	}
	e.addresses()
	e.serve.debt, e.serve.all = s.replies.join(a.Account), s.pulled.join(a.Account) // they are not used before run
	return p, nil
}

// SetCredits changes how many calls each connection may have in flight, from 1 to
// Config.Credits, for which there are receives. Requesters hear of it by the next replies
// (RFC 8166 §3.3.1).
func (s *Server) SetCredits(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credits = min(max(1, n), s.cfg.Credits)
	for p := range s.conns {
		p.e.serve.setCredits(s.credits)
	}
}

// Peers returns the connections that there are.
func (s *Server) Peers() []*Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	peers := make([]*Peer, 0, len(s.conns))
	for p := range s.conns {
		peers = append(peers, p)
	}
	return peers
}

// Shutdown ends the server gracefully: it accepts no more connections and no more calls,
// lets the calls that it has be carried out, and closes the connections. When the context
// ends first, it resets them, and returns the context's error.
func (s *Server) Shutdown(ctx context.Context) error { return s.end(ctx) }

// Close ends the server, and its connections, at once.
func (s *Server) Close() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.end(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (s *Server) end(ctx context.Context) error {
	s.mu.Lock()
	s.shutdown = true
	for _, cancel := range s.serving {
		cancel(ErrShutdown)
	}
	peers := make([]*Peer, 0, len(s.conns))
	for p := range s.conns {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range peers {
		wg.Go(func() {
			if p.e.serve.drain(ctx) {
				_ = p.e.close(ErrShutdown)
			} else {
				p.e.fail(ErrShutdown)
			}
		})
	}
	wg.Wait()
	s.wg.Wait()
	return ctx.Err()
}

// setCredits changes how many calls the next reply grants.
func (r *responder) setCredits(n int) {
	r.mu.Lock()
	r.granted = n
	r.mu.Unlock()
}

// drain takes no further calls, and waits until no call is being carried out. It reports
// whether that is so.
func (r *responder) drain(ctx context.Context) bool {
	r.mu.Lock()
	if r.drained == nil {
		r.drained = make(chan struct{})
		if r.busy == 0 {
			close(r.drained)
		}
	}
	drained := r.drained
	r.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	select {
	case <-drained:
		return true
	case <-r.e.done:
		return false
	case <-ctx.Done():
		return false
	}
}
