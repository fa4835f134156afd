package capture

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"time"
)

const (
	// maxConns bounds how many connections are followed at a time. Of more,
	// the one that was silent for longest is given up.
	maxConns = 1 << 16
	// maxEnded is how many connections are remembered that have ended, so that
	// what still comes of them is not taken for another one.
	maxEnded = 1 << 12
	// maxGone is how many connections are remembered that were given up.
	maxGone = 1 << 16
	// maxAhead bounds what one direction may hold beyond a hole, in bytes;
	// maxAheadTotal bounds the sum over all connections.
	maxAhead      = 8 << 20
	maxAheadTotal = 64 << 20
	// maxSentTotal bounds what is kept of delivered bytes.
	maxSentTotal = 64 << 20
	// maxPieces bounds into how many pieces that may be cut.
	maxPieces = 1 << 13
	// maxHeld bounds how many packets of a connection wait for one that the
	// capture may have out of order.
	maxHeld = 32
	// maxJump is how far from its place a packet's sequence number may be.
	maxJump = 1 << 30
)

// A Side is one end of a TCP connection.
type Side uint8

// The sides of a connection.
const (
	Opener   Side = 0 // sent the SYN
	Acceptor Side = 1
)

// At says where in the capture something was seen.
type At struct {
	Time   time.Time
	Packet int
	// BadChecksum reports that the packet's TCP checksum is wrong, so that its bytes
	// may not be what was sent.
	BadChecksum bool
}

// A Conn is a TCP connection in a capture.
type Conn struct {
	Ends [2]netip.AddrPort // by Side
	// FromStart tells for each side's stream whether the capture holds its
	// beginning. If both are false, which side is the Opener is a guess.
	FromStart [2]bool

	ignored bool
}

// Ignore says that nothing more of the connection is wanted.
func (c *Conn) Ignore() { c.ignored = true }

// A Consumer takes the streams of one connection. The calls come in the order
// in which the capture saw things become known.
type Consumer interface {
	// Data brings the next bytes of a side's stream. They are valid during
	// the call, in which they may be overwritten.
	Data(from Side, at At, b []byte)
	// Hole says that the next n bytes of a side's stream were not captured.
	Hole(from Side, at At, n int)
	// Close says that a side closed its stream, or reset the connection. After a reset,
	// bytes that were in transit may still come.
	Close(from Side, at At, reset bool)
	// Drop says that a segment of a side was left out because a TCP would ignore it.
	Drop(from Side, at At, d Drop)
	// Differs says that a side sent bytes again that now read b. The first of them is
	// the one that lies back bytes before the end of what Data has brought.
	Differs(from Side, at At, back int, b []byte)
	// Acked says that all of a side's stream was acknowledged but the last left bytes
	// of what Data has brought.
	Acked(from Side, at At, left int)
	// End is the last call: the capture holds no more of the connection.
	End()
}

// Stats counts what an Assembler was given.
type Stats struct {
	Packets     int
	TCP         int // packets
	Connections int // TCP connections
	Fragments   int // fragments of IP packets that were not put together
	Unknown     int // packets of a link type that is not known
	Short       int // TCP packets of whose payload the capture kept only a part
	ShortBytes  int // what it did not keep of them
	// Unread counts the packets that may hold TCP and could not be decoded, by the
	// reason, the most frequent one first.
	Unread []UnreadCount
	// GivenUp counts connections that were given up because too many were open, and
	// that continued.
	GivenUp int
	Dropped Drops // segments that were left out, by DropKind
}

// An UnreadCount is how many packets could not be decoded for a reason.
type UnreadCount struct {
	Unread
	Packets int
}

// maxUnread bounds how many reasons are distinguished.
const maxUnread = 64

// An Assembler puts the TCP streams of a capture together.
type Assembler struct {
	// RoCE, if it is not nil, is called for each packet of RoCEv2 with what UDP carries,
	// which is valid during the call.
	RoCE func(at At, src, dst netip.Addr, b []byte)
	// UDP, if it is not nil, is called for each UDP datagram that is neither RoCEv2 nor an
	// encapsulation.
	UDP func(at At, d *Datagram)
	// RDP, if it is not nil, is called for each packet of IP protocol 27. Its ports are 0.
	RDP func(at At, d *Datagram)

	open   func(*Conn) Consumer
	dec    *decoder
	conns  map[tuple]*conn
	lru    *list.List         // of *conn that have not ended, the longest silent first
	ended  *list.List         // of *conn that have ended, the first one first
	gone   map[tuple]struct{} // connections that were given up
	ahead  int                // bytes held beyond holes
	sent   int                // bytes that were delivered and are not acknowledged, as far as they are kept
	stats  Stats
	unread map[Unread]int

	maxConns, maxEnded, maxAhead, maxAheadTotal int // the constants, but in tests
}

