package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"urnic/mpa"
	"urnic/rnic"
)

// What a matchmaker keeps, and how long.
const (
	heldByEach  = 4    // requests that wait for one queue pair
	heldByAll   = 1024 // requests that wait for any
	refusals    = 64   // that are being sent
	patience    = time.Second
	grace       = 10 * time.Millisecond // between RTR and dialling, so that RTS may come
	firstPause  = 10 * time.Millisecond // between two tries to dial
	lastPause   = time.Second
	dialTimeout = 10 * time.Second
	// replyTimeout is how long a side that has dialled waits for an answer: as long
	// as the peer keeps the request. It is the peer that drops it.
	replyTimeout = 24 * time.Hour
)

// A Config says how a Matchmaker works.
type Config struct {
	Device *rnic.Device // that listens; must be given

	// FirstPort is the port of slot 1, up to HighestPort; zero stands for
	// DefaultPort. All processes that are to find each other must have the same.
	FirstPort int

	// MPA is the template for connections: CRC policy, markers, sizes. The
	// peer-to-peer model is always asked for, as either side may send first.
	MPA mpa.Config

	// Listen listens at a host:port, and Dial dials, from an address if that is
	// valid and can be. Nil stands for TCP.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	Dial   func(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error)
	// Local reports whether an address is one of this host. Nil stands for asking
	// the operating system.
	Local func(netip.Addr) bool

	Logger *slog.Logger // nil stands for silence
}

// A Matchmaker brings the queue pairs of a process together with their peers. All of
// its methods are safe for concurrent use.
type Matchmaker struct {
	cfg    Config
	log    *slog.Logger
	ctx    context.Context // ends with the matchmaker
	cancel context.CancelFunc
	wg     sync.WaitGroup
	saying chan struct{} // a token for each refusal that is being sent

	mu        sync.Mutex
	listener  *rnic.Listener
	slot      uint32
	endpoints map[uint32]*Endpoint
	held      int // requests that wait for an endpoint
	closed    bool
}

