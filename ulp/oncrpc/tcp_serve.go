package oncrpc

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"urnic/ulp/oncrpc/xdr"
)

// A ServeTCPConfig bounds what peers can do over TCP. Its zero value is ready for use.
type ServeTCPConfig struct {
	// Connections is how many there may be; 0 stands for 1024. More are closed at once.
	Connections int

	// PerHost is how many of them one host may have, or one account of Admit's; 0
	// stands for a quarter of them, and 16 at least.
	PerHost int

	// Admit, if not nil, decides about a connection when it has been accepted.
	Admit Admit

	// Calls is how many calls of one connection are carried out at a time; 0 stands for
	// 64. More are not read.
	Calls int

	// RecordMost is the length of the longest call, in bytes; 0 stands for
	// DefaultRecordMost, or the CallMost of a program if that is more. A longer one
	// ends the connection.
	RecordMost int

	// Bytes is how many bytes calls that were read and replies that were not taken
	// may hold, of all connections; 0 stands for 1 GiB. One connection has a sixteenth
	// of it. Beyond that no more calls are read, but one of each connection.
	Octets int

	// Idle is how long a connection may be without calls before it is closed; 0 stands
	// for six minutes: clients of NFS close them after five.
	Idle time.Duration

	// Stall is how long a peer may take for 64 KiB of a call, or take nothing of a
	// reply, before its connection is closed, which may take twice as long to be
	// noticed; 0 stands for a minute.
	Stall time.Duration
}

func (c *ServeTCPConfig) fill() {
	c.Connections = cmp.Or(max(0, c.Connections), 1024)
	c.PerHost = cmp.Or(max(0, c.PerHost), max(16, c.Connections/4))
	c.Calls = cmp.Or(max(0, c.Calls), 64)
	c.Octets = cmp.Or(max(0, c.Octets), 1<<30)
	c.Idle = cmp.Or(max(0, c.Idle), 6*time.Minute)
	c.Stall = cmp.Or(max(0, c.Stall), defaultStall)
}

// A tcpListener is a listener that is being served.
type tcpListener struct{ net.Listener }

// ServeTCP takes connections, and carries out their calls, until the server is closed or
// shut down, then it returns ErrClosed; or until the context ends, then it ends all
// connections of the listener and returns the context's error. It closes the listener.
func (s *Server) ServeTCP(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var ends sync.WaitGroup
	defer ends.Wait()
	own := &tcpListener{l}
	defer own.Close() //nolint:errcheck // nobody listens any more in any case
	stop := context.AfterFunc(ctx, func() { _ = own.Close() })
	defer stop()
	s.mu.Lock()
	if s.drained {
		s.mu.Unlock()
		cancel()
		return ErrClosed
	}
	s.accepts[own] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.accepts, own)
		s.mu.Unlock()
	}()
	err := s.take(ctx, l, &ends)
	select {
	case <-s.draining: // its connections have replies to write
		ends.Wait()
		err = ErrClosed
	default:
	}
	cancel()
	return err
}

