package congestion

import "time"

// An estimate is of the round-trip time, after RFC 6298 §2.
type estimate struct {
	smoothed, variation time.Duration
}

// leastTimeout is what RFC 6298 rounds shorter timeouts up to (§2.4), and uses as long as there
// is no sample (§2.1).
const leastTimeout = time.Second

func (e *estimate) sample(rtt time.Duration) {
	switch {
	case rtt <= 0:
	case e.smoothed == 0:
		e.smoothed, e.variation = rtt, rtt/2
	default:
		e.variation += ((e.smoothed - rtt).Abs() - e.variation) / 4
		e.smoothed += (rtt - e.smoothed) / 8
	}
}

func (e *estimate) timeout() time.Duration {
	return max(leastTimeout, e.smoothed+4*e.variation)
}
