package rnic

// overflowed ends the queue pairs that complete in a queue that has overflowed, and no
// others (RFC 5040 §8.1.1 rule 10). A queue pair that gets a stream later calls join.
func (d *Device) overflowed(c *CQ) {
	d.report(Event{Type: EventCQOverflow, CQ: c, Err: ErrOverflow})
	for _, q := range d.queuePairs() {
		if q.sendCQ == c || q.recvCQ == c {
			q.catastrophe(c.noSlot())
		}
	}
}
