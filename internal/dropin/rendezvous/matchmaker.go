package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

	// Address is where the process can be called; the zero Addr stands for all
	// addresses of the host.
	Address netip.Addr

	// Reserve takes a port at a host:port without opening it, and Dial dials, from
	// an address if that is valid and can be. Nil stands for TCP.
	Reserve func(ctx context.Context, address string) (Port, error)
	Dial    func(ctx context.Context, from netip.Addr, to netip.AddrPort) (net.Conn, error)
	// Local reports whether an address is one of this host. Nil stands for asking
	// the operating system.
	Local func(netip.Addr) bool
	// SameUser reports whether the other end of a connection within this host is a
	// socket of this process's user. Nil stands for asking the operating system.
	SameUser func(local, remote net.Addr) bool

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
	port      Port // until it listens, or nil
	listener  *rnic.Listener
	slot      uint32
	endpoints map[uint32]*Endpoint
	held      backlog
	closed    bool
}

// New returns a matchmaker that does not listen yet.
func New(cfg Config) *Matchmaker {
	cfg.FirstPort = cmp.Or(cfg.FirstPort, DefaultPort)
	if cfg.Reserve == nil {
		cfg.Reserve = reserveTCP
	}
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	if cfg.Local == nil {
		cfg.Local = isLocal
	}
	if cfg.SameUser == nil {
		cfg.SameUser = sameUser
	}
	m := &Matchmaker{cfg: cfg, log: cfg.Logger, saying: make(chan struct{}, refusals), endpoints: map[uint32]*Endpoint{}}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Bind takes a slot, whose port stays closed until Listen. Without, peers can't dial
// this process; it still can dial those that have a slot. It returns an error of the
// network, or one that wraps ErrNoSlot.
func (m *Matchmaker) Bind(ctx context.Context) error {
	p, slot, err := m.cfg.bind(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.slot != 0 {
		_ = p.Close() // nobody has been notified of it
		return rnic.ErrBusy
	}
	m.port, m.slot = p, slot
	return nil
}

// Listen opens the port that Bind has taken, if there is one that is not open yet: from
// then on, peers can dial this process. Endpoint.Connect does it, too. It reports whether
// it has opened the port.
func (m *Matchmaker) Listen() (opened bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.port
	if m.closed || p == nil {
		return false, nil
	}
	m.port = nil
	n, err := p.Listen()
	if err != nil {
		_ = p.Close() // err says why
		return false, fmt.Errorf("the port for rendezvous: %w", err)
	}
	l, err := m.cfg.Device.ListenOn(n)
	if err != nil {
		return false, err
	}
	m.listener = l
	m.wg.Go(func() { m.serve(l) })
	m.log.Info("rendezvous", "address", l.Addr().String(), "slot", m.slot)
	return true, nil
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
	l, p := m.listener, m.port
	m.port = nil
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
	if p != nil {
		err = p.Close()
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
	reason, dropped := m.hold(&request{ConnRequest: r, Message: msg, source: m.sourceOf(r.LocalAddr(), r.RemoteAddr())})
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
	added, dropped := m.held.add(r, m.isWanted)
	if !added {
		return NoPlace, dropped
	}
	if e.attempt != nil {
		e.attempt.wake()
	}
	return 0, dropped
}

// isWanted reports whether a request is one that its queue pair is about to take. The
// caller holds mu.
func (m *Matchmaker) isWanted(r *request) bool {
	e := m.endpoints[r.To]
	return e != nil && e.attempt != nil && e.attempt.ctx.Err() == nil && e.attempt.judge(r) == thePeer
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

// addrOf returns the address of a side of a connection, with the zone of a link-local
// one.
func addrOf(a net.Addr) netip.Addr {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap()
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
