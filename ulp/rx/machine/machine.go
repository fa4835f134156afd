package machine

import (
	"net/netip"
	"time"

	"urnic/internal/ring"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A Machine is the protocol of one endpoint.
type Machine struct {
	cfg Config
	now Time

	conns    map[connKey]*Conn
	peers    map[netip.AddrPort]*peer
	services map[uint16]*Service
	nextID   uint32

	// The same in lists, for debug requests.
	list     []*Conn
	peerList []*peer

	served  idlers // connections of clients, the one that has been idle longest first
	memory  int    // bytes of data that was received and not read
	suspect int    // the same, of callers that have not proved their identity

	timers  timers
	ready   ring.Ring[*Conn] // that have something to send
	raw     ring.Ring[datagram]
	bursts  int
	answers bucket
	pool    pool

	effects, given []Effect
	stats          Stats
}

// A datagram is a packet that belongs to no connection.
type datagram struct {
	to netip.AddrPort
	b  []byte
}

// New returns a new machine.
func New(cfg Config) *Machine {
	m := &Machine{
		cfg:      cfg.withDefaults(),
		conns:    map[connKey]*Conn{},
		peers:    map[netip.AddrPort]*peer{},
		services: map[uint16]*Service{},
	}
	m.nextID = m.cfg.Rand.Uint32() &^ (wire.Channels - 1)
	m.answers = bucket{rate: m.cfg.Answers, tokens: float64(max(m.cfg.Answers, 0))}
	return m
}

// A Service is a service that clients may call.
type Service struct {
	// ID is the service ID, which is not 0.
	ID uint16

	// Upgrade is the ID of another service that gets the connections of clients that
	// request an upgrade, or 0.
	Upgrade uint16

	// Security are the security classes that callers may use.
	Security []secure.Server

	// NoNull refuses callers without a security class.
	NoNull bool

	// Reach makes the machine ask clients for a sign of life before their first call is
	// carried out, and after a minute without a call, so that no work is done for a
	// forged address.
	Reach bool

	// DeadTime is Config.DeadTime for this service, if it is not 0.
	DeadTime time.Duration

	// IdleDead fails a call with -3 when nothing has moved for so long; 0 never does.
	IdleDead time.Duration

	// HardDead fails a call with -3 when it has lasted for so long; 0 never does.
	HardDead time.Duration
}

// class returns the security class of an index. ok is false if the service has none.
func (s *Service) class(index uint8) (class secure.Server, ok bool) {
	if index == 0 {
		return nil, !s.NoNull
	}
	for _, c := range s.Security {
		if c.Index() == index {
			return c, true
		}
	}
	return nil, false
}

// Serve registers a service that clients may call.
func (m *Machine) Serve(s Service) error {
	if s.ID == 0 || m.services[s.ID] != nil {
		return ErrService
	}
	m.services[s.ID] = &s
	return nil
}

// Epoch is the epoch of the connections that this endpoint makes.
func (m *Machine) Epoch() uint32 { return m.cfg.Epoch }

// A bucket bounds how often something is done.
type bucket struct {
	rate   int // for each second; negative: never
	tokens float64
	at     Time
}

// take reports whether it may be done once more.
func (b *bucket) take(now Time) bool {
	if b.rate < 0 {
		return false
	}
	b.tokens = min(float64(b.rate), b.tokens+float64(b.rate)*(now-b.at).Seconds())
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