// take takes connections until it can't.
func (s *Server) take(ctx context.Context, l net.Listener, ends *sync.WaitGroup) error {
	pause := time.Millisecond
	for {
		conn, err := l.Accept()
		if err == nil {
			pause = time.Millisecond
			s.begin(ctx, conn, ends)
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		s.log.Warn("no connection can be taken", "address", l.Addr(), "error", err) // for want of descriptors, say
		select {
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		case <-ctx.Done():
			return ctx.Err()
		case <-s.draining:
			return ErrClosed
		}
	}
}

// begin serves a connection.
func (s *Server) begin(ctx context.Context, conn net.Conn, ends *sync.WaitGroup) {
	a, err := s.places.Take(s.cfg.TCP.Admit, conn.LocalAddr(), conn.RemoteAddr())
	if err != nil {
		_ = conn.Close() // nothing was said
		s.log.Warn("a connection was closed", "peer", conn.RemoteAddr(), "error", err)
		return
	}
	e := newTCPEnd(s, conn, a)
	s.mu.Lock()
	if s.drained {
		s.mu.Unlock()
		s.places.Give(a)
		_ = conn.Close()
		return
	}
	s.ends[e] = struct{}{}
	s.mu.Unlock()
	ends.Go(func() {
		defer s.places.Give(a)
		defer func() {
			s.mu.Lock()
			delete(s.ends, e)
			s.settle()
			s.mu.Unlock()
		}()
		e.serve(ctx)
	})
}

// recordMost returns how long a call may be.
func (s *Server) recordMost() int {
	if s.cfg.TCP.RecordMost > 0 {
		return s.cfg.TCP.RecordMost
	}
	most := DefaultRecordMost
	for _, p := range *s.programs.Load() {
		most = max(most, p.callMost)
	}
	return most
}

// A tcpEnd is a connection's end.
type tcpEnd struct {
	s             *Server
	conn          net.Conn
	cfg           ServeTCPConfig
	netid         string
	local, remote net.Addr
	admission     Admission

	in     recordSource
	ahead  *bufio.Reader
	reader patientReader
	out    *recordWriter
	slots  chan struct{} // holds one for each call
	memory *holding
	calls  sync.WaitGroup
	cancel context.CancelFunc // ends the connection, and the contexts of its calls
}

func newTCPEnd(s *Server, conn net.Conn, a Admission) *tcpEnd {
	e := &tcpEnd{s: s, conn: conn, cfg: s.cfg.TCP, netid: "tcp", local: conn.LocalAddr(), remote: conn.RemoteAddr(), admission: a}
	if a, ok := e.remote.(*net.TCPAddr); ok && a.IP.To4() == nil {
		e.netid = "tcp6"
	}
	e.out = newRecordWriter(conn, e.cfg.Stall)
	e.slots = make(chan struct{}, e.cfg.Calls)
	e.memory = newHolding(e.cfg.Octets/16, e.cfg.Octets/e.cfg.Connections, &s.held, int64(e.cfg.Octets))
	e.reader = patientReader{e: e}
	e.ahead = bufio.NewReaderSize(&e.reader, readAhead)
	e.in.init(e.ahead, s.recordMost())
	return e
}

// serve reads calls until that fails, and waits until all were replied to.
func (e *tcpEnd) serve(ctx context.Context) {
	ctx, e.cancel = context.WithCancel(ctx)
	closing := context.AfterFunc(ctx, func() { _ = e.conn.Close() }) // ends all that waits for the peer
	killing := context.AfterFunc(e.s.life, e.cancel)
	err := e.read(ctx)
	if !errors.Is(err, errDraining) && !errors.Is(err, errEnded) {
		e.s.log.Debug("a connection has ended", "peer", e.remote, "error", err)
		e.cancel()
	}
	e.calls.Wait()
	if errors.Is(err, errDraining) {
		e.linger()
	}
	killing()
	closing()
	e.cancel()
	_ = e.conn.Close() // nothing is left to say
}

// lingering is how long a peer may take to hear that a connection is over.
const lingering = time.Second

// linger says that there are no more replies, and waits until the peer has heard that: to
// close a connection on which more calls have come could destroy replies on their way.
func (e *tcpEnd) linger() {
	half, ok := e.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil || e.conn.SetReadDeadline(time.Now().Add(lingering)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, e.conn) // whatever ends it
}

var (
	errDraining = errors.New("oncrpc: the server is being shut down")
	errEnded    = errors.New("oncrpc: the peer sends no more calls")
	errIdle     = errors.New("oncrpc: no call has come for too long")
	errSlow     = errors.New("oncrpc: a call comes too slowly")
)

// read reads calls, and has each carried out by a goroutine. It returns errEnded if the
// peer has closed its side, errDraining, or another error.
func (e *tcpEnd) read(ctx context.Context) error {
	for {
		select {
		case e.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		m, err := e.next()
		if err != nil {
			<-e.slots
			return err
		}
		x := newTCPExchange(ctx, e, m)
		if err := e.admit(ctx, x); err != nil {
			<-e.slots
			m.Release()
			x.release()
			return err
		}
		e.calls.Add(1)
		go x.run()
	}
}

// admit waits until there may be one more call.
func (e *tcpEnd) admit(ctx context.Context, x *tcpExchange) error {
	x.held = len(x.Call.Stream) + reserved
	for !e.memory.take(x.held) {
		select {
		case <-e.memory.free:
		case <-ctx.Done():
			x.held = 0
			return ctx.Err()
		}
	}
	return nil
}

// next returns the next call.
func (e *tcpEnd) next() (*Message, error) {
	e.reader.outside()
	if _, err := e.ahead.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = errEnded
		}
		return nil, err
	}
	e.reader.inside()
	return e.in.next()
}

