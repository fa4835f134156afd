package congestion

import "time"

// Reno is the congestion control of RFC 5681, counted in segments. Use [NewReno].
type Reno struct {
	window
	counted int // segments acknowledged since the window was raised in congestion avoidance
}

// NewReno returns Reno.
func NewReno(cfg Config) *Reno { return &Reno{window: newWindow(cfg)} }

// String returns the name.
func (*Reno) String() string { return NameReno }

// Sent implements [Controller].
func (r *Reno) Sent(now time.Duration, inFlight int) { r.sent(now, inFlight) }

// Acked implements [Controller]. In congestion avoidance the window grows by one segment when
// a window of data is acknowledged, and by no more than that (RFC 5681 §3.1).
func (r *Reno) Acked(_ time.Duration, a Ack) {
	n := r.acked(a)
	if n == 0 || r.slowStart(n) {
		return
	}
	if r.counted += n; r.counted >= r.Window() {
		r.counted %= r.Window() // by one, even if it acknowledges several windows
		r.grow(1)
	}
}

// Lost implements [Controller]: half of what is in flight remains (RFC 5681 §3.2, step 2).
func (r *Reno) Lost(_ time.Duration, inFlight int) {
	if r.begin(byLoss, inFlight) {
		r.reduce()
	}
}

// TimedOut implements [Controller].
func (r *Reno) TimedOut(_ time.Duration, inFlight int) {
	r.counted = 0
	r.timedOut(inFlight, float64(inFlight/2))
}

// Reported implements [Controller].
func (r *Reno) Reported(_ time.Duration, p Report) {
	change := r.reported(p)
	switch {
	case change == nothing:
	case p.Window > 0:
		r.counted = 0
		r.take(p.Window)
	default:
		r.reduce()
	}
}

func (r *Reno) reduce() {
	r.counted = 0
	r.cut(float64(r.flight / 2))
}
