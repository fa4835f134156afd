package rnic

import (
	"context"
	"errors"
	"iter"

	"urnic/pd"
)

var errArm = errors.New("say NextCompletion or NextSolicited")

// Arm makes the queue fire once, at the next completion of that kind. The
// completions that are in the queue already don't count, but for
// CQAttr.FireQueued: poll, arm, and poll again before waiting. It returns an *OpError that wraps ErrClosed, or
// ErrOverflow, as the queue will never fire again then.
func (c *CQ) Arm(what Notify) error {
	if !c.made() {
		return notMade("arm", "CQ")
	}
	if what != NextCompletion && what != NextSolicited {
		return c.fail("arm", errArm)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return c.fail("arm", ErrClosed)
	case c.overflow:
		return c.fail("arm", ErrOverflow)
	}
	select {
	case <-c.fired: // of an earlier arming, which nobody waited for
		c.told = c.channel != nil && c.told // a channel has told of it
	default:
	}
	if Notify(c.armed.Load()) != NextCompletion { // any completion includes solicited ones
		c.armed.Store(uint32(what))
	}
	if c.eager && !c.told && c.holds(Notify(c.armed.Load())) {
		c.told = true
		c.fire()
	}
	for _, l := range c.drive.list() { // it is to fire even if nobody polls or waits
		l.giveBack()
	}
	return nil
}

// Fire fires the queue if it is armed, as a completion in error would. It is for
// who keeps completions back that are polled, and gives them to others later.
func (c *CQ) Fire() {
	if !c.made() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed.Load() != 0 && !c.closed {
		c.fire()
	}
}

// holds reports whether a completion of that kind is in the queue. The caller
// holds mu.
func (c *CQ) holds(what Notify) bool {
	for i := range c.queue.n {
		if wc := &c.queue.at(i).wc; what == NextCompletion || wc.Solicited || wc.Status != StatusSuccess {
			return true
		}
	}
	return false
}

// Fired returns a channel from which a value can be received after the queue
// has fired.
func (c *CQ) Fired() <-chan struct{} {
	if !c.made() {
		return nil
	}
	return c.fired
}

// Wait is Poll that waits until there is at least one completion. It returns an
// *OpError that wraps the context's error, ErrOverflow once the queue has
// overflowed and is empty, or ErrClosed.
func (c *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	const op = "wait"
	if !c.made() {
		return 0, notMade(op, "CQ")
	}
	if ctx == nil {
		return 0, c.fail(op, ErrNoContext)
	}
	for {
		if n := c.take(wcs); n > 0 || len(wcs) == 0 {
			return n, nil
		}
		if err := c.waitForNews(ctx); err != nil {
			return 0, c.fail(op, err)
		}
	}
}

// Await waits until there is a completion for Poll. It returns what Wait does.
func (c *CQ) Await(ctx context.Context) error {
	const op = "wait"
	switch {
	case !c.made():
		return notMade(op, "CQ")
	case ctx == nil:
		return c.fail(op, ErrNoContext)
	}
	if err := c.waitForNews(ctx); err != nil {
		return c.fail(op, err)
	}
	return nil
}

// waitForNews waits until there is a completion, or there can be none. If the
// queue is that of one connection, it receives for it meanwhile.
func (c *CQ) waitForNews(ctx context.Context) error {
	c.mu.Lock()
	c.waiters.Add(1)
	defer func() {
		c.waiters.Add(-1)
		if c.queue.n > 0 || c.overflow || c.closed { // the others must see it too
			c.wake()
		}
		c.mu.Unlock()
	}()
	for {
		switch {
		case c.queue.n > 0:
			return nil
		case c.closed:
			return ErrClosed
		case c.overflow:
			return ErrOverflow
		}
		if l := c.drive.only(); l != nil && l.mayWait() {
			if l.take() {
				if err := c.driveWaiting(ctx, l); err != nil {
					return err
				}
				continue
			}
			l.ask()
		}
		c.drive.leave()
		c.mu.Unlock()
		select {
		case <-c.news:
			c.mu.Lock()
		case <-ctx.Done():
			c.mu.Lock()
			return context.Cause(ctx)
		}
	}
}