// A conn is a connection being put together.
type conn struct {
	Conn
	consumer Consumer
	key      tuple
	number   int
	dirs     [2]direction
	held     []heldSegment
	place    *list.Element // in lru, or in ended if over
	over     bool          // both sides have closed, or one has reset the connection
	again    *newcomer     // a SYN that may open another connection between the same ports
	last     At
}

// A heldSegment waits for a packet that should have come before it.
type heldSegment struct {
	segment
	from Side
	at   At
}

// NewAssembler returns an Assembler that calls open for each connection that
// it finds. A connection for which open returns nil is ignored.
func NewAssembler(open func(*Conn) Consumer) *Assembler {
	return &Assembler{
		open: open, dec: newDecoder(), conns: make(map[tuple]*conn), lru: list.New(), ended: list.New(),
		gone: make(map[tuple]struct{}), unread: make(map[Unread]int),
		maxConns: maxConns, maxEnded: maxEnded, maxAhead: maxAhead, maxAheadTotal: maxAheadTotal,
	}
}

// ReadAll feeds the Assembler with all that is left of a capture, and ends it.
// The error is the Reader's, or the context's.
func (a *Assembler) ReadAll(ctx context.Context, r *Reader) error {
	defer a.End()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		a.Add(&p)
	}
}

// Stats returns what was counted so far.
func (a *Assembler) Stats() Stats {
	s := a.stats
	for u, n := range a.unread {
		s.Unread = append(s.Unread, UnreadCount{u, n})
	}
	slices.SortFunc(s.Unread, func(x, y UnreadCount) int {
		return cmp.Or(cmp.Compare(y.Packets, x.Packets), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Number, y.Number))
	})
	return s
}

// Add takes the next packet of the capture.
func (a *Assembler) Add(p *Packet) {
	a.stats.Packets++
	s, verdict := a.dec.decode(p)
	a.stats.Fragments -= a.dec.joined
	switch verdict {
	case isFragment:
		a.stats.Fragments++
		return
	case isUnknown:
		a.stats.Unknown++
		return
	case isUnread:
		u := a.dec.unread
		if a.unread[u] == 0 && len(a.unread) >= maxUnread {
			u = Unread{Kind: UnreadMore}
		}
		a.unread[u]++
		return
	case isOther:
		return
	case isRoCE:
		if a.RoCE != nil {
			a.RoCE(At{Time: p.Time, Packet: p.Number}, s.src.Addr(), s.dst.Addr(), s.data)
		}
		return
	case isUDP:
		if a.UDP != nil {
			a.user(p, &s)
		}
		return
	case isRDP:
		if a.RDP != nil {
			a.bare(p, &s)
		}
		return
	case isTCP:
		a.stats.TCP++
		if s.missing > 0 {
			a.stats.Short++
			a.stats.ShortBytes += int(s.missing)
		}
	}
	at := At{Time: p.Time, Packet: p.Number}
	c, from := a.lookup(&s, at)
	if c == nil {
		return
	}
	if c.ignored {
		a.watch(c, from, &s)
		return
	}
	c.last = at
	if a.refuses(c, from, at, &s) {
		return
	}
	if s.ok {
		a.believe(c, 1-from, s.ack)
	}
	if c.waits(from, &s) {
		a.hold(c, from, at, &s)
		return
	}
	a.process(c, from, at, &s)
	a.release(c)
	a.settle(c)
}

// End says that the capture holds no more packets.
func (a *Assembler) End() {
	left := make([]*conn, 0, len(a.conns))
	for _, c := range a.conns {
		left = append(left, c)
	}
	slices.SortFunc(left, func(x, y *conn) int { return cmp.Compare(x.number, y.number) })
	for _, c := range left {
		a.drop(c)
	}
}

