package machine

import "urnic/ulp/rx/wire"

// acked processes an acknowledgement.
func (k *Call) acked(h *wire.Header, body []byte) {
	m := k.c.m
	m.stats.Acks++
	ping := h.Flags&wire.FlagRequestAck != 0
	a, err := wire.ParseAck(body)
	if err != nil {
		m.stats.Drops.Ack++
	}
	if k.err != nil {
		if ping {
			k.answerAbort()
		}
		return
	}
	k.heard = m.now
	if ping {
		// It is answered however short it is, and after the call has ended too: the peer
		// may wait for just that.
		k.in.pongDue, k.in.pong = true, h.Serial
		k.c.wake()
	}
	if err != nil {
		return
	}
	if a.Serial != 0 && a.Serial == k.out.pinged.serial && a.First < k.out.pinged.first && k.alive() {
		// It has answered a ping and does not know of what it had acknowledged before that:
		// it has restarted, and waits for packets that are gone here.
		k.tell(&AbortError{Code: wire.CallDead, Cause: errRestarted})
		return
	}
	if k.out.finished() {
		return
	}
	if a.Reason == wire.ReasonPingResponse {
		k.ponged(a.Serial)
	}
	if !k.fresh(h, &a) {
		m.stats.Drops.Ack++
		if ping {
			k.doubt()
		}
		return
	}
	k.c.peer.told(a.Trailer)
	k.windowTold(a.Trailer)
	k.sampleRTT(&a)
	newly, negative, above := k.mark(&a)
	k.react(&a, newly, negative, above)
}

// doubt asks a peer that seems to have forgotten its state for its current
// state.
func (k *Call) doubt() {
	s, now := &k.out, k.c.m.now
	if now >= s.doubted {
		s.doubted, s.pingDue = now+doubtWait, true
		k.c.wake()
	}
}

// fresh reports whether an acknowledgement is of a state that is no older than the
// newest, and of packets that were sent.
func (k *Call) fresh(h *wire.Header, a *wire.Ack) bool {
	s := &k.out
	switch {
	case a.First == 0 || a.First > s.next:
		return false // of what was never sent
	case a.First < s.packets.base:
		return false
	case a.Serial != 0 && a.Serial == s.pinged.serial && s.ackSerial == s.pinged.heard:
		// It answers a ping, and nothing has arrived since that was sent: it is newer
		// than that.
	case s.heardAck && a.First == s.ackFirst && int32(h.Serial-s.ackSerial) < 0:
		// Previous says nothing of the age: OpenAFS has the number there of what came last,
		// which is a low one when a hole is filled, and other peers have a serial number.
		return false
	}
	s.heardAck = true
	s.ackFirst, s.ackSerial = a.First, h.Serial
	return true
}

// windowTold sets the window that an acknowledgement announces. Without one, the peer
// accepts 15 packets (draft §5); one with only three words makes its window smaller.
func (k *Call) windowTold(t wire.Trailer) {
	const old = 15
	s := &k.out
	w := uint32(old)
	switch {
	case t.Words >= 4:
		w = t.Window
	case t.Words == 3:
		w = min(t.Window, s.peerWindow)
	default:
		w = min(w, s.peerWindow)
	}
	s.peerWindow = min(max(w, 1), wire.MaxAcks)
}

// sampleRTT samples the round-trip time of the packet that an acknowledgement names
// (draft §5.1). A delayed one names none.
func (k *Call) sampleRTT(a *wire.Ack) {
	s := &k.out
	if a.Serial == 0 || a.Reason == wire.ReasonDelay {
		return
	}
	for seq := s.next - 1; seq >= s.packets.base && s.packets.has(seq); seq-- {
		p := s.packets.at(seq)
		for _, sent := range []send{p.again, p.first} {
			if sent.serial == a.Serial {
				k.c.peer.sample(k.c.m.now - sent.at)
				return
			}
		}
	}
}

// mark notes which packets an acknowledgement holds. It returns how many it is the first
// to, whether a packet is missing in front of one that was received, and how many of the
// first kind stand behind such a hole.
func (k *Call) mark(a *wire.Ack) (newly int, negative bool, above int) {
	m, s := k.c.m, &k.out
	for s.packets.base < a.First {
		p := s.packets.at(s.packets.base)
		if !p.held {
			newly++
		}
		s.unmark(p)
		m.pool.put(p.body)
		s.packets.drop()
	}
	s.soft = 0
	run, hole := true, false
	for i, v := range a.Acks {
		seq := a.First + uint32(i)
		if seq >= s.next {
			m.stats.Drops.Ack++ // the list is longer than what was sent
			break
		}
		p := s.packets.at(seq)
		if v&1 == 0 {
			// The peer may have taken back what it held.
			p.held, run, hole = false, false, true
			continue
		}
		negative = negative || hole
		if !p.held {
			newly++
			if hole {
				above++
			}
		}
		p.held = true
		s.unmark(p)
		if run {
			s.soft++
		}
	}
	for seq := a.First + uint32(len(a.Acks)); seq < s.next; seq++ {
		s.packets.at(seq).held = false // nothing is known of it any more
	}
	return newly, negative, above
}

