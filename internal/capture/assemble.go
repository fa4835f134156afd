package capture

// waits reports whether a segment acknowledges bytes that were not seen. Then
// the capture either has packets out of order or lost some. The segment must
// wait until that is clear: what the acknowledged bytes caused must not be
// seen before them.
func (c *conn) waits(from Side, s *segment) bool {
	peer := &c.dirs[1-from]
	if !s.ok || s.syn || !peer.started || peer.closed || peer.reset {
		return false
	}
	ahead := peer.after(s.ack)
	return ahead > 0 && ahead < maxJump
}

// hold keeps a segment that waits.
func (a *Assembler) hold(c *conn, from Side, at At, s *segment) {
	h := heldSegment{segment: *s, from: from, at: at}
	h.data = append([]byte(nil), s.data...)
	a.ahead += len(h.data)
	c.held = append(c.held, h)
	if len(c.held) > maxHeld || a.ahead > a.maxAheadTotal {
		a.giveUp(c)
	}
}

// unhold removes a segment from those that wait, and processes it.
func (a *Assembler) unhold(c *conn, i int) {
	h := c.held[i]
	c.held = append(c.held[:i], c.held[i+1:]...)
	a.ahead -= len(h.data)
	a.process(c, h.from, h.at, &h.segment)
}

// release processes the segments that need not wait any more.
func (a *Assembler) release(c *conn) {
	for i := 0; i < len(c.held); {
		if h := &c.held[i]; c.waits(h.from, &h.segment) {
			i++
			continue
		}
		a.unhold(c, i)
		i = 0 // what was processed may have been waited for
	}
}

// giveUp counts what one of the waiting segments acknowledges as lost: the
// first one that does not wait for what another one holds.
func (a *Assembler) giveUp(c *conn) {
	i := 0
	for j := range c.held {
		if !c.isHeld(1 - c.held[j].from) {
			i = j
			break
		}
	}
	h := &c.held[i]
	side, d := 1-h.from, &c.dirs[1-h.from]
	for !d.closed && d.after(h.ack) > 0 {
		before := d.next
		if a.skip(c, side, h.at, h.ack); d.next == before {
			break
		}
	}
	a.unhold(c, i)
	a.release(c)
}

// isHeld reports whether the next byte of a side is in a segment that waits.
func (c *conn) isHeld(side Side) bool {
	d := &c.dirs[side]
	for i := range c.held {
		h := &c.held[i]
		if h.from == side && d.after(h.seq) <= 0 && d.after(h.seq+uint32(len(h.data))) > 0 {
			return true
		}
	}
	return false
}

// skip counts bytes as lost: up to the next that is there, but not beyond end. Bytes
// whose checksum was wrong are better than none.
func (a *Assembler) skip(c *conn, side Side, at At, end uint32) {
	d := &c.dirs[side]
	for i := range d.suspects {
		if h := &d.suspects[i]; d.after(h.seq) <= 0 && d.after(h.end()) > 0 {
			a.useSuspect(c, side, i)
			return
		}
	}
	if d.fin && int32(d.finSeq-end) < 0 {
		end = d.finSeq
	}
	if len(d.pending) > 0 && int32(d.pending[0].seq-end) < 0 {
		end = d.pending[0].seq
	}
	if n := d.after(end); n > 0 && !d.perhapsFIN(end) {
		if !c.ignored {
			c.consumer.Hole(side, at, n)
		}
		d.any = true
		d.next = end
		a.sent -= len(d.sent)
		d.sent = nil
	}
	a.advance(c, side, at)
}

// process adds a segment to its direction.
func (a *Assembler) process(c *conn, from Side, at At, s *segment) {
	d, peer := &c.dirs[from], &c.dirs[1-from]
	seq := s.seq
	if s.syn {
		seq++
		if !d.started {
			d.start(seq)
			c.FromStart[from] = true
		}
		d.syn, d.isn, d.shift = true, s.seq, s.scale
	}
	if !d.started {
		if s.size() == 0 {
			return
		}
		d.start(seq)
	}
	if s.ok && !peer.started {
		// What is acknowledged says where the other stream stands. If it is
		// the end of the handshake, that is its beginning.
		peer.start(s.ack)
		c.FromStart[1-from] = s.syn || d.syn && !d.any && d.isn+1 == s.seq
	}
	if off := d.after(seq); off > maxJump || off < -maxJump {
		return
	}
	if s.ok {
		a.acknowledge(c, 1-from, at, s)
	}
	if s.rst {
		a.reset(c, from, at)
		return
	}
	if s.fin && !d.fin {
		if end := seq + s.size(); d.after(end) < 0 && d.any {
			a.remark(c, from, at, Drop{Kind: DropFIN, Off: d.after(end)})
		} else {
			d.fin, d.finSeq = true, end
		}
	}
	a.data(c, from, at, seq, s.data)
	if s.missing > 0 && d.after(seq+uint32(len(s.data))) == 0 {
		a.skip(c, from, at, seq+s.size()) // the capture kept only the packet's beginning
	}
	a.advance(c, from, at)
	if c.dirs[0].closed && c.dirs[1].closed {
		a.finished(c)
	}
}

