package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urnic/conformance/service"
	"urnic/pd"
	"urnic/rnic"
)

// Why a session ends.
var (
	errGone = errors.New("the client is gone")
	errIdle = &service.Error{Code: service.CodeTimeout, Message: "nothing was asked for too long: the session ends"}
	errBusy = &service.Error{Code: service.CodeRequest, Message: "a request came before the answer to the one before it: the session ends"}
)

// A session serves one control connection. Requests are carried out one at a
// time, in the goroutine of run; what is under mu is also touched by listeners.
type session struct {
	server  *server
	conn    net.Conn
	local   netip.AddrPort
	remote  netip.AddrPort
	busy    atomic.Bool    // a request is being carried out
	wg      sync.WaitGroup // of listeners, and connections on their way
	said    bool           // hello
	counted bool           // among those that have; under the server's mu

	ctx    context.Context // of the device: ends with the session, or with configure
	cancel context.CancelFunc
	dev    *rnic.Device
	config service.ConfigureArgs
	memory arena

	mu        sync.Mutex
	last      int    // number of the last object
	lastWR    uint64 // ID of the last work request
	pds       map[int]*rnic.PD
	qps       map[int]*queuePair
	srqs      map[int]*sharedQueue
	mrs       map[int]*region
	mws       map[int]*rnic.MW
	listeners map[int]*listener
	held      map[int]*heldRequest
	buffers   map[uint64]*buffer           // of work requests, by ID
	starting  map[netip.AddrPort]*listener // whose peer that is, until its start-up is told
}

func newSession(s *server, conn net.Conn) *session {
	c := &session{server: s, conn: conn, local: addrPort(conn.LocalAddr()), remote: addrPort(conn.RemoteAddr())}
	c.memory.limit = s.Octets
	return c
}

// addrPort returns an address of TCP or UDP in a form that compares.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(interface{ AddrPort() netip.AddrPort })
	if !ok {
		return netip.AddrPort{}
	}
	p := t.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// open makes the device, and forgets what an earlier one had.
func (c *session) open(ctx context.Context) error {
	cfg := c.server.Device
	cfg.Limits = pd.Limits{
		pd.Domains: maxDomains + 1, pd.QueuePairs: maxQPs, pd.CompletionQueues: 2 * maxQPs, pd.CQEntries: maxQueued,
		pd.CompletionChannels: 1, pd.SharedQueues: maxSRQs, pd.SendWRs: maxQueued, pd.RecvWRs: maxQueued,
		pd.Regions: maxObjects, pd.Windows: maxObjects, pd.MemoryOctets: c.server.Octets,
		pd.InboundReads: maxDepths, pd.OutboundReads: maxDepths, pd.Listeners: maxListener, pd.HalfOpen: maxHalfOpen,
		pd.StreamOctets: maxBuffers,
	}
	cfg.DomainLimits = pd.Limits{}
	cfg.MaxWR, cfg.MaxCQE = maxDepth, maxEntries
	if c.server.record != nil {
		cfg.Record = c.server.record
	}
	cfg.MPA.Revision = uint8(c.config.Revision)
	cfg.MPA.RequestTimeout = ms(c.config.RequestTimeout)
	cfg.AnswerTimeout, cfg.CloseTimeout = ms(c.config.AnswerTimeout), ms(c.config.CloseTimeout)
	cfg.Network = network{session: c, inner: cfg.Network}
	if cfg.LowerLayer != nil {
		cfg.LowerLayer = lowerLayer{cfg.LowerLayer, c}
	}
	cfg.Logger = watchStartups(c, cfg.Logger)
	dev, err := rnic.Open(cfg)
	if err != nil {
		return err
	}
	domain, err := dev.AllocPD()
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	c.dev = dev
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pds = map[int]*rnic.PD{0: domain}
	c.qps, c.srqs = make(map[int]*queuePair), make(map[int]*sharedQueue)
	c.mrs, c.mws = make(map[int]*region), make(map[int]*rnic.MW)
	c.listeners, c.held = make(map[int]*listener), make(map[int]*heldRequest)
	c.buffers = make(map[uint64]*buffer)
	c.starting = make(map[netip.AddrPort]*listener)
	return nil
}

