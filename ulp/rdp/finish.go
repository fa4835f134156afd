package rdp

import (
	"context"
	"errors"
	"time"

	"urnic/ulp/rdp/machine"
)

// Abort is Close that tells the peer that something is missing: a peer that looks at Status().Short does not take it for
// an end. For another one it is an RST like any other.
func (c *Conn) Abort() error {
	c.e.mu.Lock()
	err := c.mc.Abort(c.e.now())
	c.leave()
	c.e.unlock()
	return err
}

// RepeatClose sends the RST of Close once more. An RST is not acknowledged, and may be lost; then the peer finds out
// when it asks, if this endpoint is there still.
func (c *Conn) RepeatClose() {
	c.e.mu.Lock()
	c.mc.RepeatClose(c.e.now())
	c.e.unlock()
}

// Probe sends a NUL, which a living peer acknowledges at once, and waits for that. It returns how long that took. A
// NUL that is lost is sent again, and the time includes that.
func (c *Conn) Probe(ctx context.Context) (time.Duration, error) {
	for {
		c.e.mu.Lock()
		begun := time.Now()
		err := c.mc.Probe(c.e.now())
		number := c.mc.Status().Stats.Probes
		c.e.unlock()
		switch {
		case err == nil:
			err = c.Wait(ctx, func(s Status) bool { return s.Stats.Answered >= number || s.State != machine.Open })
			if err == nil && c.Status().Stats.Answered < number {
				if err = c.Err(); err == nil {
					err = machine.ErrNotOpen
				}
			}
			return time.Since(begun), err
		case !errors.Is(err, machine.ErrWouldBlock):
			return 0, err
		}
		if err := c.AwaitRoom(ctx); err != nil {
			return 0, err
		}
	}
}
