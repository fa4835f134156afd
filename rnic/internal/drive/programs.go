package drive

import "context"

// poll receives what has come, for a program that polls, and reports whether there was
// anything, or something was transmitted. If the role is not free, it asks for it if the
// program spins.
func (d *Driver) poll(spins bool) (some bool) {
	if !d.take() {
		if spins {
			d.ask()
		}
		return false
	}
	d.presence.pollsNow()
	if d.tx.role() == txParked {
		d.Kick()
		some = true
	}
	o := d.step()
	d.drop(o)
	return some || o == Some || o == ForGoroutine
}

// yieldWaits is how many waits leave the role to the goroutine after one that has met a
// transmitter: so many that a program which sends a lot, and meets one now and then, seldom
// interrupts the goroutine, and so few that a program which has stopped sending soon
// receives for itself.
const yieldWaits = 64

// mayWait reports whether a program that waits had better receive meanwhile. A
// transmitter that works for it would have to interrupt it each time, so that it then
// leaves the goroutine alone for a while.
func (d *Driver) mayWait() bool {
	switch d.tx.role() {
	case txIdle, txParked:
	default:
		d.yields.Store(yieldWaits)
		d.GiveBack()
		return false
	}
	if d.yields.Load() > 0 {
		d.yields.Add(-1)
		return d.rx.role() == rxFree
	}
	return true
}

// await waits, for a program that waits, until there is something for step, the wait is
// interrupted, as it is when the context ends, or the goroutine is needed. It returns an
// error if the context has ended before.
func (d *Driver) await(ctx context.Context) (Outcome, error) {
	if d.presence.polls() {
		d.unpark()
	}
	d.bind(ctx)
	select {
	case <-ctx.Done():
		return Nothing, context.Cause(ctx)
	default:
		return d.pump.Await(), nil
	}
}

// bind makes the end of a context end the wait of the program that has the role. It
// lasts until there is another one, or the connection ends: mostly, a program waits with
// the same again.
func (d *Driver) bind(ctx context.Context) {
	done := ctx.Done()
	if done == d.bound {
		return
	}
	if d.unbind != nil {
		d.unbind()
	}
	d.bound, d.unbind = done, nil
	if done != nil {
		d.unbind = context.AfterFunc(ctx, func() {
			if d.rx.role() == rxProgram {
				d.pump.Interrupt()
			}
		})
	}
}
