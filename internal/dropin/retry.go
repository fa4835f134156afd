//go:build linux

package dropin

import (
	"math"
	"time"

	"urnic/internal/door/policy"
	"urnic/internal/dropin/rendezvous"
)

// On InfiniBand, a receiver without a receive answers a Send with an RNR NAK: the sender waits for the receiver's
// min_rnr_timer at least, and sends it again, as often as its rnr_retry says. Here the Send waits at
// the receiver for as long as all that takes, and the stream ends then as it does on iWARP at once (RFC 5041 §7.1).
// The receiver knows the sender's rnr_retry from rdma_cm, where each side gives that of its
// peer, or from package rendezvous.

const (
	retryForEver   = rendezvous.MaxRNRRetry
	unknownRetries = -1 // a Send waits times.receive then
)

// rnrTimers are the values of min_rnr_timer in units of 10 µs (InfiniBand Architecture, table 45).
var rnrTimers = [32]time.Duration{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// receiveWait returns how long a Send waits for a receive, which the sender tries again so often, at a receiver with such a
// min_rnr_timer.
func (t *times) receiveWait(retries int, timer uint32) time.Duration {
	switch {
	case retries < 0:
		return t.receive
	case retries >= retryForEver:
		return math.MaxInt64
	}
	return max(time.Duration(retries)*10*time.Microsecond*rnrTimers[timer&31], t.receiveLeast)
}

// A retryPolicy is the policy of a queue pair whose peer's Sends wait as InfiniBand's do.
type retryPolicy struct {
	policy.Policy
	q *qp
}

// RNR implements policy.Policy. Package rnic asks when it connects the queue pair, with locks held.
func (p retryPolicy) RNR() time.Duration {
	return p.q.engine.times.receiveWait(int(p.q.peerRetries.Load()), p.q.rnrTimer.Load())
}