// unmark removes a packet from those that must be sent again.
func (s *sender) unmark(p *outPacket) {
	if p.resend {
		p.resend = false
		s.resends--
	}
}

// react carries out what follows from an acknowledgement.
func (k *Call) react(a *wire.Ack, newly int, negative bool, above int) {
	m, s := k.c.m, &k.out
	if negative {
		m.stats.Nacks++
		if s.negative(above, s.peerWindow) {
			m.stats.Recoveries++
			k.resendHoles(a, 0)
		} else if s.recovering {
			k.resendHoles(a, nackLimit)
		}
	} else {
		s.positive(newly)
	}
	if newly > 0 {
		k.moved = m.now
		s.backoff = 0
		s.inRow += newly
		s.timeoutAt = 0
		k.change()
	}
	s.arm(k)
	k.finish()
	if _, _, ok := s.due(); ok {
		k.c.wake()
	}
}

// finish notes that everything was acknowledged.
func (k *Call) finish() {
	s := &k.out
	if s.acked || !s.wrote || s.next != s.packets.end() {
		return
	}
	// A server's call is over when the client has everything, read or not: some clients
	// never say that they have read the last packet.
	if int(s.soft) != s.packets.n {
		return
	}
	if k.client && s.packets.n > 0 {
		return // the reply is still to come, and says more
	}
	k.allAcked()
}

// resendHoles makes packets be sent again that are missing in front of one that was
// received. A packet whose newest copy was sent too shortly before the acknowledged
// one, by serial numbers, may still be in transit.
func (k *Call) resendHoles(a *wire.Ack, margin uint32) {
	s := &k.out
	top := 0
	for i, v := range a.Acks {
		if v&1 != 0 {
			top = i
		}
	}
	for i := range top {
		seq := a.First + uint32(i)
		if seq >= s.next {
			return
		}
		p := s.packets.at(seq)
		if p.held || p.resend || margin != 0 && int32(a.Serial-p.again.serial) < int32(margin) {
			continue
		}
		p.resend = true
		s.resends++
		k.c.m.stats.Pushed++
	}
}

// ackedAll processes an acknowledgement of everything (draft §4, ACKALL and
// DATA).
func (k *Call) ackedAll() {
	s := &k.out
	if k.err != nil || s.finished() || !s.wrote || s.next != s.packets.end() {
		return
	}
	k.moved = k.c.m.now
	s.positive(s.packets.n)
	k.allAcked()
}

// allAcked is called when nothing that was sent is needed any more.
func (k *Call) allAcked() {
	s := &k.out
	s.acked = true
	s.release(k.c.m)
	if !k.client && k.ended && k.over() {
		k.rest()
		k.settle()
	}
}

// arm sets the timer of retransmission, if something is outstanding that the peer does
// not hold and the timer is not set (draft §5.2).
func (s *sender) arm(k *Call) {
	if s.timeoutAt != 0 {
		return
	}
	outstanding := s.next != s.packets.base && s.packets.base+s.soft != s.next
	if !outstanding {
		return
	}
	wait := min(k.c.peer.timeout()<<min(s.backoff, 6), maxTimeout)
	s.timeoutAt = k.c.m.now + wait
}

// expire considers everything outstanding lost.
func (s *sender) expire(k *Call) {
	m, p := k.c.m, k.c.peer
	s.timeoutAt = 0
	large := false
	for seq := s.packets.base; seq != s.next; seq++ {
		q := s.packets.at(seq)
		if !q.held && !q.resend {
			q.resend = true
			s.resends++
		}
		large = large || len(q.body)+wire.HeaderLen > wire.DefaultPacket
	}
	if s.resends == 0 {
		return
	}
	m.stats.Timeouts++
	s.timeout(s.peerWindow)
	s.inRow = 0
	s.backoff++
	if s.backoff > 1 && (large || p.confirmed > wire.DefaultPacket) {
		p.refuse(p.confirmed, m.now)
	}
	s.arm(k)
	k.c.wake()
}

// hasten makes the next retransmission earlier.
func (s *sender) hasten(k *Call, wait Time) {
	at := k.c.m.now + wait<<min(s.backoff, 6)
	if s.timeoutAt != 0 && at < s.timeoutAt {
		s.timeoutAt = at
	}
}

// ponged processes the answer to a ping.
func (k *Call) ponged(serial uint32) {
	k.c.peer.reached = max(k.c.m.now, 1)
	if k.waiting {
		k.offer()
	}
	k.out.probe.answered(k, serial)
}
