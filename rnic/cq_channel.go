package rnic

import (
	"context"

	"urnic/pd"
)

// A CompletionChannel reports which completion queues have fired. It is for
// programs that wait for many queues, or that also wait for other things
// through a file descriptor.
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
	d.put(d.channels, ch)
	return ch, nil
}

// put adds a queue that has fired. One that is already in the channel is not
// added again, unless each firing counts: the program that takes it finds all
// of its completions.
func (ch *CompletionChannel) put(c *CQ) {
	if !c.queued.Swap(true) || c.notifyEach {
		ch.events.put(c)
	}
}

// forget removes a queue that is closed from the channel.
func (ch *CompletionChannel) forget(c *CQ) { ch.events.discard(func(o *CQ) bool { return o == c }) }

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
// entry of the channel also wakes edge-triggered waits. The channel owns the
// descriptor, and Close closes it. FD fails where the operating system has no
// such descriptor.
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
// fires several times before it is fetched is returned once.
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

// Close releases the channel. Queues that fire afterwards notify no one.
func (ch *CompletionChannel) Close() error {
	if !ch.made() {
		return notMade("close", "completion channel")
	}
	ch.dev.mu.Lock()
	_, open := ch.dev.channels[ch]
	delete(ch.dev.channels, ch)
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
