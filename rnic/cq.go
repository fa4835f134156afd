package rnic

import (
	"fmt"
	"sync"
	"sync/atomic"

	"urnic/pd"
)

// A Notify says which completions fire an armed completion queue.
type Notify uint8

// What a completion queue can be armed for.
const (
	// NextCompletion is any completion.
	NextCompletion Notify = iota + 1
	// NextSolicited is a receive for which the peer asked for a solicited event,
	// or any completion in error.
	NextSolicited
)

// CQAttr says what a completion queue is like.
type CQAttr struct {
	// Entries is how many completions the queue holds; 0 stands for 256. It must
	// have room for all completions of its work queues that nobody has polled:
	// a queue that overflows fails, and with it the queue pairs that use it.
	Entries int
	Channel *CompletionChannel // told when the queue fires, if not nil
	PD      *PD                // if not nil, only queue pairs of this domain may use it
}

// A CQ is a completion queue. All of its methods are safe for concurrent use.
type CQ struct {
	dev     *Device
	num     uint32
	pd      *PD
	channel *CompletionChannel

	mu       sync.Mutex // taken last: below it only that of the channel
	ring     []cqe
	head, n  int
	armed    Notify
	fired    chan struct{} // holds one token when the queue has fired
	waiting  chan struct{} // closed when a completion comes; nil while nobody waits
	overflow bool
	closed   bool

	users atomic.Int32 // work queues that complete here
}

// A cqe is a completion in the queue, with what to do when it is polled.
type cqe struct {
	wc   WC
	held *atomic.Int32 // receives of an SRQ that a stream holds, or nil
}

// CreateCQ returns a new completion queue. It returns an *OpError if the size
// is out of range or exceeds a quota.
func (d *Device) CreateCQ(attr CQAttr) (*CQ, error) {
	const op = "create CQ"
	if attr.Entries == 0 {
		attr.Entries = 256
	}
	switch {
	case attr.Entries < 1 || attr.Entries > MaxCQE:
		return nil, d.fail(op, fmt.Errorf("%d entries: say 1 to %d", attr.Entries, MaxCQE))
	case attr.Channel != nil && attr.Channel.dev != d, attr.PD != nil && attr.PD.dev != d:
		return nil, d.fail(op, ErrForeign)
	}
	// "The Privileged Resource Manager MUST control the allocation of CQ
	// entries": RFC 5040 §8.1.2 rule 5.
	if err := d.manager.Reserve(pd.CompletionQueues, 1); err != nil {
		return nil, d.fail(op, err)
	}
	if err := d.manager.Reserve(pd.CQEntries, uint64(attr.Entries)); err != nil {
		d.manager.Release(pd.CompletionQueues, 1)
		return nil, d.fail(op, err)
	}
	c := &CQ{dev: d, num: d.lastNum.Add(1), pd: attr.PD, channel: attr.Channel, ring: make([]cqe, attr.Entries), fired: make(chan struct{}, 1)}
	if err := add(d, d.cqs, closer(c)); err != nil {
		c.release()
		return nil, d.fail(op, err)
	}
	return c, nil
}

func (c *CQ) release() {
	c.dev.manager.Release(pd.CQEntries, uint64(len(c.ring)))
	c.dev.manager.Release(pd.CompletionQueues, 1)
}

// Num returns the number of the queue within its device.
func (c *CQ) Num() uint32 { return c.num }

// Entries returns how many completions the queue holds.
func (c *CQ) Entries() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ring)
}

func (c *CQ) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("CQ %d", c.num), Err: err}
}

// push adds a completion. It returns false if there is no place: then the queue
// has overflowed, and takes nothing more.
func (c *CQ) push(e cqe, solicited bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.overflow || c.closed {
		return false
	}
	if c.n == len(c.ring) {
		c.overflow = true
		c.wake()
		c.dev.wg.Go(c.overflowed) // the caller holds locks of a queue pair
		return false
	}
	c.ring[(c.head+c.n)%len(c.ring)] = e
	c.n++
	c.wake()
	if c.armed == NextCompletion || c.armed == NextSolicited && (solicited || e.wc.Status != StatusSuccess) {
		c.armed = 0
		c.fire()
	}
	return true
}

// wake tells those in Wait. The caller holds mu.
func (c *CQ) wake() {
	if c.waiting != nil {
		close(c.waiting)
		c.waiting = nil
	}
}

// fire tells whoever has armed the queue. The caller holds mu.
func (c *CQ) fire() {
	select {
	case c.fired <- struct{}{}:
	default:
	}
	if c.channel != nil {
		c.channel.events.put(c)
	}
}

// overflowed ends the streams that complete here; others are not touched
// (RFC 5040 §8.1.1 rule 10).
func (c *CQ) overflowed() {
	c.dev.report(Event{Type: EventCQOverflow, CQ: c, Err: ErrOverflow})
	for _, q := range c.dev.list() {
		if q.sendCQ == c || q.recvCQ == c {
			q.catastrophe(c.fail("complete", ErrOverflow))
		}
	}
}

// Poll moves completions into wcs, oldest first, and returns how many. It never
// waits.
//
// What a work request did to memory happens before the Poll that returns its
// completion returns.
func (c *CQ) Poll(wcs []WC) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(wcs), c.n)
	for i := range n {
		e := &c.ring[c.head]
		wcs[i] = e.wc
		if e.held != nil {
			e.held.Add(-1)
		}
		*e = cqe{}
		c.head = (c.head + 1) % len(c.ring)
	}
	c.n -= n
	return n
}

// Resize changes how many completions the queue holds. It returns an *OpError
// if there are more now, or a quota is used up; the queue is unchanged then.
func (c *CQ) Resize(entries int) error {
	const op = "resize"
	if entries < 1 || entries > MaxCQE {
		return c.fail(op, fmt.Errorf("%d entries: say 1 to %d", entries, MaxCQE))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := len(c.ring)
	switch {
	case c.closed:
		return c.fail(op, ErrClosed)
	case entries < c.n:
		return c.fail(op, fmt.Errorf("%d entries, but %d completions are in the queue: poll first", entries, c.n))
	case entries > old:
		if err := c.dev.manager.Reserve(pd.CQEntries, uint64(entries-old)); err != nil {
			return c.fail(op, err)
		}
	}
	ring := make([]cqe, entries)
	for i := range c.n {
		ring[i] = c.ring[(c.head+i)%old]
	}
	c.ring, c.head = ring, 0
	if entries < old {
		c.dev.manager.Release(pd.CQEntries, uint64(old-entries))
	}
	return nil
}

// Close gives the queue up, with the completions in it. It returns an *OpError
// that wraps ErrBusy while queue pairs use it.
func (c *CQ) Close() error {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil
	case c.users.Load() > 0:
		c.mu.Unlock()
		return c.fail("close", fmt.Errorf("%w by queue pairs: close them first", ErrBusy))
	}
	c.closed = true
	c.wake()
	c.mu.Unlock()
	c.release()
	remove(c.dev, c.dev.cqs, closer(c))
	return nil
}
