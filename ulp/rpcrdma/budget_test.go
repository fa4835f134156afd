package rpcrdma

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
)

// now takes n bytes, which must be had at once.
func (d *debt) now(t *testing.T, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.take(ctx, n); err != nil {
		t.Errorf("%d bytes can't be had: %v", n, err)
	}
}

// full checks that no more can be had.
func (d *debt) full(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.take(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("more can be had: %v", err)
	}
}

// Connections, accounts and the server have their limits, and each account may have one
// call in any case.
func TestBudgetsAreKept(t *testing.T) {
	b := newBudget(40, 5)
	one, two := b.join("a"), b.join("a")
	one.now(t, 5)
	one.full(t) // as much as a connection may hold
	two.now(t, 5)
	two.full(t) // as much as an account may
	var others []*debt
	for i := range 3 {
		x, y := b.join(fmt.Sprint(i)), b.join(fmt.Sprint(i))
		x.now(t, 5)
		y.now(t, 5)
		others = append(others, x, y)
	}
	last := b.join("last")
	last.now(t, 1000) // all is held, but this is its only call
	last.full(t)
	last.give(1000, taken)
	one.give(5, taken)
	one.now(t, 5)
	one.give(5, taken)
	two.give(5, unsent)
	for _, d := range others {
		d.give(5, taken)
	}
	for _, d := range append(others, one, two, last) {
		d.leave()
	}
	if b.used != 0 || len(b.accounts) != 0 || len(b.queue) != 0 {
		t.Errorf("%d are held, of %d accounts", b.used, len(b.accounts))
	}
}

// Who waits gets it in turn, also if somebody in front gives up, or can't have it yet.
func TestBudgetsServeWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(40, 10)
		a, c := b.join("a"), b.join("c")
		a.now(t, 10)
		c.now(t, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var order []string
		for _, w := range []struct {
			name string
			d    *debt
			ctx  context.Context
			n    int
		}{{"first of a", a, ctx, 8}, {"second of a", a, t.Context(), 4}, {"of c", c, t.Context(), 6}} {
			go func() {
				if _, err := w.d.take(w.ctx, w.n); err == nil {
					order = append(order, w.name)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		a.give(4, taken)
		synctest.Wait()
		if len(order) != 0 {
			t.Errorf("%q overtake", order)
		}
		c.give(6, taken)
		synctest.Wait()
		cancel()
		synctest.Wait()
		if fmt.Sprint(order) != "[of c second of a]" || a.used != 10 || c.used != 10 || b.used != 20 || len(b.queue) != 0 {
			t.Errorf("%q, %d and %d of %d", order, a.used, c.used, b.used)
		}
	})
}

// An account whose connection has ended with a reply that was not taken has one call at a
// time, over all connections, until it has taken one.
func TestWhoHasNotTakenAReplyHasOneCall(t *testing.T) {
	b := newBudget(40, 10)
	d := b.join("a")
	d.now(t, 5)
	d.now(t, 5)
	d.give(5, cut)
	d.give(5, cut)
	d.leave()
	one, two := b.join("a"), b.join("a")
	if slow, err := one.take(t.Context(), 2); err != nil || !slow {
		t.Errorf("%v, %v", slow, err)
	}
	one.full(t)
	two.full(t)
	b.join("b").now(t, 5)
	one.give(2, unsent)
	one.now(t, 2)
	two.full(t)
	one.give(2, taken)
	if slow, err := one.take(t.Context(), 2); err != nil || slow {
		t.Errorf("%v, %v", slow, err)
	}
	two.now(t, 2)
	two.now(t, 2)
	if len(b.slow) != 0 {
		t.Errorf("%q are still marked", b.slow)
	}
}

// Only so many accounts are remembered.
func TestMarksOfAccountsAreBounded(t *testing.T) {
	b := newBudget(1000, 10)
	for i := range 2 * mostSlow {
		d := b.join(fmt.Sprint(i))
		d.now(t, 1)
		d.give(1, cut)
		d.leave()
	}
	if len(b.slow) != mostSlow || len(b.accounts) != mostSlow {
		t.Errorf("%d marks, of %d accounts", len(b.slow), len(b.accounts))
	}
	if slow, err := b.join(fmt.Sprint(2*mostSlow-1)).take(t.Context(), 1); err != nil || !slow {
		t.Errorf("the last is forgotten: %v", err)
	}
}

// Connections of a server keep only so much memory for later use together.
func TestIdleMemoryIsBounded(t *testing.T) {
	m := &idleMemory{most: 10}
	if !m.take(6) || m.take(5) || !m.take(4) || m.take(1) {
		t.Errorf("%d are kept", m.used.Load())
	}
	m.give(10)
	if n := m.used.Load(); n != 0 {
		t.Errorf("%d are kept", n)
	}
}
