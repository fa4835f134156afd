package life

import "time"

// An RNR is the wait of a message for a receive when the receiver is not ready, which
// InfiniBand announces by RNR NAKs. DDP knows no such wait: without a receive, the stream
// ends (RFC 5041 §7.1).
type RNR struct {
	Limit time.Duration // how long a message waits; 0: not at all

	until time.Time // when the message in turn has waited long enough; zero if none waits
	told  bool      // Waits has reported a first one
}

// Waits returns whether a message that needs a receive has to wait now. ready says that
// there is a receive, or that no message may delay the stream any more. Waits reports the
// first wait of a stream.
func (r *RNR) Waits(ready bool, now time.Time) (wait, first bool) {
	if ready {
		r.until = time.Time{}
		return false, false
	}
	if r.until.IsZero() {
		r.until = now.Add(r.Limit)
	}
	wait = now.Before(r.until)
	first = wait && !r.told
	r.told = r.told || first
	return wait, first
}

// Left returns how long the message in turn may still wait.
func (r *RNR) Left(now time.Time) time.Duration { return max(r.until.Sub(now), 0) }
