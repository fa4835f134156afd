package oncrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"urnic/ulp/oncrpc/xdr"
)

// A ServerConfig bounds what a server does at a time, and what callers can make it hold.
// Its zero value is ready for use.
type ServerConfig struct {
	// Calls is how many calls are carried out at a time; 0 stands for 512.
	Calls int

	// Duplicates and DuplicateOctets are how many replies are kept for calls that are
	// sent again, and how long they may be altogether: 0 stands for 16,384, and 8 MiB.
	// Older ones are forgotten first.
	Duplicates, DuplicateOctets int

	// TCP is for ServeTCP.
	TCP ServeTCPConfig

	Logger *slog.Logger // nil stands for silence
}

// A Server carries out calls of programs. Transports give them to it by Serve.
type Server struct {
	cfg        ServerConfig
	log        *slog.Logger
	programs   atomic.Pointer[map[uint32]*program]
	slots      chan struct{} // holds one for each handler that runs
	duplicates *duplicates
	counters   counters
	held       atomic.Int64 // bytes, of connections of ServeTCP
	places     *Places      // of those connections

	life context.Context // ends with Close
	kill context.CancelFunc

	mu       sync.Mutex
	calls    int
	draining chan struct{} // closed once there are no new calls
	drained  bool          // draining is closed
	idle     chan struct{} // closed once there are neither calls nor ends any more; nil without Shutdown
	ends     map[*tcpEnd]struct{}
	accepts  map[*tcpListener]struct{}
}

type counters struct{ calls, duplicates atomic.Uint64 }

// ServerStats count what a server has done.
type ServerStats struct {
	Calls      uint64 // that were received
	Duplicates uint64 // of them, those that were answered as before
}

// NewServer returns a server without programs.
func NewServer(cfg ServerConfig) *Server {
	s := &Server{
		cfg:      cfg,
		log:      cfg.Logger,
		slots:    make(chan struct{}, cmp.Or(max(0, cfg.Calls), 512)),
		draining: make(chan struct{}),
		ends:     make(map[*tcpEnd]struct{}),
		accepts:  make(map[*tcpListener]struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.cfg.TCP.fill()
	s.places = NewPlaces(s.cfg.TCP.Connections, s.cfg.TCP.PerHost)
	s.duplicates = newDuplicates(cmp.Or(max(0, cfg.Duplicates), 16<<10), cmp.Or(max(0, cfg.DuplicateOctets), 8<<20))
	s.programs.Store(new(map[uint32]*program))
	s.life, s.kill = context.WithCancel(context.Background())
	return s
}

// Stats returns what the server has done so far.
func (s *Server) Stats() ServerStats {
	return ServerStats{Calls: s.counters.calls.Load(), Duplicates: s.counters.duplicates.Load()}
}

// Register adds programs, also while the server runs. It returns an error, and adds none,
// if one of them is there already, or can't be called at all.
func (s *Server) Register(programs ...*Program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := maps.Clone(*s.programs.Load())
	if all == nil {
		all = make(map[uint32]*program)
	}
	for _, p := range programs {
		if all[p.Number] != nil {
			return fmt.Errorf("oncrpc: program %d (%s) is there already", p.Number, p.Name)
		}
		q, err := newProgram(p)
		if err != nil {
			return err
		}
		all[p.Number] = q
	}
	s.programs.Store(&all)
	return nil
}

// incoming is an Incoming with its memory.
type incoming struct {
	Incoming
	args xdr.Decoder
	sys  Sys
}

var incomings = sync.Pool{New: func() any { return new(incoming) }}

func (in *incoming) release() {
	in.Incoming = Incoming{}
	in.args.Reset(nil)
	incomings.Put(in)
}

// Serve implements Service. It returns ErrClosed if there are to be no new calls.
func (s *Server) Serve(ctx context.Context, x *Exchange, reply *xdr.Encoder) error {
	if !s.enter() {
		return ErrClosed
	}
	defer s.leave()
	s.counters.calls.Add(1)
	in := incomings.Get().(*incoming)
	defer in.release()
	in.args.Reset(x.Call.Stream, x.Call.Moved...)
	in.Args, in.Results, in.Exchange = &in.args, reply, x
	proc, err := s.accept(in)
	if err != nil {
		return s.refuse(in, err)
	}
	if proc.Once {
		return s.once(ctx, proc, in)
	}
	return s.carryOut(ctx, proc, in)
}

// accept reads the header of a call and returns what it asks for, or what is to be
// replied: RFC 5531 §9, in the order of its statuses.
func (s *Server) accept(in *incoming) (Procedure, error) {
	if err := in.Header.Decode(in.Args); err != nil {
		return Procedure{}, malformed(err)
	}
	p := (*s.programs.Load())[in.Header.Program]
	if stat := in.authenticate(p); stat != AuthOK {
		return Procedure{}, &RejectedError{Stat: AuthError, Auth: stat}
	}
	if p == nil {
		return Procedure{}, &AcceptedError{Stat: ProgramUnavailable}
	}
	return p.find(&in.Header)
}

// Where the parts of a call's header stand (RFC 5531 §9).
const (
	atVersion    = 8
	atCredential = 24
)

// malformed returns what is replied to a call whose header can't be read.
func malformed(err error) error {
	if _, ok := errors.AsType[*VersionError](err); ok {
		return &RejectedError{Stat: RPCMismatch, Low: Version, High: Version}
	}
	switch where, ok := errors.AsType[*xdr.Error](err); {
	case !ok || where.At < atVersion: // no call, as far as anybody can tell
		return ErrNoReply
	case where.At >= atCredential:
		return &RejectedError{Stat: AuthError, Auth: AuthBadCred}
	default:
		return &AcceptedError{Stat: GarbageArguments}
	}
}

// authenticate checks who calls a program, nil if there is no such one.
func (in *incoming) authenticate(p *program) AuthStat {
	switch in.Header.Cred.Flavor {
	case AuthNone:
	case AuthSys:
		if in.sys.decode(in.Header.Cred.Body) != nil {
			return AuthBadCred
		}
		in.Sys = &in.sys
	default: // AuthShort too, since nobody was given any
		if p == nil || !p.takes(in.Header.Cred.Flavor, in.Header.Procedure) {
			return AuthRejectedCred
		}
		return AuthOK // the program knows more
	}
	if in.Header.Verf.Flavor != AuthNone { // RFC 5531 §10.1 and appendix A
		return AuthBadVerf
	}
	if p != nil && !p.takes(in.Header.Cred.Flavor, in.Header.Procedure) {
		return AuthTooWeak
	}
	return AuthOK
}

// refuse writes the reply to a call that was not carried out.
func (s *Server) refuse(in *incoming, why error) error {
	if errors.Is(why, ErrNoReply) {
		return ErrNoReply
	}
	in.Results.Reset()
	return (&Reply{XID: in.Header.XID, Err: why}).Encode(in.Results)
}

// carryOut runs the handler, and writes the reply.
func (s *Server) carryOut(ctx context.Context, proc Procedure, in *incoming) error {
	select {
	case s.slots <- struct{}{}:
	default:
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return ErrNoReply
		case <-s.life.Done():
			return ErrClosed
		}
	}
	defer func() { <-s.slots }()
	if err := (&Reply{XID: in.Header.XID}).Encode(in.Results); err != nil {
		return err
	}
	args := in.Args
	err := s.run(ctx, proc.Handle, in)
	switch {
	case args.Err() != nil, err == nil && args.End() != nil:
		err = &AcceptedError{Stat: GarbageArguments}
	case err == nil:
		return nil
	case repliable(err):
	case ctx.Err() != nil: // it was not to end: the client may try again
		return ErrNoReply
	default:
		s.log.Warn("a call has failed", "procedure", proc.Name, "program", in.Header.Program, "peer", in.Exchange.Remote, "error", err)
		err = &AcceptedError{Stat: SystemError}
	}
	return s.refuse(in, err)
}

// repliable reports whether a handler's error is for the caller.
func repliable(err error) bool {
	if accepted, ok := errors.AsType[*AcceptedError](err); ok {
		return accepted.Stat != Success
	}
	_, ok := errors.AsType[*RejectedError](err)
	return ok || errors.Is(err, ErrNoReply)
}

// A panicError is a handler's panic.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v\n%s", e.value, e.stack) }

// run runs a handler, whose panic is its error.
func (s *Server) run(ctx context.Context, handle Handler, in *incoming) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return handle(ctx, &in.Incoming)
}

