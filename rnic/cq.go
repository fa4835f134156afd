package rnic

import (
	"fmt"
	"sync"
	"sync/atomic"

	"urnic/pd"
	"urnic/rdmap"
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
	// a queue that overflows fails, and with it the queue pairs that use it,
	// with a connection or without, which can't connect any more.
	Entries int
	Channel *CompletionChannel // told when the queue fires, if not nil
	// FireQueued makes Arm fire at once if a completion of that kind is in the queue
	// already, as some hardware does: programs that count on it arm, poll less than
	// there is, and wait. It does not fire for the same ones twice: Arm is silent if, since
	// the queue has fired, nothing was added and nothing polled. Programs that arm again
	// before they poll, and then take an event for a completion, count on that.
	FireQueued bool
	// TellEach makes a queue that has fired several times before its channel is asked
	// come from it as often, and not once: programs that count take one for each Arm.
	TellEach bool
	// PD, if not nil, reserves the queue for the queue pairs of this domain, and
	// counts it against the domain's quotas; else it is the device's.
	PD *PD
}

// A CQ is a completion queue. All of its methods are safe for concurrent use.
type CQ struct {
	dev     *Device
	num     uint32
	pd      *PD
	quota   quota
	channel *CompletionChannel
	queued  atomic.Bool // in the channel
	eager   bool        // CQAttr.FireQueued
	each    bool        // CQAttr.TellEach

	mu       sync.Mutex // taken last: below it only that of the channel
	queue    fifo[cqe]
	armed    atomic.Uint32 // a Notify, or 0; written under mu
	fired    chan struct{} // holds one token when the queue has fired
	told     bool          // the queue has fired for what is in it
	waiters  atomic.Int32  // in Wait, and not driving; written under mu
	news     chan struct{} // holds one token when those in Wait must look again
	overflow bool
	closed   bool
	drive    driving

	users   atomic.Int32 // work queues that complete here
	closing sync.Mutex   // held by Close
}

// A quota is the account that an object is charged to: the device's or a
// domain's.
type quota interface {
	Reserve(r pd.Resource, n uint64) error
	Release(r pd.Resource, n uint64)
}

// A cqe is a completion in the queue, with what to do when it is polled.
type cqe struct {
	wc   WC
	held *atomic.Int32 // receives of an SRQ that a stream holds, places that a queue holds, or nil
}

// CreateCQ returns a new completion queue. It returns an *OpError if the size
// is out of range or exceeds a quota.
func (d *Device) CreateCQ(attr CQAttr) (*CQ, error) {
	const op = "create CQ"
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if attr.Entries == 0 {
		attr.Entries = min(256, d.cfg.MaxCQE)
	}
	switch {
	case attr.Entries < 1 || attr.Entries > d.cfg.MaxCQE:
		return nil, d.fail(op, fmt.Errorf("%d entries: say 1 to %d", attr.Entries, d.cfg.MaxCQE))
	case attr.Channel != nil && !attr.Channel.made():
		return nil, d.fail(op, fmt.Errorf("the completion channel: %w", ErrNotMade))
	case attr.PD != nil && !attr.PD.made():
		return nil, d.fail(op, fmt.Errorf("the PD: %w", ErrNotMade))
	case attr.Channel != nil && attr.Channel.dev != d, attr.PD != nil && attr.PD.dev != d:
		return nil, d.fail(op, ErrForeign)
	case attr.Channel != nil && attr.Channel.isClosed():
		return nil, d.fail(op, fmt.Errorf("the completion channel: %w", ErrClosed))
	}
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.end()
	var q quota = d.manager
	if attr.PD != nil {
		q = attr.PD.domain
	}
	// "The Privileged Resource Manager MUST control the allocation of CQ
	// entries": RFC 5040 §8.1.2 rule 5.
	if err := q.Reserve(pd.CompletionQueues, 1); err != nil {
		return nil, d.fail(op, ofDomain(err))
	}
	if err := q.Reserve(pd.CQEntries, uint64(attr.Entries)); err != nil {
		q.Release(pd.CompletionQueues, 1)
		return nil, d.fail(op, ofDomain(err))
	}
	c := &CQ{
		dev: d, num: d.lastNum.Add(1), pd: attr.PD, quota: q, channel: attr.Channel, eager: attr.FireQueued, each: attr.TellEach,
		queue: fifo[cqe]{limit: attr.Entries}, fired: make(chan struct{}, 1), news: make(chan struct{}, 1),
	}
	put(d, d.cqs, closer(c))
	return c, nil
}

func (c *CQ) release() {
	c.quota.Release(pd.CQEntries, uint64(c.queue.limit))
	c.quota.Release(pd.CompletionQueues, 1)
}

// made reports whether CreateCQ has made the queue.
func (c *CQ) made() bool { return c != nil && c.dev != nil }

// Num returns the number of the queue within its device.
func (c *CQ) Num() uint32 {
	if !c.made() {
		return 0
	}
	return c.num
}

// Entries returns how many completions the queue holds.
func (c *CQ) Entries() int {
	if !c.made() {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queue.limit
}

func (c *CQ) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("CQ %d", c.num), Err: err}
}

// push adds a completion, unless its queue pair is forgotten. It returns false if
// there is no place: then the queue has overflowed, and takes nothing more.
func (c *CQ) push(e cqe, solicited bool, forgotten *atomic.Bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if forgotten.Load() {
		if e.held != nil {
			e.held.Add(-1)
		}
		return true
	}
	return c.add(e, solicited)
}