// A patientReader reads from a connection as long as the peer keeps time.
type patientReader struct {
	e        *tcpEnd
	within   bool      // a record
	deadline time.Time // for what is left
	left     int       // bytes that are due by then
}

func (r *patientReader) outside() { r.within = false }

func (r *patientReader) inside() { r.within, r.left = true, 0 }

func (r *patientReader) Read(p []byte) (int, error) {
	for {
		switch {
		case !r.within:
			r.deadline = time.Now().Add(r.e.cfg.Idle)
		case r.left <= 0:
			r.left, r.deadline = firstRoom, time.Now().Add(r.e.cfg.Stall)
		}
		if err := r.e.conn.SetReadDeadline(r.deadline); err != nil {
			return 0, err
		}
		select {
		case <-r.e.s.draining: // nobody sets another deadline from now on
			return 0, errDraining
		default:
		}
		n, err := r.e.conn.Read(p)
		r.left -= n
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		switch {
		case r.within:
			return 0, errSlow
		case len(r.e.slots) == 1: // that of the call which has not come
			return 0, errIdle
		}
	}
}

// A tcpExchange is a call of a connection.
type tcpExchange struct {
	Exchange
	e     *tcpEnd
	ctx   context.Context //nolint:containedctx // of the goroutine that the call is carried out in
	reply xdr.Encoder
	bulks []*buffer
	held  int // bytes of the connection's holding

	run    func() // serve
	buffer func(n int) []byte
}

var exchanges sync.Pool

func newTCPExchange(ctx context.Context, e *tcpEnd, m *Message) *tcpExchange {
	x, ok := exchanges.Get().(*tcpExchange)
	if !ok {
		x = new(tcpExchange)
		x.run, x.buffer = x.serve, x.bulk
	}
	x.e, x.ctx = e, ctx
	x.Exchange = Exchange{
		Call: m, Netid: e.netid, Local: e.local, Remote: e.remote, Peer: e.admission.Peer, Account: e.admission.Account,
		Buffer: x.buffer, loans: x.loans,
	}
	return x
}

// bulk returns n bytes of the pools.
func (x *tcpExchange) bulk(n int) []byte {
	if n <= 0 {
		return nil
	}
	b := newBuffer(n)
	x.bulks = append(x.bulks, b)
	return b.p[:n]
}

// serve carries out the call and replies.
func (x *tcpExchange) serve() {
	e := x.e
	defer e.calls.Done()
	defer func() { <-e.slots }()
	defer x.release()
	defer x.Call.Release() // the reply may be made of it
	err := e.s.Serve(x.ctx, &x.Exchange, &x.reply)
	if err == nil {
		needed := len(x.Call.Stream) + x.reply.Len()
		e.memory.add(needed - x.held)
		x.held = needed
		err = e.out.write(context.Background(), &x.reply)
	}
	if err != nil && !errors.Is(err, ErrNoReply) && !errors.Is(err, ErrClosed) { // the reader knows of the latter
		e.s.log.Debug("a connection ends", "peer", e.remote, "error", err)
		e.cancel()
	}
}

func (x *tcpExchange) release() {
	x.e.memory.add(-x.held)
	x.held = 0
	x.reply.Reset()
	x.Return()
	for i, b := range x.bulks {
		b.release()
		x.bulks[i] = nil
	}
	x.bulks = x.bulks[:0]
	x.e, x.ctx, x.Exchange = nil, nil, Exchange{loans: x.loans}
	exchanges.Put(x)
}
