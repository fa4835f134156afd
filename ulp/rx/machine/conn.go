package machine

import (
	"net/netip"
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A connKey identifies the packets of a connection (draft §3). While the high bit of the
// epoch is set, the address is not part of it.
type connKey struct {
	epoch, id uint32
	client    bool // this side is the client
	addr      netip.AddrPort
}

// keyOf returns the key of the connection that a packet belongs to.
func keyOf(h *wire.Header, from netip.AddrPort) connKey {
	k := connKey{epoch: h.Epoch, id: h.ConnID(), client: !h.FromClient()}
	if h.Epoch>>31 == 0 {
		k.addr = from
	}
	return k
}

// A Conn is a connection: a context for calls between one client and one service.
type Conn struct {
	// Owner is for the owner's use.
	Owner any

	m      *Machine
	key    connKey
	peer   *peer
	index  uint8 // of security
	closed bool  // by the program
	inList bool  // in the machine's list of what has something to send

	service  uint16
	of       *Service // of a server's side
	upgrade  bool     // a client's side asks for it, and no reply has come yet
	limits   limits
	serial   uint32               // of the last packet that was sent
	calls    [wire.Channels]*Call // the newest of each channel
	numbers  [wire.Channels]uint32
	turn     uint8 // channel whose call sends next
	err      *AbortError
	abortDue bool

	clientSec secure.ClientConn
	serverSec secure.ServerConn
	secured   secure.Protection // once bodies can be sealed and opened
	opened    traffic
	sealed    traffic
	auth      handshake

	used       Time // when a call last began, was ended or was over
	prev, next *Conn
	place      int // in Machine.list
	timer
}

// limits are the time limits of calls.
type limits struct {
	dead time.Duration // of the peer
	idle time.Duration // of what moves; 0: none
	hard time.Duration // of everything; 0: none
}

// DialConfig has the parameters of a connection. The zero DialConfig has null security.
type DialConfig struct {
	// Security is how the caller proves its identity, and how data is
	// protected.
	Security secure.Client

	// Upgrade asks the server for a better service of the same kind, see Conn.Service.
	Upgrade bool

	// DeadTime is Config.DeadTime for this connection, if it is not 0.
	DeadTime time.Duration

	// IdleDead fails a call with -3 when nothing has moved for so long; 0 never does.
	IdleDead time.Duration

	// HardDead fails a call with -3 when it has lasted for so long; 0 never does.
	HardDead time.Duration
}

// Dial creates a connection to a service. It sends nothing before the first
// call.
func (m *Machine) Dial(now Time, to netip.AddrPort, service uint16, cfg DialConfig) (*Conn, error) {
	m.tick(now)
	if a := to.Addr(); !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || to.Port() == 0 {
		return nil, ErrAddress
	}
	if service == 0 {
		return nil, ErrService
	}
	key := connKey{epoch: m.cfg.Epoch, client: true}
	if key.epoch>>31 == 0 {
		key.addr = to
	}
	for key.id = m.nextID; m.conns[key] != nil; {
		key.id += wire.Channels
	}
	m.nextID = key.id + wire.Channels
	c := &Conn{m: m, key: key, service: service, upgrade: cfg.Upgrade}
	c.limits = limits{dead: cfg.DeadTime, idle: cfg.IdleDead, hard: cfg.HardDead}
	if c.limits.dead <= 0 {
		c.limits.dead = m.cfg.DeadTime
	}
	if cfg.Security != nil {
		c.index = cfg.Security.Index()
		sec, err := cfg.Security.NewConn(secure.Conn{Epoch: key.epoch, ID: key.id, Index: c.index, Checksum: true})
		if err != nil {
			return nil, err
		}
		c.clientSec, c.secured = sec, sec
	}
	c.enter(to)
	m.stats.ClientConns++
	return c, nil
}

// enter registers a connection.
func (c *Conn) enter(addr netip.AddrPort) {
	c.alarm = c
	c.used = c.m.now
	c.peer = c.m.peer(addr)
	c.peer.refs++
	c.m.conns[c.key] = c
	c.m.list = enlist(c.m.list, c, &c.place)
}

// accept creates a connection from a client's first packet. It returns nil if the
// packet can't create one.
func (m *Machine) accept(h *wire.Header, key connKey, from netip.AddrPort) *Conn {
	if h.Type != wire.TypeData || h.Call == 0 || h.Seq == 0 || h.Seq > uint32(m.cfg.Window) {
		m.stats.Drops.NoConn++
		return nil
	}
	s := m.services[h.Service]
	if s == nil {
		m.stats.Drops.NoService++
		m.reject(h, from, wire.InvalidOperation)
		return nil
	}
	upgraded := false
	if better := m.services[s.Upgrade]; h.UserStatus == 1 && better != nil {
		s, upgraded = better, true
	}
	class, ok := s.class(h.Security)
	if !ok {
		m.stats.Drops.NoService++
		m.reject(h, from, wire.InvalidOperation)
		return nil
	}
	c := &Conn{m: m, key: key, service: s.ID, of: s, index: h.Security}
	c.limits = limits{dead: s.DeadTime, idle: s.IdleDead, hard: s.HardDead}
	if c.limits.dead <= 0 {
		c.limits.dead = m.cfg.DeadTime
	}
	if class != nil {
		sec, err := class.NewConn(secure.Conn{Epoch: key.epoch, ID: key.id, Index: h.Security, Checksum: h.Checksum != 0})
		if err != nil {
			m.stats.Drops.NoService++
			m.reject(h, from, codeOf(err))
			return nil
		}
		c.serverSec = sec
	}
	if m.served.n >= m.cfg.MaxConns && !m.makeRoom() {
		m.stats.Drops.Full++
		return nil
	}
	c.enter(from)
	m.served.push(c)
	m.stats.ServerConns++
	if upgraded {
		m.stats.Upgrades++
	}
	m.timers.set(&c.timer, m.now+m.cfg.IdleTime)
	return c
}

// makeRoom removes the connection of a client that has been idle longest. It reports
// whether there was one without a call that is being served.
func (m *Machine) makeRoom() bool {
	const look = 64 // so that a flood does not cost more for each packet than this
	c := m.served.first
	for range min(look, m.served.n) {
		if !c.working() {
			m.stats.Evicted++
			c.remove()
			return true
		}
		after := c.next
		m.served.remove(c)
		m.served.push(c)
		c = after
	}
	return false
}

// working reports whether a program holds a call of the connection.
func (c *Conn) working() bool {
	for _, k := range c.calls {
		if k != nil && k.offered && !k.ended {
			return true
		}
	}
	return false
}

// Service is the service ID, which differs from the one that was dialed if the server
// has granted an upgrade.
func (c *Conn) Service() uint16 { return c.service }

// Peer is the peer's address.
func (c *Conn) Peer() netip.AddrPort { return c.peer.addr }

// ID is the connection ID, without a channel.
func (c *Conn) ID() uint32 { return c.key.id }

// Err returns how the connection has failed, or nil.
func (c *Conn) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// Caller identifies the caller of the connection.
func (c *Conn) Caller() secure.Caller {
	if c.serverSec == nil {
		return secure.Caller{}
	}
	return c.serverSec.Caller()
}

// Close ends the connection and its calls. Calls that have not ended are aborted.
func (c *Conn) Close(now Time) {
	c.m.tick(now)
	if c.closed {
		return
	}
	for _, k := range c.calls {
		if k != nil {
			k.End(now)
			k.endNow()
			if k.prior != nil {
				k.prior.endNow()
			}
		}
	}
	c.closed = true
	c.retire()
}

// retire removes a client's connection once it was closed and has nothing to send.
func (c *Conn) retire() {
	if c.closed && !c.sending() {
		c.remove()
	}
}

// fail ends the connection and its calls. With tell, it notifies the peer.
func (c *Conn) fail(err *AbortError, tell bool) {
	if c.err != nil {
		return
	}
	err.Conn = true
	c.err = err
	for _, k := range c.calls {
		if k != nil {
			k.fail(err)
		}
	}
	c.dropResponse()
	if tell {
		c.abortDue = true
		c.wake()
	}
	if c.key.client {
		c.m.emit(Effect{Kind: Freed, Conn: c})
	}
}

// remove forgets the connection.
func (c *Conn) remove() {
	m := c.m
	if m.conns[c.key] != c {
		return
	}
	for _, k := range c.calls {
		if k != nil {
			k.fail(&AbortError{Code: wire.CallDead})
			k.detach()
		}
	}
	m.timers.stop(&c.timer)
	delete(m.conns, c.key)
	var moved *Conn
	m.list, moved = delist(m.list, c.place)
	moved.place = c.place
	if c.key.client {
		m.stats.ClientConns--
	} else {
		m.served.remove(c)
		m.stats.ServerConns--
	}
	c.peer.release(m.now)
	if c.err == nil {
		c.err = &AbortError{Code: wire.CallDead, Conn: true, Cause: ErrClosed}
	}
}

// gone reports whether the machine has forgotten the connection.
func (c *Conn) gone() bool { return c.m.conns[c.key] != c }

// busy notes that a call has begun or ended.
func (c *Conn) busy() {
	c.used = c.m.now
	if !c.key.client {
		c.m.served.remove(c)
		c.m.served.push(c)
	}
}

// wake makes Pull ask the connection for datagrams.
func (c *Conn) wake() {
	if !c.inList {
		c.inList = true
		c.m.ready.Push(c)
	}
}

// ring is what the connection does at a deadline: it repeats a challenge, and goes when it
// was idle for long.
func (c *Conn) ring(now Time) Time {
	at := c.auth.ring(c, now)
	if c.gone() || c.key.client {
		return at
	}
	idle := c.used + c.m.cfg.IdleTime
	if c.active() { // though its program may have left a call, the reply is on its way
		idle = now + c.m.cfg.IdleTime
	}
	if now >= idle {
		c.remove()
		return never
	}
	return min(at, idle)
}

// idlers is a list of connections, the one that has been idle longest first.
type idlers struct {
	first, last *Conn
	n           int
}

func (l *idlers) push(c *Conn) {
	c.prev, c.next = l.last, nil
	if l.last != nil {
		l.last.next = c
	} else {
		l.first = c
	}
	l.last = c
	l.n++
}

func (l *idlers) remove(c *Conn) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		l.first = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		l.last = c.prev
	}
	c.prev, c.next = nil, nil
	l.n--
}
