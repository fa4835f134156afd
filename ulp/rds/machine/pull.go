package machine

import "urnic/ulp/rds/wire"

// A Segment is what a carrier sends at once: a header, and a message or a fragment of
// one; or an RDMA operation, and nothing else.
type Segment struct {
	Header wire.Header
	Data   []byte // without Memory, valid until the message is acknowledged, or the link is down
	Last   bool   // it ends a message
	Memory Memory // Options.Memory of the message; the carrier releases it
	Op     *Operation
}

// owedEnough returns how many receives must have been posted again for an acknowledgement alone to
// report it: 16, as in Linux, or half of what there are; a quarter if there are many. The
// acknowledgement uses one itself: if one were enough, two idle nodes would notify each other
// forever.
func (p *Path) owedEnough() int {
	if p.posted < 3 {
		return 1 // else the peer could not use its last but one
	}
	return max(2, min(16, p.posted/2), p.posted/4)
}

// Pull returns the next segment of a link, if there is one and the peer has a receive
// for it. A carrier calls it after a Transmit effect, while it can send.
func (p *Path) Pull(now Time, link Link, s *Segment) bool {
	p.conn.m.at(now)
	if link != p.link || p.state != Up {
		return false
	}
	if p.interject(s) {
		return true
	}
	if p.current == nil && !p.begin() {
		p.sought = false
		return false
	}
	if p.current.unissued() {
		p.issue(s)
		return true
	}
	if !p.mayUseCredit() {
		p.sought = false
		return false
	}
	msg := p.current
	*s = Segment{Header: msg.h, Data: msg.data[p.offset:], Memory: msg.memory}
	if n := p.conn.carrier.Fragment; n > 0 && len(s.Data) > n {
		s.Data = s.Data[:n]
	}
	if s.Memory != nil {
		s.Memory.Use()
	}
	s.Last = p.offset+len(s.Data) == len(msg.data)
	p.stamp(&s.Header, p.offset == 0)
	if p.credits {
		p.credit--
	}
	p.offset += len(s.Data)
	if s.Last {
		p.sentWhole()
	}
	return true
}

// interject builds an acknowledgement alone between the fragments of a message, the only segment
// that is allowed there, if the peer needs credits and the first fragment is sent.
func (p *Path) interject(s *Segment) bool {
	if p.current == nil || p.offset == 0 || !p.credits || p.credit == 0 || p.owed == 0 || p.owed < p.owedEnough() && p.credit > 1 {
		return false
	}
	*s = Segment{Last: true}
	p.stamp(&s.Header, true)
	p.credit--
	p.conn.m.counters.AcksSent++
	return true
}

// stamp sets the fields of a header that report what was received.
func (p *Path) stamp(h *wire.Header, first bool) {
	if p.conn.acks() {
		h.Ack = p.expected - 1
		p.ackDue = false
	}
	if p.credits && first {
		n := min(p.owed, 255)
		h.Credit = uint8(n)
		p.owed -= n
		p.granted += n
	}
}

// mayUseCredit reports whether a Send may be made. The last credit is kept for a header
// that grants some itself, so that two sides without credit do not wait for each other.
func (p *Path) mayUseCredit() bool {
	return !p.credits || p.credit > 1 || p.credit == 1 && p.owed > 0 && p.offset == 0
}

// begin chooses what is sent next.
func (p *Path) begin() bool {
	p.offset = 0
	switch {
	case p.mapDue:
		p.mapDue = false
		p.sentMap = message{h: wire.Header{Flags: wire.CongestionBitmap, Len: wire.MapLen}, data: p.conn.m.mapBytes()}
		p.current = &p.sentMap
		p.conn.m.counters.MapsSent++
	case p.probeDue:
		p.probeDue = false
		p.beginProbe()
	case p.greetDue:
		p.greetDue = false
		p.beginAck()
	case p.beginMessage():
	case p.confirm && p.beginConfirm():
	case p.ackDue || p.credits && p.owed >= p.owedEnough():
		p.beginAck()
	default:
		return false
	}
	return true
}

// beginAck makes an acknowledgement alone.
func (p *Path) beginAck() {
	p.sentMap = message{}
	p.current = &p.sentMap
	p.conn.m.counters.AcksSent++
}