// purge takes the completions of a queue pair out of the queue.
func (c *CQ) purge(qpn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.queue.n {
		e := c.queue.pop()
		if e.wc.QPN != qpn {
			c.queue.push(e)
		} else if e.held != nil {
			e.held.Add(-1)
		}
	}
}

// received counts the completions of a queue pair's receives that have succeeded.
func (c *CQ) received(qpn uint32) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.queue.n {
		wc := &c.queue.at(i).wc
		if wc.QPN == qpn && wc.Status == StatusSuccess && (wc.Op == OpRecv || wc.Op == OpRecvImmediate) {
			n++
		}
	}
	return n
}

// add is push for a caller that holds mu.
func (c *CQ) add(e cqe, solicited bool) bool {
	if c.overflow || c.closed {
		return false
	}
	if c.queue.full() {
		c.overflow = true        // those who wait were woken for what is in the queue, and look again
		if c.armed.Load() != 0 { // whoever waits for that must not sleep on
			c.fire()
		}
		c.dev.wg.Go(c.overflowed) // the caller holds locks of a queue pair
		return false
	}
	c.queue.push(e)
	c.told = false
	c.wake()
	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited || e.wc.Status != StatusSuccess) {
		c.told = true
		c.fire()
	}
	return true
}

// wake tells one of those in Wait, who tells the next if there is more to be
// had. The caller holds mu.
func (c *CQ) wake() {
	if l := c.drive.sleeper; l != nil {
		c.drive.sleeper = nil
		l.conn.Interrupt()
		return
	}
	if c.waiters.Load() == 0 {
		return
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// fire tells whoever has armed the queue. The caller holds mu.
func (c *CQ) fire() {
	c.armed.Store(0)
	select {
	case c.fired <- struct{}{}:
	default:
	}
	if c.channel != nil {
		c.channel.put(c)
	}
}

// overflowed ends the queue pairs that complete here; others are not touched
// (RFC 5040 §8.1.1 rule 10). One that gets a stream later asks join.
func (c *CQ) overflowed() {
	c.dev.report(Event{Type: EventCQOverflow, CQ: c, Err: ErrOverflow})
	for _, q := range c.dev.list() {
		if q.sendCQ == c || q.recvCQ == c {
			q.catastrophe(c.noPlace())
		}
	}
}

// noPlace is the error of a queue pair that can't complete here any more.
func (c *CQ) noPlace() *rdmap.Error {
	return &rdmap.Error{Code: rdmap.CodeStreamCatastrophic, Clause: "RFC 5040 §8.1.1", Err: c.fail("complete", ErrOverflow)}
}

// join says why no work queue can be made to complete here, if that is so. The
// caller has counted itself among the users, so that the queue stays open.
func (c *CQ) join() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return fmt.Errorf("CQ %d: %w", c.num, ErrClosed)
	case c.overflow:
		return fmt.Errorf("CQ %d: %w", c.num, ErrOverflow)
	}
	return nil
}

// Poll moves completions into wcs, oldest first, and returns how many. It never
// waits. If there are none, it looks whether the peers of the queue's connections
// have sent something, so that a program that polls again and again is served by
// its own calls. Once it stops, the RNIC goes on alone, within 200 µs; within 20 ms,
// if it has polled for long. Arm, or Wait, makes that at once.
//
// What a work request did to memory happens before the Poll that returns its
// completion returns.
func (c *CQ) Poll(wcs []WC) int {
	if !c.made() {
		return 0
	}
	n := c.take(wcs)
	switch {
	case n > 0:
		c.drive.vain.Store(0)
	case len(wcs) > 0 && c.progress():
		n = c.take(wcs)
	}
	return n
}

func (c *CQ) take(wcs []WC) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(wcs), c.queue.n)
	if n > 0 {
		c.told = false
	}
	for i := range n {
		e := c.queue.pop()
		wcs[i] = e.wc
		if e.held != nil {
			e.held.Add(-1)
		}
	}
	return n
}

// Resize changes how many completions the queue holds. It returns an *OpError
// if there are more now, or a quota is used up; the queue is unchanged then.
func (c *CQ) Resize(entries int) error {
	const op = "resize"
	if !c.made() {
		return notMade(op, "CQ")
	}
	if most := c.dev.cfg.MaxCQE; entries < 1 || entries > most {
		return c.fail(op, fmt.Errorf("%d entries: say 1 to %d", entries, most))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.queue.limit
	switch {
	case c.closed:
		return c.fail(op, ErrClosed)
	case entries < c.queue.n:
		return c.fail(op, fmt.Errorf("%d entries, but %d completions are in the queue: poll first", entries, c.queue.n))
	case entries > old:
		if err := c.quota.Reserve(pd.CQEntries, uint64(entries-old)); err != nil {
			return c.fail(op, err)
		}
	}
	c.queue.resize(entries)
	if entries < old {
		c.quota.Release(pd.CQEntries, uint64(old-entries))
	}
	return nil
}

// Close gives the queue up, with the completions in it. It returns an *OpError
// that wraps ErrBusy while queue pairs use it.
func (c *CQ) Close() error {
	if !c.made() {
		return notMade("close", "CQ")
	}
	c.closing.Lock()
	defer c.closing.Unlock()
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
	if c.channel != nil {
		c.channel.events.discard(func(o *CQ) bool { return o == c })
	}
	c.release()
	remove(c.dev, c.dev.cqs, closer(c))
	return nil
}