// close ends the device with all that belongs to it, and waits until nothing of
// it is left.
func (c *session) close() {
	if c.dev == nil {
		return
	}
	c.cancel()
	_ = c.dev.Close() // nobody is there to be told
	c.wg.Wait()
	c.memory.close() // the device's regions lie in it
}

// ms returns a time of the protocol.
func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// run is the session, from beginning to end.
func (c *session) run(server context.Context) {
	ctx, cancel := context.WithCancelCause(server)
	lines := make(chan []byte, 1)
	var reading sync.WaitGroup
	reading.Go(func() { cancel(c.read(lines)) })
	if err := c.open(ctx); err != nil {
		cancel(errorOf(err))
	}
	c.work(ctx, lines)
	if e, ok := errors.AsType[*service.Error](context.Cause(ctx)); ok {
		sendLine(c.conn, answerTo(0, nil, e))
	}
	c.close()
	cancel(nil)
	_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // which ends read
	reading.Wait()
	linger(server, c.conn)
}

// read passes the client's lines on, and returns why there will be no more. It
// continues while a request is carried out, so that the end of the connection
// is noticed.
func (c *session) read(lines chan<- []byte) error {
	r := bufio.NewReader(c.conn)
	for {
		line, err := service.ReadLine(r, service.MaxLine)
		switch {
		case errors.Is(err, service.ErrLine):
			return bad("a line has at most %d octets: the session ends", service.MaxLine)
		case err != nil:
			return fmt.Errorf("%w: %w", errGone, err)
		case !c.busy.CompareAndSwap(false, true):
			return errBusy
		}
		lines <- line // there is room: nobody else is busy
	}
}

// work carries requests out, until the context ends.
func (c *session) work(ctx context.Context, lines <-chan []byte) {
	for {
		idle := time.NewTimer(c.server.IdleTimeout)
		select {
		case line := <-lines:
			idle.Stop()
			id, result, err := c.answer(ctx, line)
			if ctx.Err() != nil {
				return
			}
			c.busy.Store(false) // before the client can ask for more
			if !sendLine(c.conn, answerTo(id, result, err)) || id == 0 && err != nil {
				return
			}
		case <-idle.C:
			sendLine(c.conn, answerTo(0, nil, errIdle))
			return
		case <-ctx.Done():
			idle.Stop()
			return
		}
	}
}

// answer carries one request out. An ID of 0 stands for a line that is none,
// which ends the session.
func (c *session) answer(ctx context.Context, line []byte) (uint64, any, *service.Error) {
	r, err := parseRequest(line)
	if err != nil {
		return 0, nil, errorOf(err)
	}
	o, args, err := parseArgs(r)
	if err != nil {
		return r.ID, nil, errorOf(err)
	}
	if !c.said && r.Op != "hello" {
		return r.ID, nil, bad("say hello first")
	}
	result, err := o.run(ctx, c, args)
	if err != nil {
		return r.ID, nil, errorOf(err)
	}
	return r.ID, result, nil
}

// answerTo returns an answer as a line.
func answerTo(id uint64, result any, e *service.Error) []byte {
	a := service.Answer{ID: id, Error: e}
	var err error
	if e == nil {
		if result == nil {
			result = struct{}{}
		}
		a.Result, err = json.Marshal(result)
	}
	line, err2 := json.Marshal(a)
	if err = errors.Join(err, err2); err != nil { // of types of this package: it can't be
		return fmt.Appendf(nil, "{\"id\":%d,\"error\":{\"code\":%q,\"message\":%q}}\n", id, service.CodeInternal, err)
	}
	return append(line, '\n')
}

// sendLine reports whether a line has been written.
func sendLine(conn net.Conn, line []byte) bool {
	_ = conn.SetWriteDeadline(time.Now().Add(writeWait)) // Write tells what is wrong
	_, err := conn.Write(line)
	return err == nil
}
