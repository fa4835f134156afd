package machine

// rtt estimates the round-trip time as RFC 6298 does.
type rtt struct {
	smoothed, deviation Time
	least               Time // the least sample
	timeout             Time // RTO, before back-off
}

// sample takes a sample (RFC 6298 §2.2, §2.3). What the timeout adds to the round-trip time is at
// least RTOMin, instead of the clock's granularity: the round trips of a path without variation
// still vary by the time for which the peer may delay an acknowledgement.
func (r *rtt) sample(t Time, c *Config) {
	t = max(t, 1)
	if r.smoothed == 0 {
		r.smoothed, r.deviation, r.least = t, t/2, t
	} else {
		r.deviation += (max(r.smoothed-t, t-r.smoothed) - r.deviation) / 4
		r.smoothed += (t - r.smoothed) / 8
		r.least = min(r.least, t)
	}
	r.timeout = min(r.smoothed+max(c.RTOMin, 4*r.deviation), c.RTOMax)
}

// backedOff returns the timeout, doubled so many times (RFC 6298 §5.5).
func (r *rtt) backedOff(shift uint8, c *Config) Time {
	t := r.timeout
	for ; shift > 0 && t < c.RTOMax; shift-- {
		t *= 2
	}
	return min(t, c.RTOMax)
}
