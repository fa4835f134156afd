package machine

import (
	"cmp"
	"net/netip"
	"slices"

	"urnic/internal/ring"
	"urnic/ulp/rdp/wire"
)

// A service is the common state of the listeners at one port.
type service struct {
	version uint8
	port    uint16
}

// A Listener is a passive open, which accepts many connections. It is in LISTEN until Close.
type Listener struct {
	m       *Machine
	cfg     ListenConfig
	p       Params
	pending int // connections that are half-open or wait for Accept
	queue   ring.Ring[*Conn]
	told    bool
	closed  bool
}

// Listen begins a passive open (U2). The errors are ErrNoPort, ErrPort, ErrVersion, ErrPortInUse,
// and those of invalid parameters.
func (m *Machine) Listen(cfg ListenConfig) (*Listener, error) {
	p := cfg.withDefaults(&m.cfg)
	if err := p.check(); err != nil {
		return nil, err
	}
	if cfg.Versions == 0 {
		if cfg.Versions = m.cfg.Versions; cfg.Port > maxPort1 {
			cfg.Versions &^= Version1
		}
	}
	def(&cfg.Backlog, 128)
	cfg.Local = cfg.Local.Unmap()
	cfg.Host = netip.AddrPortFrom(cfg.Host.Addr().Unmap(), cfg.Host.Port())
	switch {
	case cfg.Port == 0:
		return nil, ErrNoPort
	case cfg.Versions == 0 || cfg.Versions&^m.cfg.Versions != 0:
		return nil, ErrVersion
	case cfg.Versions.has(1) && cfg.Port > maxPort1:
		return nil, ErrPort
	case cfg.Backlog < 0:
		return nil, configError("the backlog is negative")
	}
	l := &Listener{m: m, cfg: cfg, p: p}
	for _, s := range l.services() {
		for _, other := range m.listeners[s] {
			if other.cfg.Local == cfg.Local && other.cfg.Host == cfg.Host && other.cfg.Remote == cfg.Remote {
				return nil, ErrPortInUse
			}
		}
	}
	for _, s := range l.services() {
		m.listeners[s] = append(m.listeners[s], l)
	}
	return l, nil
}

// services returns where the listener waits.
func (l *Listener) services() []service {
	var all []service
	for version := uint8(1); version <= 2; version++ {
		if l.cfg.Versions.has(version) {
			all = append(all, service{version, l.cfg.Port})
		}
	}
	return all
}

// takes reports how exactly the listener matches a name: 0 if it does not, else the higher
// the more specific it is.
func (l *Listener) takes(n *Name) int {
	match := 1
	if a := l.cfg.Local; a.IsValid() {
		if a != n.Path.Local {
			return 0
		}
		match++
	}
	if h := l.cfg.Host; h.Addr().IsValid() {
		if h.Addr() != n.Path.Remote.Addr() || h.Port() != 0 && h.Port() != n.Path.Remote.Port() {
			return 0
		}
		match += 2
	}
	if r := l.cfg.Remote; r != 0 {
		if r != n.Remote {
			return 0
		}
		match += 2
	}
	return match
}

// listener returns the listener that a connection of a name would be for, or nil.
func (m *Machine) listener(n *Name) *Listener {
	var best *Listener
	most := 0
	for _, l := range m.listeners[service{n.Version, n.Local}] {
		if match := l.takes(n); match > most {
			best, most = l, match
		}
	}
	return best
}

// arriveAlone processes a segment for which there is no connection: as in LISTEN if there
// is a listener for it, else as in CLOSED (RFC 908 p.24, p.25).
func (m *Machine) arriveAlone(n Name, h *wire.Header, data []byte) {
	l := m.listener(&n)
	switch {
	case l == nil:
		m.counters.Strays++
		m.reject(n, h)
	case h.Flags&wire.RST != 0: // L1
		m.counters.Strays++
	case h.Flags&wire.ACK != 0 || h.Flags&wire.SYN == 0: // L2
		if !l.redeem(n, h, data) {
			m.counters.Strays++
			m.reject(n, h)
		}
	default: // L3; L4 can't be, as all other forms are forbidden
		l.syn(n, h)
	}
}

// syn processes a SYN (L3).
func (l *Listener) syn(n Name, h *wire.Header) {
	m := l.m
	theirs := limitsOf(h)
	if !theirs.usable() {
		m.counters.Refused++
		m.refuse(n, h)
		return
	}
	full := l.pending >= l.cfg.Backlog || m.halfOpen >= m.cfg.MaxHalfOpen || len(m.conns) >= m.cfg.MaxConns
	if m.cfg.Cookies == CookiesAlways || full && m.cfg.Cookies == CookiesIfFull {
		l.sendCookie(n, h)
		return
	}
	if full {
		m.counters.NoRoom++ // the peer sends it again
		return
	}
	c := m.conn(n, &l.p)
	c.listener = l
	l.pending++
	c.half = true
	m.halfOpen++
	m.conns[n] = c
	c.begin(m.iss(n))
	c.adopt(h.Seq, theirs)
	c.enter(SynRcvd, nil)
	c.sendSYN()
}

// opened queues a connection that is now open for Accept.
func (l *Listener) opened(c *Conn) {
	l.queue.Push(c)
	if !l.told {
		l.told = true
		l.m.events = append(l.m.events, Event{Kind: Acceptable, Listener: l})
	}
}

// Accept returns the connection that has been open longest and was not returned yet; nil if
// there is none. It may have ended since.
func (l *Listener) Accept() *Conn {
	if l.queue.Len() == 0 {
		return nil
	}
	c := l.queue.Pop()
	c.listener = nil
	l.pending--
	return c
}

// abandon closes a connection that Accept has not returned.
func (l *Listener) abandon(c *Conn) {
	if c.state == Open || c.state == SynRcvd {
		c.fail(ErrListener)
		c.shut()
	}
	c.dropQueue()
}

// State returns LISTEN, or CLOSED after Close.
func (l *Listener) State() State {
	if l.closed {
		return Closed
	}
	return Listen
}

// Port returns the RDP port.
func (l *Listener) Port() uint16 { return l.cfg.Port }

// Pending returns how many connections are half-open or wait for Accept.
func (l *Listener) Pending() int { return l.pending }

// Close ends the passive open (U6). Connections that Accept has not returned are closed. A second
// call returns ErrNotOpen.
func (l *Listener) Close(now Time) error {
	m := l.m
	m.tick(now)
	if l.closed {
		return ErrNotOpen
	}
	l.closed = true
	for _, s := range l.services() {
		rest := slices.DeleteFunc(m.listeners[s], func(other *Listener) bool { return other == l })
		if m.listeners[s] = rest; len(rest) == 0 {
			delete(m.listeners, s)
		}
	}
	for c := l.Accept(); c != nil; c = l.Accept() {
		l.abandon(c)
	}
	if l.pending == 0 {
		return nil
	}
	var half []*Conn
	for _, c := range m.conns {
		if c.listener == l {
			half = append(half, c)
		}
	}
	slices.SortFunc(half, func(a, b *Conn) int { return cmp.Compare(a.iss, b.iss) })
	for _, c := range half {
		l.abandon(c)
	}
	return nil
}
