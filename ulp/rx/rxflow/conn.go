package rxflow

import (
	"hash/maphash"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// reservedFlags are those that nobody sends.
const reservedFlags = wire.FlagReserved | 0xC0

// A conn follows a connection of Rx.
type conn struct {
	line
	id       connID
	security uint8
	service  uint16
	settled  bool // service and security are those of a data packet
	upgrade  bool // the client has asked for another service
	ends     [2]*endpoint
	dirs     [2]direction // by sender
	channels [wire.Channels]channel
	over     []*call // that have ended by the packet that is looked at

	keys       Security
	challenges []challenge
	session    Session
	sealed     []sealedPacket
	scratch    []byte
}

// A direction is what one side has sent.
type direction struct {
	serials series
	recent  recent
	doubts  []doubt // that packets of this side settle
	window  uint32  // the largest receive window that this side has announced
	dead    uint32  // the serial number of an abort of the connection; 0 if there was none
}

func newConn(a *Analyzer, r *dissect.Reporter, id connID, h *wire.Header) *conn {
	c := &conn{line: line{a: a, r: r}, id: id, security: h.Security, service: h.Service}
	c.sum = &Summary{Kind: "connection", Epoch: h.Epoch, ID: h.ConnID(), Service: h.Service, Security: h.Security}
	r.Connection().Upper = c.sum
	return c
}

// end takes leave of the connection.
func (c *conn) end() {
	for i := range c.channels {
		c.channels[i].end(c)
	}
	c.settleAll()
	c.unseal()
	delete(c.a.conns, c.id)
	if any64 := uint64(c.id.epoch)<<32 | uint64(c.id.id); c.a.byID[any64] == c {
		delete(c.a.byID, any64)
	}
	c.r.End()
}

// datagram takes a datagram of the connection.
func (c *conn) datagram(at capture.At, d *capture.Datagram, h *wire.Header, body []byte) {
	from := dissect.Server
	if h.FromClient() {
		from = dissect.Client
	}
	n := c.sum.side(from)
	n.Datagrams++
	n.Largest = max(n.Largest, len(d.Data)+d.Missing)
	if at.BadChecksum {
		c.r.Note(from, at, "the UDP checksum is wrong, so that this has not arrived: %v", h)
		return
	}
	if d.Missing > 0 {
		c.r.Lacks(d.Missing)
	}
	if h.Type == wire.TypeData {
		c.dataDatagram(from, at, d, h, body)
		return
	}
	p := &Packet{Header: *h, Body: body, Missing: d.Missing}
	c.packet(from, at, p)
	c.flush(from, at, p)
}

// dataDatagram takes a datagram of data packets.
func (c *conn) dataDatagram(from dissect.Side, at capture.At, d *capture.Datagram, h *wire.Header, body []byte) {
	packets := wire.SplitData(*h, body)
	var p *Packet
	count := 0
	for {
		inner, part, ok := packets.Next()
		if !ok {
			break
		}
		if p != nil {
			c.flush(from, at, p)
		}
		count++
		p = &Packet{Header: inner, Body: part, Place: count}
		if inner.Flags&wire.FlagJumbo == 0 || count == 1 && len(part) == len(body) {
			p.Missing = d.Missing // the last one
		}
		if count > 1 && len(part) > wire.JumboBody && d.Missing == 0 {
			c.blame(ruleJumbo, from, at, "the last packet of a jumbogram has %d bytes; the most are %d", len(part), wire.JumboBody)
		}
		c.packet(from, at, p)
	}
	switch err := packets.Err(); {
	case err != nil && d.Missing == 0:
		c.blame(ruleJumbo, from, at, "%s", reason(err))
	case count == 1 && h.Flags&wire.FlagJumbo != 0 && d.Missing == 0:
		c.blame(ruleJumbo, from, at, "JUMBO-PACKET in a datagram of %d bytes; two packets take at least %d",
			len(d.Data), wire.HeaderLen+wire.JumboBody+wire.JumboHeaderLen)
	}
	c.limits(from, at, len(d.Data)+d.Missing, count)
	if p != nil {
		if count == 1 {
			p.Place = 0
		}
		c.flush(from, at, p)
	}
}

// limits judges how large a datagram of data is.
func (c *conn) limits(from dissect.Side, at capture.At, size, count int) {
	n, to := c.sum.side(from), c.ends[1-from]
	if count > 1 {
		n.Jumbograms++
		n.MostPackets = max(n.MostPackets, count)
	}
	if !to.limits {
		return
	}
	many := func() bool { return count > 1 && uint32(count) > to.jumbo }
	large := func() bool { return count == 1 && to.mtu > 0 && uint32(size) > to.mtu }
	c.doubt(ruleJumboCount, from, at, 0, many, "a jumbogram of %d packets; the %v takes %d", count, 1-from, to.jumbo)
	c.doubt(ruleSize, from, at, 0, large, "a packet of %d bytes; the %v takes %d", size, 1-from, to.mtu)
}

// flush shows a packet, and then what was found with it.
func (c *conn) flush(from dissect.Side, at capture.At, p *Packet) {
	if !c.a.Calls {
		c.r.Emit(from, at, p)
	}
	c.tell()
	for _, k := range c.over {
		k.tell(c)
	}
	c.over = c.over[:0]
}

// packet takes a packet.
func (c *conn) packet(from dissect.Side, at capture.At, p *Packet) {
	h := &p.Header
	p.Length = len(p.Body) + p.Missing
	c.parse(p)
	c.sum.side(from).packet(p)
	if h.Flags&reservedFlags != 0 {
		c.blame(ruleFlags, from, at, "the flags 0x%02x are not defined", uint8(h.Flags&reservedFlags))
	}
	if !h.Type.Known() {
		c.blame(ruleType, from, at, "%v is not defined", h.Type)
	}
	c.context(from, at, h)
	fits, fresh := c.serial(from, at, p)
	if p.Copy {
		c.sum.side(from).Copies++
		return
	}
	c.judge(from, at, p, fits)
	if fresh {
		c.settle(from, at, fits)
	}
}

// parse decodes what a packet carries.
func (c *conn) parse(p *Packet) {
	switch p.Header.Type {
	case wire.TypeAck:
		if a, err := wire.ParseAck(p.Body); err == nil {
			p.Ack = &a
		}
	case wire.TypeAbort:
		if p.Missing == 0 {
			code := wire.Code(wire.ParseAbort(p.Body))
			p.Code = &code
		}
	default:
	}
}

// judge judges what a packet carries. Fits says that the capture lacks no packet between the
// one before and this one.
func (c *conn) judge(from dissect.Side, at capture.At, p *Packet, fits bool) {
	switch p.Header.Type {
	case wire.TypeData:
		c.data(from, at, p, fits)
		return
	case wire.TypeAck:
		c.ack(from, at, p)
		return
	default:
	}
	if p.Missing > 0 {
		return
	}
	switch h := &p.Header; h.Type {
	case wire.TypeBusy, wire.TypeAckAll:
		if len(p.Body) > 0 {
			c.blame(rulePayload, from, at, "%v packets have no payload; this has %d bytes", h.Type, len(p.Body))
		}
		if k := c.call(from, at, h); k != nil {
			k.aside(c, from, at, h)
		}
	case wire.TypeAbort:
		c.abort(from, at, p)
	case wire.TypeChallenge:
		c.challenge(from, at, p)
	case wire.TypeResponse:
		c.response(from, at, p)
	default:
	}
}

// context judges whether a packet is about a call, or about the connection.
func (c *conn) context(from dissect.Side, at capture.At, h *wire.Header) {
	switch h.Type {
	case wire.TypeData, wire.TypeAck, wire.TypeBusy, wire.TypeAckAll:
		if h.Call == 0 {
			c.blame(ruleContext, from, at, "%v packets are about a call, and this has call number 0", h.Type)
		}
	case wire.TypeChallenge, wire.TypeResponse:
		if h.Call != 0 {
			c.blame(ruleContext, from, at, "%v packets are about the connection, and this has call number %d", h.Type, h.Call)
		}
	default:
	}
	if (h.Type == wire.TypeBusy || h.Type == wire.TypeChallenge) && from == dissect.Client {
		c.blame(ruleDirection, from, at, "only servers send %v packets", h.Type)
	}
	if h.Type == wire.TypeResponse && from == dissect.Server {
		c.blame(ruleDirection, from, at, "only clients send %v packets", h.Type)
	}
	if h.Type != wire.TypeData && h.Type != wire.TypeChallenge && h.Type != wire.TypeResponse {
		return // stale values are usual there
	}
	if !c.settled {
		c.settled, c.service, c.security = true, h.Service, h.Security
		c.sum.Service, c.sum.Security = h.Service, h.Security
		c.keys = c.a.class(h.Security)
	}
	c.upgrade = c.upgrade || h.UserStatus == 1 && from == dissect.Client
	if h.Service != c.service && !c.upgrade {
		c.blame(ruleService, from, at, "service %d on a connection for service %d", h.Service, c.service)
	}
	if h.Security != c.security {
		c.blame(ruleSecurity, from, at, "security index %d on a connection with security index %d", h.Security, c.security)
	}
}

// serial judges a serial number. It marks a packet that was captured twice. Fits says that
// the number is the one after the highest, fresh that it is new.
func (c *conn) serial(from dissect.Side, at capture.At, p *Packet) (fits, fresh bool) {
	h, d := &p.Header, &c.dirs[from]
	if h.Serial == 0 {
		if h.Type == wire.TypeData || h.Type == wire.TypeAck {
			c.blame(ruleSerial, from, at, "%v packets have serial numbers from 1 on, and this has 0", h.Type)
		}
		return false, false
	}
	id := c.a.identity(h, p.Body)
	if was := d.recent.find(h.Serial); was != nil {
		if p.Missing == 0 && !was.partial {
			if p.Copy = was.hash == id; !p.Copy {
				c.blame(ruleSerial, from, at, "the serial number %d again, of another packet", h.Serial)
			}
		}
		return false, false
	}
	fits = h.Serial == d.serials.high+1
	fresh = d.serials.add(h.Serial)
	ping := h.Type == wire.TypeAck && (h.Flags&wire.FlagRequestAck != 0 || p.Ack != nil && p.Ack.Reason == wire.ReasonPing)
	d.recent.put(sent{number: h.Serial, hash: id, partial: p.Missing > 0, ping: ping})
	return fits, fresh
}

// identity is a hash of a packet.
func (a *Analyzer) identity(h *wire.Header, body []byte) uint64 {
	var m maphash.Hash
	m.SetSeed(a.seed)
	var b [wire.HeaderLen]byte
	h.Put(b[:])
	_, _ = m.Write(b[:]) // it never fails, nor does the next
	_, _ = m.Write(body)
	return m.Sum64()
}

// reason is an error's text without the name of the protocol, which the event has.
func reason(err error) string {
	const prefix = "rx: "
	s := err.Error()
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):]
	}
	return s
}

// secured is how a security class names the connection.
func (c *conn) secured() secure.Conn {
	return secure.Conn{Epoch: c.id.epoch, ID: c.id.id, Index: c.security, Checksum: true}
}