// New returns a matchmaker that does not listen yet.
func New(cfg Config) *Matchmaker {
	cfg.FirstPort = cmp.Or(cfg.FirstPort, DefaultPort)
	if cfg.Listen == nil {
		cfg.Listen = listenTCP
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	if cfg.Local == nil {
		cfg.Local = isLocal
	}
	m := &Matchmaker{cfg: cfg, log: cfg.Logger, saying: make(chan struct{}, refusals), endpoints: map[uint32]*Endpoint{}}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Bind takes a slot, and listens. Without, peers can't dial this process; it still can
// dial those that have a slot. It returns an error of the network, or one that wraps
// ErrNoSlot.
func (m *Matchmaker) Bind(ctx context.Context) error {
	n, slot, err := m.cfg.bind(ctx)
	if err != nil {
		return err
	}
	l, err := m.cfg.Device.ListenOn(n)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.listener != nil {
		_ = l.Close() // nobody has been told of it
		return rnic.ErrBusy
	}
	m.listener, m.slot = l, slot
	m.wg.Go(func() { m.serve(l) })
	m.log.Info("rendezvous", "address", l.Addr().String(), "slot", slot)
	return nil
}

// Slot returns the slot, or 0 if there is none.
func (m *Matchmaker) Slot() uint32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slot
}

// Close gives up all endpoints, and stops listening. When it returns, no goroutine of
// the matchmaker is left.
func (m *Matchmaker) Close() error {
	m.mu.Lock()
	m.closed = true
	l := m.listener
	all := make([]*Endpoint, 0, len(m.endpoints))
	for _, e := range m.endpoints {
		all = append(all, e)
	}
	m.mu.Unlock()
	m.cancel()
	for _, e := range all {
		e.Close()
	}
	var err error
	if l != nil {
		err = l.Close()
	}
	m.wg.Wait()
	return err
}

// serve takes requests until the listener is closed.
func (m *Matchmaker) serve(l *rnic.Listener) {
	for {
		r, err := l.Accept(m.ctx)
		if err != nil {
			return
		}
		m.incoming(r)
	}
}

// A request is one of a peer that waits for its queue pair.
type request struct {
	*rnic.ConnRequest
	Message
	from netip.Addr
	told bool // the log has been told that it is a stranger's; under the matchmaker's mu
}

// incoming gives a request to its queue pair.
func (m *Matchmaker) incoming(r *rnic.ConnRequest) {
	msg, err := Parse(r.PrivateData())
	if err == nil && msg.Kind != Ask {
		err = &MessageError{"it does not ask"}
	}
	if err != nil {
		m.log.Warn("a stranger at the rendezvous", "peer", r.RemoteAddr().String(), "error", err)
		m.refuse(r, Message{Reason: NotUnderstood})
		return
	}
	reason, dropped := m.hold(&request{ConnRequest: r, Message: msg, from: addrOf(r.RemoteAddr())})
	for _, d := range dropped {
		_ = d.Close() // its peer asks again, if it is still there
	}
	if reason != 0 {
		m.log.Info("rendezvous refused", "peer", r.RemoteAddr().String(), "qp", msg.To, "of", msg.From, "reason", reason.String())
		m.refuse(r, Message{From: msg.To, To: msg.From, Reason: reason})
	}
}

// hold keeps a request until its queue pair takes it, or says why not. It returns
// those that had to make room.
func (m *Matchmaker) hold(r *request) (reason Reason, dropped []*request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.endpoints[r.To]
	if e == nil {
		return NoSuchQP, nil
	}
	dropped = e.sift(func(old *request) bool {
		return old.Waiting() && (old.From != r.From || old.from != r.from) // else this one comes in its place
	})
	if len(e.held) == heldByEach { // most likely, the oldest is of a stranger
		oldest := e.held[0]
		dropped = append(dropped, e.sift(func(old *request) bool { return old != oldest })...)
	}
	if m.held >= heldByAll {
		for _, other := range m.endpoints {
			dropped = append(dropped, other.sift(func(old *request) bool { return old.Waiting() })...)
		}
		if m.held >= heldByAll {
			return NoPlace, dropped
		}
	}
	e.held = append(e.held, r)
	m.held++
	if e.attempt != nil {
		e.attempt.wake()
	}
	return 0, dropped
}

// refuse rejects a request. A peer that does not read can't hold up others.
func (m *Matchmaker) refuse(r *rnic.ConnRequest, msg Message) {
	msg.Kind = Refuse
	b, err := msg.AppendBinary(nil)
	select {
	case m.saying <- struct{}{}:
	default:
		err = errors.New("too many are being sent")
	}
	if err != nil {
		_ = r.Close() // which says enough
		return
	}
	m.wg.Go(func() {
		defer func() { <-m.saying }()
		if err := r.Reject(m.ctx, b); err != nil {
			m.log.Debug("rendezvous: refusal", "error", err)
		}
	})
}

// Endpoint makes the matchmaker know a queue pair by its number, until Close of what
// is returned.
func (m *Matchmaker) Endpoint(qpn uint32, qp *rnic.QP) (*Endpoint, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, rnic.ErrClosed
	case qpn > maxNumber || m.endpoints[qpn] != nil:
		return nil, &NumberError{qpn}
	}
	e := &Endpoint{m: m, num: qpn, qp: qp}
	m.endpoints[qpn] = e
	return e, nil
}

// addrOf returns the address of a side of a connection, without a zone.
func addrOf(a net.Addr) netip.Addr {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap().WithZone("")
}

// isLocal asks the operating system for the addresses of this host.
func isLocal(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	all, _ := net.InterfaceAddrs() // none is none
	return slices.ContainsFunc(all, func(n net.Addr) bool {
		p, err := netip.ParsePrefix(n.String())
		return err == nil && p.Addr().Unmap().WithZone("") == a
	})
}
