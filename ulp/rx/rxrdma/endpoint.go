package rxrdma

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"

	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/internal/work"
)

// An Endpoint makes connections to services over an RNIC, and serves those of clients. It
// is an rx.Endpoint.
type Endpoint struct {
	cfg      Config
	dev      *rnic.Device
	pd       *rnic.PD
	listener *rnic.Listener // nil: there are no services
	pool     *work.Pool
	services map[uint16]rx.Service
	buffers  buffers
	epoch    uint32

	ctx      context.Context // ends when the endpoint is closed
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	draining atomic.Bool

	mu      sync.Mutex
	links   map[*link]struct{}
	conns   map[*conn]struct{}
	nextID  uint32
	taken   int   // places for clients
	memory  int64 // bytes of clients' receives
	closed  bool
	stats   Stats
	closing sync.Once
	err     error // of closing
}

var _ rx.Endpoint = (*Endpoint)(nil)

var (
	errClosed   = errors.New("rxrdma: the endpoint is closed")
	errNoDevice = errors.New("rxrdma: there is no RNIC: give Open a device")
)

// Open opens an endpoint on a device, which stays the caller's, who closes it after the
// endpoint. It listens if there are services.
func Open(ctx context.Context, dev *rnic.Device, cfg Config) (*Endpoint, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if dev == nil {
		return nil, errNoDevice
	}
	e := &Endpoint{
		cfg: cfg, dev: dev, pool: work.New(cfg.Services, cfg.Log), services: make(map[uint16]rx.Service),
		links: make(map[*link]struct{}), conns: make(map[*conn]struct{}),
	}
	for _, s := range cfg.Services {
		e.services[s.ID] = s
	}
	if err := e.draw(); err != nil {
		return nil, err
	}
	if e.pd, err = dev.AllocPD(); err != nil {
		return nil, err
	}
	e.buffers = buffers{pd: e.pd, size: cfg.Receive}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if len(cfg.Services) == 0 {
		return e, nil
	}
	address := ":0"
	if cfg.Addr.Port() != 0 && !cfg.Addr.Addr().IsValid() {
		address = netip.AddrPortFrom(netip.IPv6Unspecified(), cfg.Addr.Port()).String()
	} else if cfg.Addr.IsValid() {
		address = cfg.Addr.String()
	}
	if e.listener, err = dev.Listen(ctx, address); err != nil {
		e.cancel()
		return nil, errors.Join(err, e.pd.Close())
	}
	e.wg.Go(e.accept)
	return e, nil
}

// Addr is the address at which clients find the endpoint's services. It is not valid if
// there are none.
func (e *Endpoint) Addr() netip.AddrPort {
	if e.listener == nil {
		return netip.AddrPort{}
	}
	return addrPort(e.listener.Addr())
}

// add notes a link, unless the endpoint is closed.
func (e *Endpoint) add(l *link) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errClosed
	}
	e.links[l] = struct{}{}
	return nil
}

// forget drops a link of which nothing is left.
func (e *Endpoint) forget(l *link) {
	e.mu.Lock()
	delete(e.links, l)
	l.mu.Lock()
	l.counts.addTo(&e.stats)
	l.counts = counts{}
	l.mu.Unlock()
	e.mu.Unlock()
	if !l.client {
		e.give(len(l.recv))
	}
}

// all returns the links that there are.
func (e *Endpoint) all() []*link {
	e.mu.Lock()
	defer e.mu.Unlock()
	links := make([]*link, 0, len(e.links))
	for l := range e.links {
		links = append(links, l)
	}
	return links
}

// Shutdown accepts no more calls, waits until those that handlers serve have ended and
// their replies were sent, and closes the endpoint. If the context ends first, it closes at
// once and returns the context's error.
func (e *Endpoint) Shutdown(ctx context.Context) error {
	e.draining.Store(true)
	for _, l := range e.all() {
		if !l.client {
			l.mu.Lock()
			l.mc.Close(l.now()) // the client makes another connection for its next call
			l.leave()
		}
	}
	served := make(chan struct{})
	go func() {
		e.pool.Wait()
		for _, l := range e.all() {
			if !l.client {
				l.retire()
			}
		}
		for _, l := range e.all() {
			if !l.client {
				select {
				case <-l.over:
				case <-e.ctx.Done():
				}
			}
		}
		close(served)
	}()
	var err error
	select {
	case <-served:
	case <-ctx.Done():
		err = ctx.Err()
	}
	err = errors.Join(err, e.Close())
	<-served
	return err
}

// Close ends all connections and calls, and waits for the handlers.
func (e *Endpoint) Close() error {
	e.closing.Do(func() { e.err = e.close() })
	return e.err
}

func (e *Endpoint) close() error {
	e.mu.Lock()
	e.closed = true
	conns := make([]*conn, 0, len(e.conns))
	for c := range e.conns {
		conns = append(conns, c)
	}
	e.mu.Unlock()
	e.pool.Close()
	for _, c := range conns {
		c.abandon()
	}
	for _, l := range e.all() {
		l.cancel()
	}
	var err error
	if e.listener != nil {
		err = e.listener.Close()
	}
	e.cancel()
	e.wg.Wait()
	e.pool.Wait()
	return errors.Join(err, e.buffers.close(), e.pd.Close())
}
