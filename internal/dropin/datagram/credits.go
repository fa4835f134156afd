package datagram

import "time"

// maxCredits is how many queue pairs of a process are remembered.
const maxCredits = 256

// Credits are how many receives the queue pairs of one process have, as far as it has said so. A message to a queue pair that
// has none stays in the send queue, while others go on. A queue pair that does not answer for some time is sent to without regard
// for that, until it answers. The zero Credits know nothing.
type Credits struct {
	of map[uint32]*credit // by number of the queue pair
	at [windowDatagrams]taken
	// within is the queue pair to which a message has begun, and not ended; or 0.
	within uint32
}

// A credit is that of one queue pair.
type credit struct {
	known   bool
	left    uint32 // messages
	room    uint32 // that it has said it has
	asked   uint32 // the last sequence number that asked it
	asking  bool   // it has been asked, and has not answered
	waiting bool
	since   time.Duration // when the wait has begun
}

// taken is what a datagram takes: with the last fragment of a message, a receive.
type taken struct {
	sequence, to uint32
	last         bool
}

// May reports whether a message to a queue pair may begin.
func (c *Credits) May(dest uint32, now time.Duration) bool {
	q := c.of[dest]
	if q == nil || !q.known || q.left > 0 {
		return true
	}
	if !q.waiting {
		q.waiting, q.since = true, now
	}
	return false
}

// Sent notes a fragment of a message that takes a receive, and reports whether it is to ask for an Ack. ask says that it does so
// anyway.
func (c *Credits) Sent(sequence, dest uint32, first, last, ask bool) bool {
	q := c.find(dest)
	q.waiting = false
	if first {
		c.within = dest
		q.left -= min(q.left, 1)
	}
	c.at[sequence%windowDatagrams] = taken{sequence, dest, last}
	if last {
		c.within = 0
		ask = ask || !q.known && !q.asking || q.known && (q.left == 0 || q.left == q.room/2)
	}
	if ask {
		q.asked, q.asking = sequence, true
	}
	return ask
}

// find returns the credit of a queue pair.
func (c *Credits) find(dest uint32) *credit {
	q := c.of[dest]
	if q != nil {
		return q
	}
	if c.of == nil {
		c.of = make(map[uint32]*credit)
	}
	for old := range c.of {
		if len(c.of) < maxCredits {
			break
		}
		delete(c.of, old) // what becomes of it is asked anew
	}
	q = new(credit)
	c.of[dest] = q
	return q
}

// Ack notes that the queue pair which was asked by a datagram had so many receives when that had come, or has them now. It
// reports whether something that waits may go on.
func (c *Credits) Ack(sequence, room uint32) bool {
	dest, q := c.whom(sequence)
	if q == nil {
		return false
	}
	if q.asked == sequence {
		q.asking = false
	}
	q.known, q.room = true, room
	q.left = room - min(room, c.after(sequence, dest))
	if q.left == 0 && room > 0 && !q.asking {
		q.left = 1 // nothing that is in flight asks: the next message does
	}
	waited := q.waiting
	q.waiting = waited && q.left == 0
	return waited && q.left > 0
}

// whom returns the queue pair that a datagram has asked, or nil.
func (c *Credits) whom(sequence uint32) (uint32, *credit) {
	if t := c.at[sequence%windowDatagrams]; t.sequence == sequence && t.to != 0 {
		return t.to, c.of[t.to]
	}
	for dest, q := range c.of { // it was asked long ago
		if q.asked == sequence && (q.asking || q.known && q.left == 0) {
			return dest, q
		}
	}
	return 0, nil
}

// after returns how many messages to a queue pair were sent behind a datagram.
func (c *Credits) after(sequence, dest uint32) (n uint32) {
	for _, t := range c.at {
		if t.last && t.to == dest && int32(t.sequence-sequence) > 0 {
			n++
		}
	}
	if c.within == dest {
		n++
	}
	return n
}

// Wait reports how much longer something waits for a queue pair, or false if nothing does. One that has not answered for too long
// is not waited for any more.
func (c *Credits) Wait(now time.Duration) (left time.Duration, waits bool) {
	for _, q := range c.of {
		if !q.waiting {
			continue
		}
		rest := q.since + patience - now
		if rest <= 0 {
			q.known, q.asking, q.waiting = false, false, false
			continue
		}
		if !waits || rest < left {
			left, waits = rest, true
		}
	}
	return left, waits
}