// beginMessage removes the next message from the queue.
func (p *Path) beginMessage() bool {
	if p.held() {
		return false
	}
	for p.ready.len() > 0 || p.queue.len() > 0 {
		from := &p.queue
		if p.ready.len() > 0 {
			from = &p.ready
		} else if p.postpones(p.queue.first()) {
			return false
		}
		msg := from.pop()
		if msg.over() {
			msg.gone = true
		}
		if msg.gone {
			p.conn.m.finish(msg)
			continue
		}
		if from == &p.queue && p.line(msg) {
			if msg.awaits() {
				p.current = msg
				return true
			}
			continue
		}
		if msg.h.Sequence != 0 {
			p.conn.m.counters.Retransmitted++
		} else {
			msg.h.Sequence = p.next
			p.next++
			p.conn.numbered = p.conn.numbered || msg.socket != nil
			p.ask(msg)
		}
		if msg.h.Flags&wire.AckRequired != 0 {
			p.confirm = false
		}
		p.current = msg
		return true
	}
	return false
}

// ask makes every nth message request an acknowledgement, including the first of a
// link, as Linux does, and also those that fill a quarter of their socket's send
// buffer.
func (p *Path) ask(msg *message) {
	if !p.conn.acks() {
		return
	}
	cfg := &p.conn.m.cfg
	p.unasked++
	p.unaskedBytes += len(msg.data)
	bytes := cfg.AckBytes
	if msg.socket != nil {
		bytes = min(bytes, msg.socket.sendBuffer/4)
	}
	if msg.urgent || msg.hasty || p.unasked > cfg.AckEvery || p.unaskedBytes >= bytes {
		msg.h.Flags |= wire.AckRequired
		p.unasked, p.unaskedBytes, p.asked = 0, 0, msg.h.Sequence
	}
}

// sentWhole notes that the current message is sent.
func (p *Path) sentWhole() {
	msg := p.current
	p.current, p.offset = nil, 0
	if msg == &p.sentMap {
		return
	}
	if msg.h.Sequence <= p.acked { // while it was sent again, or it is a probe
		msg.gone = true
		p.conn.m.finish(msg)
		return
	}
	p.unacked.push(msg)
}

// Acked reports, for a carrier whose peers do not acknowledge in headers, that
// all messages of a link up to a sequence number have arrived.
func (p *Path) Acked(now Time, link Link, sequence uint64) {
	p.conn.m.at(now)
	if link == p.link && p.state == Up && !p.conn.acks() { // what was sent: nothing but the handshake, before the peer has spoken
		p.acknowledged(min(sequence, p.next-1))
	}
}

// acknowledged releases what the peer has.
func (p *Path) acknowledged(sequence uint64) {
	p.acked = max(p.acked, sequence)
	for p.unacked.len() > 0 && p.unacked.first().h.Sequence <= sequence {
		p.arrivedAt(p.unacked.pop())
	}
	if p.hastened != nil && p.hastened.gone {
		p.hastened = nil
		p.hasten()
	}
	// What waits to be sent again may have arrived before the old link was lost.
	if p.queue.len() > 0 && p.queue.first().h.Sequence != 0 {
		again := p.queue.all()
		n := 0
		for n < len(again) && again[n].h.Sequence != 0 && again[n].h.Sequence <= sequence {
			p.arrivedAt(again[n])
			n++
		}
		p.queue.replace(again[n:])
	}
}

// arrivedAt notes that the peer has a message.
func (p *Path) arrivedAt(msg *message) {
	p.conn.m.settle(msg, nil)
	msg.gone = true
	p.conn.m.finish(msg)
}

// Posted reports that receives were added. The peer will be notified.
func (p *Path) Posted(now Time, link Link, n int) {
	if link == p.link && p.state == Up && p.credits {
		p.posted += n
	}
	p.Reposted(now, link, n)
}

// Reposted reports that receives were posted again. The peer will be notified.
func (p *Path) Reposted(now Time, link Link, n int) {
	p.conn.m.at(now)
	if link != p.link || p.state != Up || !p.credits {
		return
	}
	p.owed += n
	if p.owed >= p.owedEnough() || p.credit == 1 { // the last credit may be used now
		p.transmit()
	}
}
