package conformance

import (
	"sync"
	"time"
)

// An rtt estimates how long the target takes to answer, from what its answers took
// (RFC 6298 §2). Cases that run at the same time share it.
type rtt struct {
	mu               sync.Mutex
	some             bool
	smooth, variance time.Duration
}

// add takes one answer's time into account.
func (r *rtt) add(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.some {
		r.some, r.smooth, r.variance = true, d, d/2
		return
	}
	r.variance += ((r.smooth - d).Abs() - r.variance) / 4
	r.smooth += (d - r.smooth) / 8
}

// Bounds of the time for which nothing must come. Less than minQuiet would not see what a
// busy machine does late.
const (
	minQuiet = 100 * time.Millisecond
	// quietTimeouts is how many retransmission timeouts (RFC 6298 §2) nothing must come.
	quietTimeouts = 4
)

// quiet returns how long nothing must come: several times what an answer may take by the
// estimate, not more than timeout.
func (r *rtt) quiet(timeout time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.some {
		return timeout / 20
	}
	return min(max(quietTimeouts*(r.smooth+4*r.variance), minQuiet), timeout)
}