// lookup finds or makes the connection of a segment. It returns none for a segment that
// is left out.
func (a *Assembler) lookup(s *segment, at At) (*conn, Side) {
	key := newTuple(s.src, s.dst)
	if c := a.conns[key]; c != nil {
		from := c.side(s.src)
		switch a.fits(c, from, s) {
		case fitsThis:
			if !c.over {
				a.lru.MoveToBack(c.place)
			}
			return c, from
		case fitsNone:
			a.remark(c, from, at, Drop{Kind: DropSYN})
			return nil, 0
		case fitsPerhaps:
			a.tellNewcomer(c)
			c.again = &newcomer{segment: *s, from: from, at: at}
			c.again.data, c.again.missing = nil, s.size() // nobody sends bytes that early
			return nil, 0
		case fitsNewcomer:
			n := c.again
			c.again = nil
			a.drop(c)
			c = a.newConn(key, &n.segment)
			a.process(c, c.side(n.src), n.at, &n.segment)
			return c, c.side(s.src)
		case fitsAnother:
			a.drop(c) // the ports are used again
		}
	}
	if !s.syn && s.size() == 0 {
		return nil, 0
	}
	if _, was := a.gone[key]; was {
		delete(a.gone, key)
		if !s.syn {
			a.stats.GivenUp++
		}
	}
	c := a.newConn(key, s)
	return c, c.side(s.src)
}

// newConn begins a connection with its first segment.
func (a *Assembler) newConn(key tuple, s *segment) *conn {
	if a.lru.Len() >= a.maxConns {
		c := a.lru.Front().Value.(*conn)
		switch {
		case c.ignored:
		case len(a.gone) < maxGone:
			a.gone[c.key] = struct{}{}
		default:
			a.stats.GivenUp++ // perhaps
		}
		a.drop(c)
	}
	c := &conn{key: key, number: a.stats.Connections}
	a.stats.Connections++
	c.Ends = [2]netip.AddrPort{s.src, s.dst}
	opened := s.syn && !s.ok
	accepted := s.syn && s.ok
	// Without a SYN, the lower port is more likely to be the listener's.
	if accepted || !opened && s.src.Port() < s.dst.Port() {
		c.Ends[Opener], c.Ends[Acceptor] = s.dst, s.src
	}
	c.place = a.lru.PushBack(c)
	a.conns[key] = c
	if c.consumer = a.open(&c.Conn); c.consumer == nil {
		c.ignored = true
	}
	return c
}

// finished moves a connection to those that have ended.
func (a *Assembler) finished(c *conn) {
	if c.over {
		return
	}
	c.over = true
	a.lru.Remove(c.place)
	c.place = a.ended.PushBack(c)
	if a.ended.Len() > a.maxEnded {
		a.drop(a.ended.Front().Value.(*conn))
	}
}

// watch notices the end of a connection of which nothing is wanted.
func (a *Assembler) watch(c *conn, from Side, s *segment) {
	a.forget(c)
	if s.fin {
		c.dirs[from].closed = true
	}
	if s.rst || c.dirs[0].closed && c.dirs[1].closed {
		a.finished(c)
	}
}

func (c *conn) side(src netip.AddrPort) Side {
	if src == c.Ends[Opener] {
		return Opener
	}
	return Acceptor
}

// forget lets go of what was kept of a connection that is ignored.
func (a *Assembler) forget(c *conn) {
	for i := range c.held {
		a.ahead -= len(c.held[i].data)
	}
	c.held = nil
	for i := range c.dirs {
		d := &c.dirs[i]
		a.ahead -= d.held
		a.sent -= len(d.sent)
		for _, v := range d.variants {
			a.ahead -= len(v.data)
		}
		d.pending, d.held, d.variants, d.sent, d.rst = nil, 0, nil, nil, nil
		for _, h := range d.suspects {
			a.ahead -= len(h.data)
		}
		d.suspects = nil
	}
	c.again = nil
}

// drop delivers what is left of a connection and forgets it.
func (a *Assembler) drop(c *conn) {
	if c.ignored {
		a.forget(c)
	}
	a.tellNewcomer(c)
	for len(c.held) > 0 {
		a.giveUp(c)
	}
	for side := range c.dirs {
		for len(c.dirs[side].suspects) > 0 {
			a.useSuspect(c, Side(side), 0)
		}
	}
	for side := range c.dirs {
		a.settleAtEnd(c, Side(side))
	}
	for side := range c.dirs {
		a.flush(c, Side(side), c.last)
	}
	if !c.ignored {
		c.consumer.End()
	}
	c.ignored = true
	a.forget(c)
	if c.over {
		a.ended.Remove(c.place)
	} else {
		a.lru.Remove(c.place)
	}
	delete(a.conns, c.key)
}
