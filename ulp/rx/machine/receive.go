package machine

import (
	"errors"
	"net/netip"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// Receive processes a datagram. It does not retain b.
func (m *Machine) Receive(now Time, from netip.AddrPort, b []byte) {
	m.tick(now)
	h, err := wire.ParseHeader(b)
	if err != nil {
		m.stats.Drops.Short++ // silently: there is nothing to answer
		return
	}
	m.stats.received(h.Type)
	body := b[wire.HeaderLen:]
	if h.Type == wire.TypeDebug || h.Type == wire.TypeVersion {
		m.query(&h, from, body)
		return
	}
	key := keyOf(&h, from)
	c := m.conns[key]
	if c == nil {
		// What a server sent must not create a connection, and answering a
		// packet without one could make two servers answer each other forever
		// (draft §3).
		if !h.FromClient() {
			m.stats.Drops.NoConn++
			return
		}
		if c = m.accept(&h, key, from); c == nil {
			return
		}
	}
	if h.Security != c.index {
		m.stats.Drops.Index++
		return
	}
	c.peer.bytesReceived += uint64(len(body))
	if c.err != nil {
		// Later packets of an aborted connection are answered with the same abort.
		if h.Type != wire.TypeAbort && h.FromClient() && !c.closed && m.answers.take(m.now) {
			c.abortDue = true
			c.wake()
		}
		return
	}
	if h.Call == 0 {
		c.receive(&h, body)
		return
	}
	c.forCall(&h, body)
}

// receive processes a packet that is about the connection.
func (c *Conn) receive(h *wire.Header, body []byte) {
	switch h.Type {
	case wire.TypeAbort:
		c.aborted(body)
	case wire.TypeChallenge:
		c.challenged(body)
	case wire.TypeResponse:
		c.responded(body)
	case wire.TypeParams1, wire.TypeParams2, wire.TypeParams3:
		c.m.stats.Drops.Type++
	default:
		// Only these may have call number 0 (draft §4).
		c.m.stats.Drops.Type++
		if !c.key.client {
			c.fail(&AbortError{Code: wire.ProtocolError}, true)
		}
	}
}

// aborted processes the abort of the connection.
func (c *Conn) aborted(body []byte) {
	c.m.stats.Aborted++
	c.fail(&AbortError{Code: wire.Code(wire.ParseAbort(body)), Remote: true}, false)
}

// forCall processes a packet of a call.
func (c *Conn) forCall(h *wire.Header, body []byte) {
	k := c.calls[h.Channel()]
	if c.key.client {
		if k != nil && k.prior != nil && h.Call == k.prior.number {
			k = k.prior
		}
		if k == nil || h.Call != k.number {
			c.m.stats.Drops.Call++
			return
		}
		c.granted(h)
		k.receive(h, body)
		return
	}
	switch {
	case k != nil && h.Call == k.number:
	case h.Call <= c.numbers[h.Channel()]:
		c.m.stats.Drops.Call++
		return
	default:
		if k = c.begin(h, k); k == nil {
			return
		}
	}
	k.receive(h, body)
}

// granted notes the service that has got a connection that requests an upgrade.
func (c *Conn) granted(h *wire.Header) {
	if c.upgrade && h.Type == wire.TypeData {
		c.upgrade = false
		if h.Service != 0 && h.Service != c.service {
			c.service = h.Service
			c.m.stats.Upgrades++
		}
	}
}

// begin creates a call from a client's packet, or returns nil. old is the call that has
// the channel so far.
func (c *Conn) begin(h *wire.Header, old *Call) *Call {
	m := c.m
	// Acknowledgements and data further on are of a call that a server before this one
	// had: its client must not be confused.
	if h.Type != wire.TypeData || h.Seq == 0 || h.Seq > uint32(m.cfg.Window) {
		m.stats.Drops.Call++
		return nil
	}
	if old != nil {
		old.ackedAll() // a client that begins another call has had the whole reply
	}
	if old != nil && !old.over() {
		// The call before has not ended for this side. It can't: its client has left it.
		// Its program is notified, and the client waits until it has been (draft §4,
		// BUSY).
		if old.fail(&AbortError{Code: wire.CallDead, Cause: errReplaced}); old.offered && !old.ended {
			m.stats.Busies++
			c.replyBusy(h)
			return nil
		}
	}
	if old != nil {
		old.detach()
	}
	k := c.newCall(h.Channel(), h.Call, false)
	return k
}

// replyBusy tells a client that its channel has another call.
func (c *Conn) replyBusy(h *wire.Header) {
	if !c.m.answers.take(c.m.now) {
		return
	}
	r := wire.Header{
		Epoch: h.Epoch, CID: h.CID, Call: h.Call, Serial: c.nextSerial(),
		Type: wire.TypeBusy, Security: c.index, Service: c.service,
	}
	c.m.send(c.peer.addr, &r, nil)
}

// send queues a packet that belongs to no call.
func (m *Machine) send(to netip.AddrPort, h *wire.Header, body []byte) {
	const most = 256
	if m.raw.Len() >= most {
		m.stats.Drops.Answer++
		return
	}
	b := make([]byte, wire.HeaderLen+len(body))
	h.Put(b)
	copy(b[wire.HeaderLen:], body)
	m.stats.sent(h.Type)
	m.raw.Push(datagram{to, b})
}

// reject answers a packet that can't create a connection. Only clients are answered,
// and aborts are not, so that two servers don't answer each other forever.
func (m *Machine) reject(h *wire.Header, to netip.AddrPort, code wire.Code) {
	if !h.FromClient() || h.Type == wire.TypeAbort || !m.answers.take(m.now) {
		m.stats.Drops.Answer++
		return
	}
	r := *h
	r.Type, r.Flags, r.Serial, r.Seq, r.UserStatus, r.Checksum = wire.TypeAbort, h.Flags&^0xff, 0, 0, 0, 0
	m.send(to, &r, wire.AppendAbort(nil, int32(code)))
}

// codeOf returns the abort code of an error.
func codeOf(err error) wire.Code {
	if e, ok := errors.AsType[secure.Error](err); ok {
		return wire.Code(e.AbortCode())
	}
	return wire.ProtocolError
}
