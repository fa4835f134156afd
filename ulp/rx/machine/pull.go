package machine

import (
	"net/netip"

	"urnic/ulp/rx/wire"
)

// MaxDatagram is the size of the largest datagram that Pull returns.
const MaxDatagram = maxPacket

// burst is how many datagrams a connection sends before others do.
const burst = 64

// Pull writes the next datagram to send into b, which must have MaxDatagram bytes. It
// returns its length and destination; ok is false if there is nothing to send.
func (m *Machine) Pull(now Time, b []byte) (n int, to netip.AddrPort, ok bool) {
	m.tick(now)
	if len(b) < MaxDatagram {
		return 0, netip.AddrPort{}, false
	}
	if m.raw.Len() > 0 {
		d := m.raw.Pop()
		return copy(b, d.b), d.to, true
	}
	for m.ready.Len() > 0 {
		c := *m.ready.At(0)
		if c.gone() {
			m.ready.Pop()
			c.inList = false
			continue
		}
		n := c.pull(b)
		m.bursts++
		if n == 0 || m.bursts >= burst {
			m.bursts = 0
			m.ready.Pop()
			c.inList = false
			if n != 0 {
				c.wake()
			} else {
				c.retire()
			}
		}
		if n > 0 {
			return n, c.peer.addr, true
		}
	}
	return 0, netip.AddrPort{}, false
}

// sending reports whether the connection has something to send.
func (c *Conn) sending() bool { return c.inList && !c.gone() }

// nextSerial numbers a packet. Every packet of a connection has a number of its own,
// in each direction (draft §3).
func (c *Conn) nextSerial() uint32 {
	c.serial++
	return c.serial
}

// header begins the header of a packet.
func (c *Conn) header(t wire.Type) wire.Header {
	h := wire.Header{Epoch: c.key.epoch, CID: c.key.id, Serial: c.nextSerial(), Type: t, Security: c.index, Service: c.service}
	if c.key.client {
		h.Flags = wire.FlagClient
	}
	c.m.stats.sent(t)
	return h
}

// put writes a packet of the connection into b.
func (c *Conn) put(b []byte, t wire.Type, body []byte) int {
	h := c.header(t)
	h.Put(b)
	return wire.HeaderLen + copy(b[wire.HeaderLen:], body)
}

// pull writes the connection's next datagram into b, and returns its length, or
// 0.
func (c *Conn) pull(b []byte) int {
	if c.abortDue {
		c.abortDue = false
		var code [4]byte
		return c.put(b, wire.TypeAbort, wire.AppendAbort(code[:0], int32(c.err.Code)))
	}
	if c.err != nil {
		return 0
	}
	if c.auth.challengeDue {
		c.auth.challengeDue = false
		body, err := c.serverSec.Challenge()
		if err != nil {
			c.fail(&AbortError{Code: codeOf(err), Cause: err}, true)
			return c.pull(b)
		}
		c.auth.challenges++
		return c.put(b, wire.TypeChallenge, body)
	}
	if body := c.auth.response; body != nil {
		c.auth.response = nil
		return c.put(b, wire.TypeResponse, body)
	}
	for range c.calls {
		if k := c.calls[c.turn]; k != nil {
			if k.prior != nil {
				if n := k.prior.pull(b); n > 0 {
					return n
				}
			}
			if n := k.pull(b); n > 0 {
				return n
			}
			if c.err != nil {
				return c.pull(b)
			}
		}
		c.turn = (c.turn + 1) % wire.Channels
	}
	return 0
}

// header begins the header of a packet of the call.
func (k *Call) header(t wire.Type) wire.Header {
	h := k.c.header(t)
	h.CID |= uint32(k.channel)
	h.Call = k.number
	return h
}

// pull writes the call's next datagram into b, and returns its length, or 0.
func (k *Call) pull(b []byte) int {
	r, s := &k.in, &k.out
	switch {
	case k.abort:
		k.abort = false
		h := k.header(wire.TypeAbort)
		h.Put(b)
		return len(wire.AppendAbort(b[:wire.HeaderLen], int32(k.err.Code)))
	case k.err != nil:
		return 0
	case r.pongDue:
		r.pongDue = false
		return k.pullAck(b, wire.ReasonPingResponse, r.pong, 0)
	case r.ackDue:
		r.ackDue, r.ackAt, r.got, r.read = false, 0, 0, 0
		return k.pullAck(b, r.reason, r.trigger, 0)
	case s.pingDue:
		s.pingDue = false
		n := k.pullAck(b, wire.ReasonPing, 0, wire.FlagRequestAck)
		k.c.m.stats.Pings++
		return n
	case s.probe.due:
		n := k.pullAck(b, wire.ReasonPing, 0, wire.FlagRequestAck)
		if n < s.probe.size {
			clear(b[n:s.probe.size])
			n = s.probe.size
		}
		s.probe.sent(k, k.c.serial)
		k.rearm()
		return n
	}
	return k.pullData(b)
}

