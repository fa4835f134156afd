package activenet

import "time"

// RED marks packets early and at random, or drops them, by the average length of the queue (Floyd
// and Jacobson 1993; RFC 7567 §3). RDP's header has no room for a mark: here the receiving
// host sees it and returns the sender, so that the sender learns of it a round trip after the queue has grown,
// as with ECN (RFC 3168).
type RED struct {
	Low, High float64 // average queues between which it marks; above High it marks all. 0: a sixth and a half of the queue
	Most      float64 // share that is marked just below High. 0: 0.1
	Weight    float64 // of a packet's queue in the average. 0: 0.002
	Drop      bool    // drop instead of marking

	average float64
	count   int // packets since the last mark
	idle    time.Duration
	empty   bool
}

// Arrive implements [Program].
func (r *RED) Arrive(l *Link, _ *Packet) Action {
	low, high, most, weight := r.settings(l)
	queue := float64(l.Queue())
	if r.empty && queue > 0 {
		r.empty = false
	}
	if queue == 0 && !r.empty {
		r.empty, r.idle = true, l.Now()
	}
	if r.empty {
		// As many small packets as could have passed have found the queue empty.
		for m := (l.Now() - r.idle) / max(1, l.TransmitTime(redPacket)); m > 0 && r.average > redNone; m-- {
			r.average *= 1 - weight
		}
		r.idle = l.Now()
	}
	r.average += float64(weight * (queue - r.average))
	r.count++
	switch {
	case r.average < low:
		r.count = 0
		return Pass
	case r.average < high:
		p := most * (r.average - low) / (high - low)
		// Spread evenly: p/(1-count·p).
		if l.Random().Float64()*(1-float64(r.count)*p) >= p {
			return Pass
		}
	}
	r.count = 0
	return Action{Mark: !r.Drop, Drop: r.Drop}
}

const (
	redPacket = 500  // bytes
	redNone   = 1e-3 // an average that is none
)

// settings returns the settings with defaults in place of zeros.
func (r *RED) settings(l *Link) (low, high, most, weight float64) {
	limit := float64(l.cfg.Queue)
	low, high, most, weight = r.Low, r.High, r.Most, r.Weight
	if low <= 0 {
		low = limit / 6
	}
	if high <= low {
		high = max(limit/2, 1.5*low)
	}
	if most <= 0 {
		most = 0.1
	}
	if weight <= 0 {
		weight = 0.002
	}
	return low, high, most, weight
}