// reset ends a connection by a side's RST. What is still in transit counts.
func (a *Assembler) reset(c *conn, from Side, at At) {
	d := &c.dirs[from]
	for side := range c.dirs {
		a.flush(c, Side(side), at)
	}
	if !d.closed && !d.reset && !c.ignored {
		c.consumer.Close(from, at, true)
	}
	d.reset = true
	a.finished(c)
}

// data delivers bytes if they are next, or keeps them.
func (a *Assembler) data(c *conn, from Side, at At, seq uint32, b []byte) {
	d := &c.dirs[from]
	if len(b) == 0 {
		return
	}
	off := d.after(seq)
	if d.closed {
		// The FIN takes a number of its own.
		if n := off + len(b) + 1; n > 0 && n <= maxJump {
			a.remark(c, from, at, Drop{Kind: DropData, Off: off + 1, Bytes: min(n, len(b))})
		}
		return
	}
	if end := seq + uint32(len(b)); d.fin && int32(end-d.finSeq) > 0 && d.after(d.finSeq) > 0 {
		// A side that continues has not closed its stream.
		a.remark(c, from, at, Drop{Kind: DropFIN, Off: d.after(d.finSeq)})
		d.fin = false
	}
	if off > 0 {
		a.ahead += d.insert(piece{seq: seq, data: b, at: at})
		for d.held > a.maxAhead || len(d.pending) > maxPieces || a.ahead > a.maxAheadTotal && len(d.pending) > 0 {
			a.skip(c, from, at, d.pending[0].seq)
		}
		return
	}
	known := min(-off, len(b))
	a.compare(c, from, at, seq, b[:known])
	if known < len(b) {
		a.deliver(c, from, at, b[known:])
	}
}

func (a *Assembler) deliver(c *conn, from Side, at At, b []byte) {
	d := &c.dirs[from]
	d.next += uint32(len(b))
	d.any = true
	if c.ignored {
		return
	}
	a.sent -= len(d.sent)
	if d.keep(b); a.sent+len(d.sent) > maxSentTotal {
		d.sent = nil
	}
	a.sent += len(d.sent)
	a.tellNewcomer(c)
	c.consumer.Data(from, at, b)
}

// advance delivers what has become next, and the FIN if that is.
func (a *Assembler) advance(c *conn, side Side, at At) {
	d := &c.dirs[side]
	held := d.held
	for b, bad := d.pop(); b != nil; b, bad = d.pop() {
		when := at
		when.BadChecksum = bad
		a.deliver(c, side, when, b)
	}
	a.ahead -= held - d.held
	a.showVariants(c, side)
	a.dropReplaced(c, side)
	if d.fin && !d.closed && d.after(d.finSeq) <= 0 {
		d.closed = true
		d.next = d.finSeq + 1
		a.ahead -= d.held
		if d.held > 0 {
			a.remark(c, side, at, Drop{Kind: DropData, Off: d.after(d.pending[0].seq) + 1, Bytes: d.held})
		}
		d.pending, d.held = nil, 0 // nothing can lie beyond a FIN
		if !c.ignored && !d.reset {
			c.consumer.Close(side, at, false)
		}
	}
}

// flush counts all that is still missing in front of what is there as lost.
func (a *Assembler) flush(c *conn, side Side, at At) {
	d := &c.dirs[side]
	for len(d.pending) > 0 {
		a.skip(c, side, at, d.pending[len(d.pending)-1].seq)
	}
	for d.fin && !d.closed {
		before, suspects := d.next, len(d.suspects)
		if a.skip(c, side, at, d.finSeq); d.next == before && len(d.suspects) == suspects {
			break
		}
	}
}
