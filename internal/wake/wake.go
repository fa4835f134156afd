// Package wake has what goroutines that run a protocol's machine use to wait for what it says: one that has become
// possible for one of them, or a change that all of them look at.
package wake

import "context"

// A One wakes those that wait for something, one after the other: whoever is woken and finds that
// there is more wakes the next one.
type One chan struct{}

// NewOne returns a One that wakes nobody yet.
func NewOne() One { return make(One, 1) }

// Wake wakes one, or the next that waits.
func (w One) Wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// Wait waits to be woken, for the end of the context, whose cause it returns, or for that of done.
func (w One) Wait(ctx context.Context, done <-chan struct{}) error {
	return Await(ctx, w, done)
}

// A Bell wakes all that wait for something. They look again, each for what it waits for
// itself: a One could wake one that still can't continue, and leave another asleep that could. The zero Bell is
// ready; a lock of its owner guards it.
type Bell struct{ c chan struct{} }

// Heard returns a channel that is closed when the bell rings next.
func (b *Bell) Heard() <-chan struct{} {
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

// Ring wakes all.
func (b *Bell) Ring() {
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

// Await waits for a wake-up, for the end of the context, whose cause it returns, or for that of done.
func Await(ctx context.Context, woken, done <-chan struct{}) error {
	select {
	case <-woken:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-done:
		return nil
	}
}
