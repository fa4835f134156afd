package rxflow

import (
	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/wire"
)

// ack takes an acknowledgement.
func (c *conn) ack(from dissect.Side, at capture.At, p *Packet) {
	h, a := &p.Header, p.Ack
	k := c.call(from, at, h)
	if a == nil {
		if p.Missing == 0 {
			_, err := wire.ParseAck(p.Body)
			c.blame(ruleAckFormat, from, at, "%s", reason(err))
		}
		return
	}
	if p.Missing > 0 {
		return
	}
	if int(a.Count) != len(a.Acks) {
		c.blame(ruleAckFormat, from, at, "%d entries, and %d are there", a.Count, len(a.Acks))
	}
	if a.First == 0 {
		c.blame(ruleAckFormat, from, at, "the first packet is 0; they are numbered from 1")
	}
	if !knownReason(a.Reason) {
		c.blame(ruleAckReason, from, at, "reason %d is not defined", uint8(a.Reason))
	}
	if h.Flags&wire.FlagRequestAck != 0 && a.Reason != wire.ReasonPing {
		c.blame(ruleAckRequest, from, at, "only pings have REQUEST-ACK; this is %v", a.Reason)
	}
	c.announced(from, &a.Trailer)
	c.names(from, at, a)
	if k == nil {
		return
	}
	k.at = at
	c.acknowledges(from, at, h, a, k)
	if reply := k.dirs[dissect.Server].last; from == dissect.Client && reply != 0 && a.First > reply {
		k.finish(c, from, at)
	}
}

// announced takes what a side says that it takes.
func (c *conn) announced(from dissect.Side, t *wire.Trailer) {
	e, d := c.ends[from], &c.dirs[from]
	e.limits = true
	e.mtu, e.jumbo = max(e.mtu, wire.DefaultPacket), max(e.jumbo, 1)
	if t.Words >= 2 {
		e.mtu = max(e.mtu, t.MaxMTU)
	}
	if t.Words >= 4 {
		e.jumbo = max(e.jumbo, t.MaxPackets)
	}
	if t.Words >= 3 {
		d.window = max(d.window, min(t.Window, wire.MaxAcks))
	} else {
		d.window = wire.MaxAcks // old peers do not tell it
	}
}

// names judges the serial number that an acknowledgement names.
func (c *conn) names(from dissect.Side, at capture.At, a *wire.Ack) {
	peer := &c.dirs[1-from]
	if a.Serial == 0 {
		return
	}
	// The next packet of the peer has a number that was not used, and all higher ones were
	// not used either. So what else the capture lacks does not matter.
	unsent := func() bool { return a.Serial > peer.serials.high }
	c.doubt(ruleAckSerial, from, at, ^uint32(0), unsent, "it names the serial number %d; the highest that was sent is %d", a.Serial, peer.serials.high)
	if was := peer.recent.find(a.Serial); was != nil && !was.ping && a.Reason == wire.ReasonPingResponse {
		c.blame(ruleAckSerial, from, at, "a ping response to the packet with serial number %d, which is no ping", a.Serial)
	}
}

// acknowledges judges what is acknowledged.
func (c *conn) acknowledges(from dissect.Side, at capture.At, h *wire.Header, a *wire.Ack, k *call) {
	own, peer := &k.dirs[from], &k.dirs[1-from]
	own.acked = true
	switch {
	case h.Serial == 0 || a.First == 0:
	case a.First < own.first && h.Serial > own.named:
		// OpenAFS's threads overtake each other: what they say of an older state is no
		// fault, as long as nothing is missing in it.
		for i, e := range a.Acks {
			if seq := a.First + uint32(i); seq < own.first && !wire.Held(e) {
				c.blame(ruleAckBack, from, at, "packet %d is missing, and those before %d were acknowledged for good", seq, own.first)
				break
			}
		}
	case a.First > own.first:
		own.first, own.named = a.First, h.Serial
	}
	if a.First == 0 {
		return
	}
	high := uint64(a.First) - 1
	for i, e := range a.Acks {
		if wire.Held(e) {
			high = uint64(a.First) + uint64(i)
		}
	}
	unsent := func() bool { return high > uint64(peer.seqs.high) }
	c.doubt(ruleAckUnsent, from, at, peer.since, unsent, "it acknowledges packet %d of call %d; the last one that was sent is %d", high, h.Call, peer.seqs.high)
}