// once carries a call out, unless that has been done already, and answers as before.
func (s *Server) once(ctx context.Context, proc Procedure, in *incoming) error {
	a, first := s.duplicates.begin(in)
	if !first {
		s.counters.duplicates.Add(1)
		return s.duplicates.again(ctx, a, in.Results)
	}
	defer s.duplicates.forget(a) // unless it has ended
	if err := s.carryOut(unbroken{ctx, s.life}, proc, in); err != nil {
		return err
	}
	s.duplicates.end(a, in.Results)
	return nil
}

// unbroken is a call's context that does not end with its connection: a call that is
// given up halfway could not be carried out again.
type unbroken struct {
	values context.Context
	context.Context
}

func (u unbroken) Value(key any) any { return u.values.Value(key) }

// enter counts a call, unless there are to be none.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drained {
		return false
	}
	s.calls++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	s.calls--
	s.settle()
	s.mu.Unlock()
}

// settle tells Shutdown if nothing is left; under mu.
func (s *Server) settle() {
	if s.idle != nil && s.calls == 0 && len(s.ends) == 0 {
		close(s.idle)
		s.idle = nil
	}
}

// Shutdown takes no new calls, waits until those in progress have been carried out and,
// on connections of ServeTCP, replied to, and closes the server. It returns the context's
// error if that ends before.
func (s *Server) Shutdown(ctx context.Context) error {
	idle := s.drain()
	select {
	case <-idle:
		return s.Close()
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.Close())
	}
}

// drain says that there are no new calls, and returns a channel that is closed once there
// is nothing left.
func (s *Server) drain() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drained {
		s.drained = true
		close(s.draining)
	}
	for l := range s.accepts {
		_ = l.Close() // its Accept says so
	}
	for e := range s.ends {
		_ = e.conn.SetReadDeadline(time.Unix(1, 0)) // wakes it; it has ended if that fails
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.settle()
	return idle
}

// Close ends all connections of ServeTCP, and waits until all handlers have returned:
// those of calls from another transport may wait for that to be closed.
func (s *Server) Close() error {
	idle := s.drain()
	s.kill()
	<-idle
	return nil
}
