package rnic

import (
	"context"
	"errors"
	"iter"
)

var errArm = errors.New("say NextCompletion or NextSolicited")

// Arm makes the queue fire once, at the next completion of that kind. Completions
// that are already in the queue don't count: poll, arm, and poll again before
// waiting. If the queue can never fire again, Arm returns an *OpError that wraps
// ErrClosed or ErrOverflow.
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
	case <-c.fired: // of an earlier arming, which nothing waited for
		c.told = c.channel != nil && c.told // a channel has reported it
	default:
	}
	if Notify(c.armed.Load()) != NextCompletion { // any completion includes solicited ones
		c.armed.Store(uint32(what))
	}
	if c.fireForQueued && !c.told && c.holds(Notify(c.armed.Load())) {
		c.told = true
		c.fire()
	}
	c.programs.Recall() // it must fire even if no program polls or waits
	return nil
}

// fireArmed fires the queue if it is armed, as a completion in error would.
func (c *CQ) fireArmed() {
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
	for i := range c.queue.Len() {
		if wc := &c.queue.At(i).wc; what == NextCompletion || wc.Solicited || wc.Status != StatusSuccess {
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

// Wait is like Poll, but waits until there is at least one completion. It
// returns an *OpError that wraps the context's error, ErrOverflow once the
// queue has overflowed and is empty, or ErrClosed.
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

// await waits until there is a completion for Poll. Its errors are those of
// Wait.
func (c *CQ) await(ctx context.Context) error {
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

// waitForNews waits until there is a completion, or until none can follow. If
// the queue serves only one connection, it receives for it meanwhile.
func (c *CQ) waitForNews(ctx context.Context) error {
	c.mu.Lock()
	c.programs.Enter()
	defer func() {
		c.programs.Leave()
		if c.queue.Len() > 0 || c.overflow || c.closed { // the others must see it too
			c.programs.Wake()
		}
		c.mu.Unlock()
	}()
	for {
		switch {
		case c.queue.Len() > 0:
			return nil
		case c.closed:
			return ErrClosed
		case c.overflow:
			return ErrOverflow
		}
		if err := c.programs.Wait(ctx); err != nil {
			return err
		}
	}
}

// All ranges over the completions as they arrive, until the context ends or the
// queue fails. Then it yields a zero WC with the error of Wait.
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