// pullAck writes an acknowledgement into b.
func (k *Call) pullAck(b []byte, reason wire.Reason, serial uint32, flags wire.Flags) int {
	h := k.header(wire.TypeAck)
	h.Flags |= wire.FlagSlowStart | flags
	if h.Put(b); reason == wire.ReasonPing {
		k.out.pinged = ping{h.Serial, k.out.ackFirst, k.out.ackSerial}
	}
	k.c.m.stats.AcksSent++
	return len(k.putAck(b[:wire.HeaderLen], reason, serial))
}

// pullData writes the next data packet or jumbogram into b.
func (k *Call) pullData(b []byte) int {
	s, m := &k.out, k.c.m
	seq, again, ok := s.due()
	if !ok {
		return 0
	}
	if k.prior != nil {
		k.prior.detach() // this call's first packet says that the reply has come
		k.prior = nil
	}
	k.in.ackAt = 0 // a reply acknowledges the request
	s.probe.begin(k)
	n := 0
	count := 1
	if !again {
		count = k.together(seq)
	}
	var h wire.Header
	for i := range count {
		p := s.packets.at(seq + uint32(i))
		if err := k.seal(seq+uint32(i), p); err != nil {
			k.c.fail(&AbortError{Code: codeOf(err), Cause: err}, true)
			return 0
		}
		if i == 0 {
			h = k.header(wire.TypeData)
			n = wire.HeaderLen
		} else {
			k.c.nextSerial()
			m.stats.sent(wire.TypeData)
		}
		k.noteSent(seq+uint32(i), p, again)
		flags := k.flags(seq+uint32(i), p, again)
		if i < count-1 {
			flags |= wire.FlagJumbo
		}
		if i == 0 {
			h.Seq, h.Checksum, h.Flags = seq, p.checksum, h.Flags|flags
			if k.c.upgrade {
				h.UserStatus = 1
			}
			h.Put(b)
		} else {
			n = len(wire.AppendJumboHeader(b[:n], h.Flags&wire.FlagClient|flags, p.checksum))
		}
		n += copy(b[n:], p.body)
	}
	s.arm(k)
	k.rearm()
	k.finish()
	return n
}

// together returns how many packets from seq on are sent in one jumbogram. All but the
// last have the full size of an inner packet (draft §7).
func (k *Call) together(seq uint32) int {
	const steady = 5 // packets that were acknowledged without a loss
	s := &k.out
	most, _ := k.c.peer.jumbo()
	if most < 2 || s.inRow < steady {
		return 1
	}
	n := 1
	for n < most {
		p := s.packets.at(seq + uint32(n) - 1)
		if k.seal(seq+uint32(n)-1, p) != nil || len(p.body) != wire.JumboBody {
			break
		}
		after := seq + uint32(n)
		if !s.packets.has(after) || !s.allowed(after) || k.sealedLen(s.packets.at(after)) > wire.JumboBody {
			break
		}
		n++
	}
	return n
}

// sealedLen is how long a body is, once it is sealed.
func (k *Call) sealedLen(p *outPacket) int {
	n := len(p.body)
	if c := k.c.secured; c != nil && !p.sealed {
		n = max(n, c.Least())
		n += (c.Multiple() - n%c.Multiple()) % c.Multiple()
	}
	return n
}

// noteSent notes a transmission.
func (k *Call) noteSent(seq uint32, p *outPacket, again bool) {
	s, m := &k.out, k.c.m
	p.again = send{k.c.serial, m.now}
	k.c.peer.bytesSent += uint64(len(p.body))
	if again {
		s.unmark(p)
		m.stats.Resent++
		k.c.peer.resent++
		return
	}
	p.first = p.again
	if s.next = seq + 1; k.client && seq == 1 {
		// The server knows the call from now on.
		k.asked, k.heard, k.pingAt = m.now, m.now, m.now+k.c.limits.dead/6
	}
	m.stats.DataSent++
	k.c.peer.sent++
}

// flags are those of a data packet besides the direction's.
func (k *Call) flags(seq uint32, p *outPacket, again bool) wire.Flags {
	const small = 2 // windows with which every packet counts
	s := &k.out
	var f wire.Flags
	if p.last {
		f |= wire.FlagLast
	}
	switch {
	case again:
		return f | wire.FlagRequestAck
	case s.cwnd <= small && !p.last:
		f |= wire.FlagRequestAck
	}
	if s.packets.has(seq+1) && s.allowed(seq+1) {
		f |= wire.FlagMore
	}
	return f
}
