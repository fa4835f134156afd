package machine

// A Message is what Receive returns.
type Message struct {
	// Data is the message. It belongs to the caller; Machine.Free may take it
	// back.
	Data []byte
	// Seq is the sequence number. Those of a connection follow one another, those of NULs
	// included.
	Seq uint32
	// Nulls, if not 0, says that there is no data: Nulls numbers, from Seq on, were those of
	// NULs. It is 0 without Params.Numbers.
	Nulls uint32
}

// Receive returns the next message (U9 to U11). ErrWouldBlock says that there is none yet: a Readable
// event will follow. After the end of the connection, Receive returns what was accepted before, and
// then why the connection has ended: a *ConnError, or ErrNotOpen if it was closed here.
func (c *Conn) Receive() (Message, error) {
	if c.queue.n == 0 {
		switch {
		case c.state != Closed && c.state != CloseWait:
			return Message{}, ErrWouldBlock
		case c.err != nil:
			return Message{}, c.err
		}
		return Message{}, ErrNotOpen
	}
	msg := c.queue.pop(&c.m.pool)
	if msg.Nulls > 0 {
		c.nNulls--
	} else {
		c.m.memory -= capacity(len(msg.Data))
		if c.read != nil && c.state == Open {
			c.wasRead(msg.Seq)
		}
	}
	return msg, nil
}

// dropQueue forgets what was not read.
func (c *Conn) dropQueue() {
	for c.queue.n > 0 {
		msg := c.queue.pop(&c.m.pool)
		if msg.Data != nil {
			c.m.memory -= capacity(len(msg.Data))
			c.m.pool.put(msg.Data)
		}
	}
	c.nNulls = 0
}

// accept takes the number of a data segment or a NUL inside the window, and its data (O3, O8 to
// O10). A NUL is a segment with a number and no data: it fills a hole, but does not jump over one.
func (c *Conn) accept(number uint32, data []byte) {
	if c.got.has(c.cur, number) { // O10
		c.stats.Duplicates++
		c.latest = number
		c.ackNow()
		return
	}
	next := number == c.whole+1
	if data != nil && !c.fits(next, len(data)) || data == nil && !c.fitsNull(number) {
		c.ackNow() // says that we are here, and that this was not accepted
		return
	}
	soon := next && c.got.n == 0 && data != nil // nothing is missing
	c.latest = number
	c.got.add(c.cur, number)
	c.deliver(number, data)
	switch {
	case c.read == nil:
		c.cur = c.got.advance(c.cur)
	case data == nil:
		c.acknowledge(number)
	case next:
		return // Receive acknowledges, or Sink has
	}
	if soon {
		c.ackSoon()
	} else {
		c.ackNow()
	}
}

// fits reports whether a message of n bytes fits; next says that nothing before it is missing.
// What is refused is not acknowledged (RFC 1151 p.3: there is no way to close the window).
func (c *Conn) fits(next bool, n int) bool {
	m := c.m
	unread := c.queue.n - int(c.nNulls) + int(c.nHeld)
	if !c.p.Loose {
		most := c.p.Window
		if c.ordered && !next {
			most-- // a place is for what the others wait for
		}
		if unread >= most {
			c.stats.Unread++
			m.counters.Unread++
			return false
		}
	}
	// What is in turn for a connection that has nothing is always accepted.
	if m.memory+capacity(n) > m.cfg.Memory && (!next || c.queue.n > 0) {
		c.stats.Unread++
		m.counters.NoMemory++
		return false
	}
	return true
}

// deliver delivers data to the user (RFC 908 §4.3.2): at once, or when all that precedes it has
// arrived. data is nil for a NUL.
func (c *Conn) deliver(number uint32, data []byte) {
	next := number == c.whole+1
	if data != nil {
		c.stats.Messages++
	}
	switch now := next || !c.ordered; {
	case now && c.sink(number, data):
	case data == nil:
		if now {
			c.enqueueNull(number)
		}
	default:
		c.m.memory += capacity(len(data))
		data = c.m.pool.clone(data)
		if now {
			c.enqueue(number, data)
		} else {
			c.hold(number, data)
		}
	}
	if !next {
		return
	}
	for c.whole++; c.got.has(c.cur, c.whole+1); {
		if c.whole++; c.ordered {
			c.deliverHeld(c.whole)
		}
	}
}

