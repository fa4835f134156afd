package machine

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"

	"urnic/internal/ring"
	"urnic/ulp/rdp/wire"
)

// A Machine is the protocol of one endpoint.
type Machine struct {
	cfg Config
	now Time

	conns     map[Name]*Conn
	listeners map[service][]*Listener
	halfOpen  int // connections in SYN-RCVD that peers have begun
	memory    int // bytes held for data that was received and not read

	secret     []byte
	cookieTime Time
	issued     uint32 // initial sequence numbers that were given out

	timers  timers
	ready   ring.Ring[*Conn] // that may have something to send
	turn    int              // segments that the first of them has sent in its turn
	raw     ring.Ring[rawSegment]
	answers bucket
	pool    pool

	in     wire.Header // of the segment that arrives
	out    wire.Header // of the segment that is being built
	pseudo wire.Pseudo

	events, given []Event
	counters      Counters

	// iss chooses initial sequence numbers; tests replace it.
	iss func(Name) uint32
}

// Counters counts events of an endpoint.
type Counters struct {
	Received     uint64 `json:"received"` // segments, of whatever form
	Sent         uint64 `json:"sent"`
	Malformed    uint64 `json:"malformed"`     // received: dropped by a rule H1 to H6
	BadChecksum  uint64 `json:"bad_checksum"`  // of them: by H4
	OtherVersion uint64 `json:"other_version"` // received: of a version that is not enabled
	Strays       uint64 `json:"strays"`        // received: for no connection, and no SYN that a listener accepts
	Answered     uint64 `json:"answered"`      // of them: answered with an RST
	Unanswered   uint64 `json:"unanswered"`    // of them: not answered, as there have been too many
	Opened       uint64 `json:"opened"`        // connections that reached OPEN
	Refused      uint64 `json:"refused"`       // SYNs with impossible limits
	NoRoom       uint64 `json:"no_room"`       // SYNs dropped, as there were too many connections
	Cookies      uint64 `json:"cookies"`       // SYNs answered without state
	CookiesUsed  uint64 `json:"cookies_used"`  // connections that such an answer has opened
	Expired      uint64 `json:"expired"`       // half-open connections that were dropped
	NoMemory     uint64 `json:"no_memory"`     // segments with data dropped, as too much was unread
	Unread       uint64 `json:"unread"`        // segments with data dropped, as their connection's queue was full
}

// New returns a new endpoint. The error says what is invalid in the
// configuration.
func New(cfg Config) (*Machine, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg, conns: map[Name]*Conn{}, listeners: map[service][]*Listener{}, answers: newBucket(cfg.Answers), cookieTime: cookieTime}
	m.secret = append(m.secret, cfg.Secret...)
	if len(m.secret) == 0 {
		m.secret = make([]byte, sha256.Size)
		rand.Read(m.secret)
	}
	m.iss = m.chooseISS
	m.in.EACKs = make([]uint32, 0, wire.MaxEACKs)
	m.out.EACKs = make([]uint32, 0, wire.MaxEACKs)
	return m, nil
}

// Counters returns the counters of the endpoint.
func (m *Machine) Counters() Counters { return m.counters }

// Conns returns how many connections there are, in any state but CLOSED.
func (m *Machine) Conns() int { return len(m.conns) }

// HalfOpen returns how many connections peers have begun that are not open yet.
func (m *Machine) HalfOpen() int { return m.halfOpen }

// Memory returns how many bytes are held for data that was received and not read.
func (m *Machine) Memory() int { return m.memory }

// Conn returns the connection with a name, or nil.
func (m *Machine) Conn(n Name) *Conn { return m.conns[n] }

// Receive processes a segment that a path has delivered. The machine does not retain its
// memory.
func (m *Machine) Receive(now Time, p Path, segment []byte) {
	m.tick(now)
	m.counters.Received++
	p = p.unmap()
	h := &m.in
	data, err := h.Parse(segment, m.pseudoOf(p.Remote.Addr(), p.Local))
	if err != nil { // H1 to H6
		m.counters.Malformed++
		if bad, ok := errors.AsType[*wire.FormatError](err); ok && bad.Fault == wire.WrongChecksum {
			m.counters.BadChecksum++
		}
		return
	}
	if !m.cfg.Versions.has(h.Version) { // H1
		m.counters.OtherVersion++
		return
	}
	n := Name{p, h.Version, h.Dest, h.Source}
	if c := m.conns[n]; c != nil {
		c.arrive(h, data)
		return
	}
	m.arriveAlone(n, h, data)
}

// unmap returns the path with IPv4 addresses as such.
func (p Path) unmap() Path {
	if p.Local.Is4In6() {
		p.Local = p.Local.Unmap()
	}
	if p.Remote.Addr().Is4In6() {
		p.Remote = netip.AddrPortFrom(p.Remote.Addr().Unmap(), p.Remote.Port())
	}
	return p
}

// pseudoOf returns the pseudo-header of segments from src to dst; nil if there is none.
func (m *Machine) pseudoOf(src, dst netip.Addr) *wire.Pseudo {
	if !m.cfg.Pseudo {
		return nil
	}
	m.pseudo = wire.Pseudo{Src: src, Dst: dst}
	return &m.pseudo
}

// chooseISS returns an initial sequence number: a clock of 4 µs, and a keyed hash of the
// connection's name (RFC 908 §3.4.1, RFC 6528 §3). Each one differs from the one before by more
// than a window, so that nothing of an earlier connection is inside a later one's.
func (m *Machine) chooseISS(n Name) uint32 {
	const tick = 4e3         // ns
	const apart = 1<<17 + 29 // more than 2 * maxWindow
	m.issued++
	clock := uint32((m.cfg.Start + m.now) / tick)
	return clock + m.issued*apart + uint32(m.hash(n, 'i', 0))
}

// hash returns a keyed hash of a name, for a purpose.
func (m *Machine) hash(n Name, purpose byte, salt uint64) uint64 {
	b := make([]byte, 0, 160)
	b = append(b, m.secret...)
	b = append(b, purpose, n.Version)
	local, remote := n.Path.Local.As16(), n.Path.Remote.Addr().As16()
	b = append(append(b, local[:]...), remote[:]...)
	b = binary.BigEndian.AppendUint16(b, n.Path.Remote.Port())
	b = binary.BigEndian.AppendUint16(b, n.Local)
	b = binary.BigEndian.AppendUint16(b, n.Remote)
	b = binary.BigEndian.AppendUint64(b, salt)
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:])
}

// A bucket bounds how often something is done.
type bucket struct {
	rate   int // for each second; negative: never
	tokens float64
	at     Time
}

func newBucket(rate int) bucket {
	if rate == 0 {
		rate = 1000
	}
	return bucket{rate: rate, tokens: float64(max(rate, 0))}
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
