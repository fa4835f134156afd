package perf

import (
	"context"
	"errors"
	"sync"
)

// A transfer is a round of requests on all queue pairs of a side.
type transfer struct {
	group *group
	flows []*flow
	round round
	spin  *spinner
}

func newTransfer(g *group) *transfer {
	t := &transfer{group: g, spin: newSpinner()}
	for _, e := range g.ends {
		t.flows = append(t.flows, newFlow(e))
	}
	return t
}

// run makes a round. When it returns nil, all that either side has sent has
// arrived.
func (t *transfer) run(ctx context.Context, r round) error {
	t.round = r
	if t.group.Poll == PollBusy {
		return t.spinAll(ctx)
	}
	return together(ctx, len(t.flows), func(ctx context.Context, i int) error { return t.wait(ctx, t.flows[i]) })
}

// wait drives one flow, asleep while there is nothing to do.
func (t *transfer) wait(ctx context.Context, f *flow) error {
	if err := f.begin(t.round); err != nil {
		return err
	}
	for !f.done() {
		n, err := f.cq.Wait(ctx, f.wcs)
		if err == nil {
			err = f.advance(f.wcs[:n], &t.round)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spinAll drives all flows from one goroutine, which never sleeps.
func (t *transfer) spinAll(ctx context.Context) error {
	left := len(t.flows)
	for _, f := range t.flows {
		if err := f.begin(t.round); err != nil {
			return err
		}
	}
	for left > 0 {
		idle := true
		for _, f := range t.flows {
			if f.done() {
				continue
			}
			n := f.cq.Poll(f.wcs)
			if n == 0 {
				continue
			}
			idle = false
			if err := f.advance(f.wcs[:n], &t.round); err != nil {
				return err
			}
			if f.done() {
				left--
			}
		}
		if idle {
			if err := t.spin.pause(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sent returns how many messages this side has sent, and came how many it has seen to
// arrive here.
func (t *transfer) sent() (n uint64) {
	for _, f := range t.flows {
		n += f.posted
	}
	return n
}

func (t *transfer) came() (n uint64) {
	for _, f := range t.flows {
		n += f.came
	}
	return n
}

// verify checks all of the last messages that have come.
func (t *transfer) verify() error {
	for i, f := range t.flows {
		if err := t.group.verify(i, f.place, f.came); err != nil {
			return err
		}
	}
	return nil
}

// together runs loops 0 to n-1 at a time, and returns when all have ended. The
// first error ends the others.
func together(ctx context.Context, n int, loop func(ctx context.Context, i int) error) error {
	if n == 1 { // no goroutine is needed
		return loop(ctx, 0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if errs[i] = loop(ctx, i); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	wg.Wait()
	return first(errs)
}

// first returns the error that was first: the others were cancelled because of
// it.
func first(errs []error) error {
	var cancelled error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if !errors.Is(err, context.Canceled) {
			return err
		}
		cancelled = err
	}
	return cancelled
}
