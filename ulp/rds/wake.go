package rds

import "context"

// A waker wakes those who wait for something, one after the other: who is woken and
// finds that there is more wakes the next one.
type waker chan struct{}

func newWaker() waker { return make(waker, 1) }

// wake wakes one, or the next that waits.
func (w waker) wake() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// wait waits to be woken, for the end of the context, or for that of done.
func (w waker) wait(ctx context.Context, done <-chan struct{}) error {
	return await(ctx, w, done)
}

// A bell wakes all who wait for something. They look again, each for what it waits for
// itself: a waker could wake one whose destination is still congested, and leave another
// asleep whose destination is not. The node's lock guards it.
type bell struct{ c chan struct{} }

// heard returns a channel that is closed when the bell rings next.
func (b *bell) heard() <-chan struct{} {
	if b.c == nil {
		b.c = make(chan struct{})
	}
	return b.c
}

func (b *bell) ring() {
	if b.c != nil {
		close(b.c)
		b.c = nil
	}
}

// await waits for a bell, for the end of the context, or for that of done.
func await(ctx context.Context, heard, done <-chan struct{}) error {
	select {
	case <-heard:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-done:
		return nil
	}
}
