package rnic

import (
	"fmt"
	"sync"
	"sync/atomic"

	"urnic/internal/ring"
	"urnic/pd"
	"urnic/rdmap"
	"urnic/rnic/internal/drive"
)

// A Notify selects the completions that fire an armed completion queue.
type Notify uint8

// The completions that a queue can be armed for.
const (
	// NextCompletion is any completion.
	NextCompletion Notify = iota + 1
	// NextSolicited is a receive for which the peer asked for a solicited event,
	// or any completion in error.
	NextSolicited
)

// A CQ is a completion queue. All of its methods are safe for concurrent use.
type CQ struct {
	dev     *Device
	num     uint32
	pd      *PD
	quota   quota
	channel cqChannel   // or nil
	queued  atomic.Bool // in the channel

	overflowed func() // called once, in a goroutine, when a completion finds no slot

	fireForQueued, notifyEach bool // from the policy

	mu       sync.Mutex // taken last: below it only that of the channel
	queue    ring.Ring[cqe]
	armed    atomic.Uint32 // a Notify, or 0; written under mu
	fired    signal        // the queue has fired
	told     bool          // the queue has fired for what is in it, see policy.FireForQueued
	overflow bool
	closed   bool
	programs drive.Group // that poll and wait, and the links that complete here

	users   atomic.Int32 // work queues that complete here
	closing sync.Mutex   // held by Close
}

// A cqChannel is notified when queues fire, see CompletionChannel.
type cqChannel interface {
	put(*CQ)
	forget(*CQ)
}

// A cqe is a completion in the queue, with what to do when it is polled.
type cqe struct {
	wc   WC
	held *atomic.Int32 // receives of an SRQ that a stream holds, slots that a queue holds, or nil
}

func (c *CQ) release() {
	c.quota.Release(pd.CQEntries, uint64(c.queue.Limit()))
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
	return c.queue.Limit()
}

func (c *CQ) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("CQ %d", c.num), Err: err}
}

// push adds a completion, unless its queue pair is forgotten. It returns false
// if there is no slot: then the queue has overflowed, and accepts no more.
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

// purge removes the completions of a queue pair from the queue.
func (c *CQ) purge(qpn uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range c.queue.Len() {
		e := c.queue.Pop()
		if e.wc.QPN != qpn {
			c.queue.Push(e)
		} else if e.held != nil {
			e.held.Add(-1)
		}
	}
}

// received counts the completions of a queue pair's receives that have succeeded.
func (c *CQ) received(qpn uint32) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.queue.Len() {
		wc := &c.queue.At(i).wc
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
	if c.queue.Full() {
		c.overflow = true        // those who wait were woken for what is in the queue, and look again
		if c.armed.Load() != 0 { // a goroutine that waits for one must wake up
			c.fire()
		}
		c.dev.wg.Go(c.overflowed) // the caller holds locks of a queue pair
		return false
	}
	c.queue.Push(e)
	c.told = false
	c.programs.Wake()
	if armed := Notify(c.armed.Load()); armed == NextCompletion || armed == NextSolicited && (solicited || e.wc.Status != StatusSuccess) {
		c.told = true
		c.fire()
	}
	return true
}

// fire notifies the program that has armed the queue. The caller holds mu.
func (c *CQ) fire() {
	c.armed.Store(0)
	c.fired.raise()
	if c.channel != nil {
		c.channel.put(c)
	}
}

// noSlot is the error of a queue pair that can no longer complete here.
func (c *CQ) noSlot() *rdmap.Error {
	return &rdmap.Error{Code: rdmap.CodeStreamCatastrophic, Clause: "RFC 5040 §8.1.1", Err: c.fail("complete", ErrOverflow)}
}

// join returns why work queues can no longer complete here, or nil. The caller
// has counted itself among the users, so that the queue stays open.
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
// waits. If there are none, it receives what the peers of the queue's
// connections have sent: the calls of a program that polls in a loop do the
// RNIC's work. When the program stops, goroutines of the RNIC take over within
// 200 µs; within 20 ms, if it has polled for long. Arm and Wait make them do so
// at once.
//
// What a work request does to memory happens before the Poll that returns its
// completion returns.
func (c *CQ) Poll(wcs []WC) int {
	if !c.made() {
		return 0
	}
	n := c.take(wcs)
	switch {
	case n > 0:
		c.programs.Found()
	case len(wcs) > 0 && c.programs.Poll():
		n = c.take(wcs)
	}
	return n
}

func (c *CQ) take(wcs []WC) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(wcs), c.queue.Len())
	if n > 0 {
		c.told = false
	}
	for i := range n {
		e := c.queue.Pop()
		wcs[i] = e.wc
		if e.held != nil {
			e.held.Add(-1)
		}
	}
	return n
}

// Resize changes how many completions the queue holds. If it holds more now, or
// a quota is used up, Resize returns an *OpError and the queue is unchanged.
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
	old := c.queue.Limit()
	switch {
	case c.closed:
		return c.fail(op, ErrClosed)
	case entries < c.queue.Len():
		return c.fail(op, fmt.Errorf("%d entries, but %d completions are in the queue: poll first", entries, c.queue.Len()))
	case entries > old:
		if err := c.quota.Reserve(pd.CQEntries, uint64(entries-old)); err != nil {
			return c.fail(op, err)
		}
	}
	c.queue.SetLimit(entries)
	if entries < old {
		c.quota.Release(pd.CQEntries, uint64(old-entries))
	}
	return nil
}

// Close releases the queue and drops the completions in it. It returns an
// *OpError that wraps ErrBusy while queue pairs use the queue.
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
	c.programs.Wake()
	c.mu.Unlock()
	if c.channel != nil {
		c.channel.forget(c)
	}
	c.release()
	c.dev.remove(c.dev.cqs, c)
	return nil
}