// All ranges over the completions as they come, until the context ends or the
// queue fails; the error is then that of Wait, with a zero WC.
func (c *CQ) All(ctx context.Context) iter.Seq2[WC, error] {
	return func(yield func(WC, error) bool) {
		var wcs [1]WC
		for {
			if _, err := c.Wait(ctx, wcs[:]); err != nil {
				yield(WC{}, err)
				return
			}
			if !yield(wcs[0], nil) {
				return
			}
		}
	}
}

// A CompletionChannel gathers the firing of completion queues, for a program
// that waits for many of them, or for other things as well through a file
// descriptor.
type CompletionChannel struct {
	dev    *Device
	events mailbox[*CQ] // each queue once
	done   chan struct{}
}

// CreateCompletionChannel returns a new completion channel, to be named in
// CQAttr. It returns an *OpError that wraps a *pd.LimitError if there are too
// many.
func (d *Device) CreateCompletionChannel() (*CompletionChannel, error) {
	const op = "create completion channel"
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if err := d.begin(); err != nil {
		return nil, d.fail(op, err)
	}
	defer d.end()
	if err := d.manager.Reserve(pd.CompletionChannels, 1); err != nil { // RFC 5040 §8.1.2 rule 2
		return nil, d.fail(op, err)
	}
	ch := &CompletionChannel{dev: d, done: make(chan struct{})}
	put(d, d.channels, closer(ch))
	return ch, nil
}

// put adds a queue that has fired. One that is there already is not added again,
// unless it has CQAttr.TellEach: whoever takes it finds all of its completions.
func (ch *CompletionChannel) put(c *CQ) {
	if !c.queued.Swap(true) || c.each {
		ch.events.put(c)
	}
}

func (ch *CompletionChannel) take() (*CQ, bool) {
	c, ok := ch.events.take()
	if ok {
		c.queued.Store(false)
	}
	return c, ok
}

func (ch *CompletionChannel) isClosed() bool {
	select {
	case <-ch.done:
		return true
	default:
		return false
	}
}

// made reports whether CreateCompletionChannel has made the channel.
func (ch *CompletionChannel) made() bool { return ch != nil && ch.dev != nil }

// FD returns a file descriptor that is readable while queues have fired. Each
// entry of the channel also wakes edge-triggered waits. The descriptor belongs to
// the channel: who closes it does so with Close. It fails where the operating
// system has no such thing.
func (ch *CompletionChannel) FD() (int, error) {
	if !ch.made() {
		return -1, notMade("descriptor", "completion channel")
	}
	fd, err := ch.events.descriptor()
	if err != nil {
		return -1, ch.fail("descriptor", err)
	}
	return fd, nil
}

// Poll returns a queue that has fired, or nil. It never waits. A queue that
// fires again before it has been fetched is returned once, but for CQAttr.TellEach.
func (ch *CompletionChannel) Poll() *CQ {
	if !ch.made() {
		return nil
	}
	c, _ := ch.take()
	return c
}

// Wait returns the next queue that fires. It returns an *OpError that wraps the
// context's error, or ErrClosed.
func (ch *CompletionChannel) Wait(ctx context.Context) (*CQ, error) {
	const op = "wait"
	if !ch.made() {
		return nil, notMade(op, "completion channel")
	}
	if ctx == nil {
		return nil, ch.fail(op, ErrNoContext)
	}
	for {
		changed := ch.events.wait()
		if c, ok := ch.take(); ok {
			return c, nil
		}
		select {
		case <-changed:
		case <-ch.done:
			return nil, ch.fail(op, ErrClosed)
		case <-ctx.Done():
			return nil, ch.fail(op, context.Cause(ctx))
		}
	}
}

func (ch *CompletionChannel) fail(op string, err error) error {
	return &OpError{Op: op, Object: "completion channel", Err: err}
}

// Close gives the channel up. Queues that fire afterwards tell nobody.
func (ch *CompletionChannel) Close() error {
	if !ch.made() {
		return notMade("close", "completion channel")
	}
	ch.dev.mu.Lock()
	_, open := ch.dev.channels[closer(ch)]
	delete(ch.dev.channels, closer(ch))
	ch.dev.mu.Unlock()
	if !open {
		return nil
	}
	close(ch.done)
	ch.events.discard(func(*CQ) bool { return true })
	err := ch.events.close()
	ch.dev.manager.Release(pd.CompletionChannels, 1)
	if err != nil {
		return ch.fail("close", err)
	}
	return nil
}
