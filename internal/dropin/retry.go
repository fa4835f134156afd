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
	unknownRetries = -1 // a Send waits recvWait then
)

// shortestWait is how long a Send waits at least, even one that is not to be sent again. Timers may be a few microseconds, which
// are for adapters; and programs that leave rnr_retry at 0, such as fio, count on a peer that posts the next receive
// before an acknowledgment has crossed the network.
const shortestWait = time.Second

// rnrTimers are the values of min_rnr_timer in units of 10 µs (InfiniBand Architecture, table 45).
var rnrTimers = [32]time.Duration{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// receiveWait returns how long a Send waits for a receive, which the sender tries again so often, at a receiver with such a
// min_rnr_timer.
func receiveWait(retries int, timer uint32) time.Duration {
	switch {
	case retries < 0:
		return recvWait
	case retries >= retryForEver:
		return math.MaxInt64
	}
	return max(time.Duration(retries)*10*time.Microsecond*rnrTimers[timer&31], shortestWait)
}

// A retryPolicy is the policy of a queue pair whose peer's Sends wait as InfiniBand's do.
type retryPolicy struct {
	policy.Policy
	q *qp
}

// RNR implements policy.Policy. Package rnic asks when it connects the queue pair, with locks held.
func (p retryPolicy) RNR() time.Duration {
	return receiveWait(int(p.q.peerRetries.Load()), p.q.rnrTimer.Load())
}
