package congestion

import (
	"math"
	"time"
)

// The constants of RFC 9438 §4.1.1 and §4.3.
const (
	cubicBeta = 0.7 // what remains of the window after a loss
	cubicC    = 0.4 // segments per s³
	renoAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

// CUBIC is the congestion control of RFC 9438, counted in segments. Use [NewCUBIC].
//
// The first slow start is that of RFC 5681: HyStart++, which §4.10 suggests, is not there.
type CUBIC struct {
	window

	peak  float64 // W_max; 0: none, growth begins at the window as it is
	prior float64 // cwnd_prior; 0 before there was a loss

	// The present stage of congestion avoidance, if avoiding.
	avoiding bool
	epoch    time.Duration // when it has begun, without the time in which nothing was to be learnt
	origin   float64       // what the curve is around: W_max, or cwnd_epoch if that is higher
	k        time.Duration // K: from the epoch until the curve is back at the origin
	reno     float64       // W_est: where Reno would be
	last     time.Duration // when time was last accounted for
}

// NewCUBIC returns CUBIC.
func NewCUBIC(cfg Config) *CUBIC { return &CUBIC{window: newWindow(cfg)} }

// String returns the name.
func (*CUBIC) String() string { return NameCUBIC }

// Sent implements [Controller].
func (c *CUBIC) Sent(now time.Duration, inFlight int) {
	before := c.size
	if c.sent(now, inFlight) {
		c.pause(now)
	}
	if c.size != before { // it was idle for so long that it begins again
		c.avoiding = false
	}
}

// pause takes the time since the last call out of the epoch (RFC 9438 §5.8).
func (c *CUBIC) pause(now time.Duration) {
	c.epoch += now - c.last
	c.last = now
}

// Acked implements [Controller].
func (c *CUBIC) Acked(now time.Duration, a Ack) {
	n := c.acked(a)
	if n == 0 {
		c.pause(now)
		return
	}
	c.last = now
	if c.slowStart(n) {
		return
	}
	if !c.avoiding {
		c.start(now)
	}
	c.avoid(now-c.epoch, n)
}

// start begins a stage of congestion avoidance (RFC 9438 §4.2). Without a peak the curve begins
// at its origin, the window as it is (§4.8, §4.10).
func (c *CUBIC) start(now time.Duration) {
	c.avoiding, c.epoch, c.reno = true, now, c.size
	if c.peak == 0 {
		c.peak = c.size
	}
	c.origin = max(c.peak, c.size)
	// In nanoseconds the last bits of Cbrt, which differ between processors, are gone.
	c.k = time.Duration(math.Round(math.Cbrt((c.origin-c.size)/cubicC) * 1e9))
}

// at is W_cubic (RFC 9438 §4.2, figure 1).
func (c *CUBIC) at(t time.Duration) float64 {
	d := (t - c.k).Seconds()
	return float64(cubicC*d*d*d) + c.origin // the conversion forbids a fused multiply-add
}

// avoid raises the window for n segments acknowledged at t in the stage.
func (c *CUBIC) avoid(t time.Duration, n int) {
	share := min(float64(n)/c.size, 1)
	alpha := renoAlpha
	if c.reno >= c.prior {
		alpha = 1 // where the last loss was, Reno would grow by one (§4.3)
	}
	c.reno += float64(alpha * share)
	if c.at(t) < c.reno { // the Reno-friendly region
		c.grow(max(0, c.reno-c.size))
		return
	}
	target := min(max(c.at(t+c.rtt.smoothed), c.size), 1.5*c.size)
	c.grow(float64((target - c.size) * share))
}

// Lost implements [Controller].
func (c *CUBIC) Lost(_ time.Duration, inFlight int) {
	if c.begin(byLoss, inFlight) {
		c.remember()
		c.cut(cubicBeta * float64(inFlight))
	}
}

// remember keeps what the window was before it falls. A flow whose window has not come back to
// the last peak gives way to others: fast convergence (RFC 9438 §4.7).
func (c *CUBIC) remember() {
	c.prior = c.size
	if c.size < c.peak {
		c.peak = c.size * ((1 + cubicBeta) / 2)
	} else {
		c.peak = c.size
	}
	c.avoiding = false
}

// TimedOut implements [Controller]. The next stage of congestion avoidance begins without a
// peak (RFC 9438 §4.8).
func (c *CUBIC) TimedOut(_ time.Duration, inFlight int) {
	if c.cause != byTimeout {
		c.prior = c.size
	}
	c.avoiding, c.peak = false, 0
	c.timedOut(inFlight, cubicBeta*float64(inFlight))
}

// Reported implements [Controller].
func (c *CUBIC) Reported(_ time.Duration, p Report) {
	change := c.reported(p)
	if change == react {
		c.remember()
	}
	switch {
	case change == nothing:
	case p.Window > 0:
		c.avoiding = false
		c.take(p.Window)
	default:
		c.cut(cubicBeta * float64(c.flight))
	}
}