// deliverHeld delivers what has waited for its predecessors.
func (c *Conn) deliverHeld(number uint32) {
	data := c.unhold(number)
	switch {
	case data == nil:
		if !c.sink(number, nil) {
			c.enqueueNull(number)
		}
	case c.sink(number, data):
		c.m.memory -= capacity(len(data))
		c.m.pool.put(data)
	default:
		c.enqueue(number, data)
	}
}

// sink offers a message to Params.Sink. It reports whether that has accepted
// it.
func (c *Conn) sink(number uint32, data []byte) bool {
	if c.p.Sink == nil || c.queue.n > 0 || data == nil && !c.p.Numbers {
		return false
	}
	msg := Message{Data: data, Seq: number}
	if data == nil {
		msg.Nulls = 1
	}
	if !c.p.Sink(c, msg) {
		return false
	}
	if c.read != nil && data != nil {
		c.acknowledge(number)
		c.ackSoon()
	}
	return true
}

// enqueue queues a message for Receive.
func (c *Conn) enqueue(number uint32, data []byte) {
	c.queue.push(&c.m.pool, Message{Data: data, Seq: number})
	c.tell(Readable)
}

// enqueueNull queues a NUL for Receive, with Params.Numbers. Consecutive ones are one message.
func (c *Conn) enqueueNull(number uint32) {
	switch {
	case !c.p.Numbers:
	case c.follows(number):
		c.queue.last().Nulls++
	default:
		c.nNulls++
		c.queue.push(&c.m.pool, Message{Seq: number, Nulls: 1})
		c.tell(Readable)
	}
}

// follows reports whether a number is the next one of the NULs that Receive returns last.
func (c *Conn) follows(number uint32) bool {
	if c.nNulls == 0 {
		return false
	}
	last := c.queue.last()
	return last.Nulls > 0 && last.Seq+last.Nulls == number
}

// fitsNull reports whether a NUL fits, which uses a slot only with Params.Numbers. Those of an
// idle peer use one together.
func (c *Conn) fitsNull(number uint32) bool {
	return !c.p.Numbers || c.follows(number) || int(c.nNulls) < 2*c.p.Window
}

// hold keeps data until its predecessors have arrived. The slots are those of
// got.
func (c *Conn) hold(number uint32, data []byte) {
	if data == nil {
		return
	}
	if size := 64 * len(c.got.bits); len(c.held) < size {
		old := c.held
		c.held = c.m.pool.held.get(size)
		for n := c.whole + 1; n != c.whole+1+uint32(len(old)); n++ {
			from := &old[n&uint32(len(old)-1)]
			c.held[n&uint32(size-1)], *from = *from, nil
		}
		c.m.pool.held.put(old)
	}
	c.held[number&uint32(len(c.held)-1)] = data
	c.nHeld++
}

// unhold returns the data of a number, or nil if it was a NUL's.
func (c *Conn) unhold(number uint32) []byte {
	if c.nHeld == 0 {
		return nil
	}
	slot := &c.held[number&uint32(len(c.held)-1)]
	data := *slot
	if *slot = nil; data != nil {
		if c.nHeld--; c.nHeld == 0 {
			c.m.pool.held.put(c.held)
			c.held = nil
		}
	}
	return data
}

// dropHeld forgets data that waits for predecessors, which will not arrive.
func (c *Conn) dropHeld() {
	for i, data := range c.held {
		if data != nil {
			c.held[i] = nil
			c.m.memory -= capacity(len(data))
			c.m.pool.put(data)
		}
	}
	c.m.pool.held.put(c.held)
	c.held, c.nHeld = nil, 0
}

// wasRead acknowledges a message that was read (RFC 1151 p.3), where that is the mode.
func (c *Conn) wasRead(number uint32) {
	c.latest = number
	c.acknowledge(number)
	c.ackSoon()
	c.arm()
}

// acknowledge notes that a number may be acknowledged, where that is not when it is accepted.
func (c *Conn) acknowledge(number uint32) {
	c.read.add(c.cur, number)
	for to := c.read.advance(c.cur); c.cur != to; c.cur++ {
		c.got.remove(c.cur, c.cur+1)
	}
}

// ackSoon makes an acknowledgement be sent with data, with that of the next segment, or after a
// short time. With a window of one or two segments the peer would wait for it.
func (c *Conn) ackSoon() {
	cfg := &c.m.cfg
	if c.waiting++; int(c.waiting) >= cfg.AckEvery || c.p.Window <= 2 || cfg.AckDelay < 0 {
		c.ackNow()
		return
	}
	c.ackAt = min(c.ackAt, c.m.now+cfg.AckDelay)
}
