package congestion

import "time"

// leastThreshold is the least slow-start threshold, in segments (RFC 5681 §3.1, equation 4).
const leastThreshold = 2

// A cause is what a round has begun with.
type cause uint8

const (
	noRound cause = iota
	byLoss
	byTimeout
	byReport
)

// A window is what Reno and CUBIC have in common: slow start, rounds, and the tests whether
// the window limits the sender at all.
type window struct {
	cfg       Config
	size      float64 // the congestion window
	threshold float64 // the slow-start threshold
	flight    int     // in flight when last told

	cause cause // of the present round
	left  int   // acknowledgements until it is over

	credit   int // acknowledged segments that may still raise the window; see acked
	lastSent time.Duration
	rtt      estimate
}

func newWindow(cfg Config) window {
	cfg = cfg.withDefaults()
	return window{cfg: cfg, size: float64(cfg.InitialWindow), threshold: float64(cfg.Threshold)}
}

// Window returns how many segments may be in flight.
func (w *window) Window() int { return max(1, int(w.size)) }

// Threshold returns the slow-start threshold in segments, for status and plots.
func (w *window) Threshold() int { return int(w.threshold) }

// sent takes note of a segment sent. It reports whether nothing had been in flight.
func (w *window) sent(now time.Duration, inFlight int) (wasIdle bool) {
	wasIdle = inFlight <= 1
	if wasIdle && now-w.lastSent > w.rtt.timeout() {
		// What the window was based on is out of date (RFC 5681 §4.1).
		w.size = min(w.size, float64(w.cfg.InitialWindow))
	}
	w.lastSent, w.flight = now, inFlight
	if inFlight >= w.Window() {
		w.credit = w.Window()
	}
	return wasIdle
}

// acked takes note of an acknowledgement, and returns how many segments of it may raise the
// window.
//
// None may in the recovery from a loss (RFC 5681 §3.2), nor for a sender that the window
// does not limit: it would grow without having been tried (RFC 9438 §5.8). As
// several acknowledgements may come before the sender sends again, a window that was
// full counts as such until it is acknowledged.
func (w *window) acked(a Ack) int {
	n := min(max(0, a.Segments), w.cfg.MaxWindow)
	w.rtt.sample(a.RTT)
	w.flight = a.InFlight
	limits := w.credit > 0 || a.InFlight+n >= w.Window()
	w.credit = max(0, w.credit-n)
	recovering := w.cause == byLoss || w.cause == byReport
	if w.left = max(0, w.left-n); w.left == 0 {
		w.cause = noRound
	}
	if recovering || !limits {
		return 0
	}
	return n
}

// slowStart raises the window for n segments acknowledged, and reports whether it was below
// the threshold.
func (w *window) slowStart(n int) bool {
	if w.size >= w.threshold {
		return false
	}
	most := w.cfg.PerAck
	if w.cause == byTimeout {
		most = 1 // acknowledgements may be of segments from before (RFC 3465 §2.3)
	}
	w.grow(min(float64(min(n, most)), w.threshold-w.size))
	return true
}

func (w *window) grow(by float64) { w.size = min(w.size+by, float64(w.cfg.MaxWindow)) }

// begin begins a round, unless there is one. It reports whether it does.
func (w *window) begin(c cause, inFlight int) bool {
	w.flight = inFlight
	if w.cause != noRound {
		return false
	}
	w.cause, w.left = c, max(1, inFlight)
	return true
}

// cut sets the threshold, and the window to it, but never raises the window.
func (w *window) cut(threshold float64) {
	w.threshold = max(threshold, leastThreshold)
	w.size = max(1, min(w.size, w.threshold))
}

// timedOut begins slow start from one segment (RFC 5681 §3.1). The threshold is that of the first
// timeout of the round: it is "held constant" for segments that were sent again already. It is
// kept as well if it is that of a report on the same segments.
func (w *window) timedOut(inFlight int, threshold float64) {
	if w.cause != byTimeout && w.cause != byReport {
		w.threshold = max(threshold, leastThreshold)
	}
	w.flight, w.size = inFlight, 1
	w.cause, w.left = byTimeout, max(1, inFlight)
}

// A change is what a report changes.
type change uint8

const (
	nothing change = iota
	lower          // the window was set, within a round
	react          // the same as after a loss: the caller's part is to do, then cut
)

// reported says what a report is to change, and begins a round if so. The caller has the
// window before it in w.size, and calls take then.
func (w *window) reported(r Report) change {
	switch {
	case r.Window > 0 && float64(r.Window) < w.size:
		if w.cause == noRound {
			w.cause, w.left = byReport, max(1, w.flight)
			return react
		}
		if w.cause == byReport { // the node has dropped more
			w.left = max(1, w.flight)
		}
		return lower
	case r.Window <= 0 && (r.Drops > 0 || r.Marks > 0) && w.begin(byReport, w.flight):
		return react
	}
	return nothing
}

// take sets the window of a report.
func (w *window) take(reported int) {
	w.size = min(w.size, float64(reported))
	w.threshold = max(min(w.threshold, float64(reported)), leastThreshold)
}
