package conformance

import (
	"context"
	"time"
)

// Options say how cases are run. Zeros stand for the defaults.
type Options struct {
	// Timeout bounds how long an answer may take that has to come. Zero stands for
	// DefaultTimeout.
	Timeout time.Duration
	// Quiet is how long nothing must come where nothing may come. Zero stands for several
	// times what the target's answers take, as it was measured: not less than 100 ms, nor
	// more than Timeout.
	Quiet time.Duration
	// Settle is how long to wait after start-up before anything is sent to a target
	// that is the Responder. Linux siw wants some time: it does not notice an FPDU
	// that comes before its socket is in full operation until the next one comes.
	Settle time.Duration
	// Strict makes broken SHOULDs failures.
	Strict bool
	// Jobs is how many cases run at a time. Zero stands for DefaultJobs.
	Jobs int
	// Spare leaves out the cases that are known to harm endpoints (Case.Harm).
	Spare bool
	// Revive, if not nil, is called to bring the target back when it does not accept an
	// ordinary connection any more: before each of those cases, and with a Serial
	// profile after a case that was inconclusive, which is then run again.
	Revive func(context.Context) error
	// Only selects cases, as Matches has it; none selects all.
	Only []string
	// PcapDir is where recordings of the cases go; none are made if it is empty.
	PcapDir string
	// FirstMSN is the MSN with which the target's queues begin, in both directions. Zero
	// stands for 1, as RFC 5041 §4.3 wants it. A build of a target that begins near 2^32
	// shows the wrap within a few messages.
	FirstMSN uint32
	// Progress, if not nil, is told of each result as it comes, one at a time.
	Progress func(done, all int, r Result)

	rtt *rtt // measured
}

// DefaultTimeout suits a peer on the same network, or a slow guest on the same
// machine.
const DefaultTimeout = 5 * time.Second

// DefaultJobs is more than there are processors: cases wait most of the time.
const DefaultJobs = 16

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Jobs <= 0 {
		o.Jobs = DefaultJobs
	}
	o.rtt = &rtt{}
	if o.FirstMSN == 0 {
		o.FirstMSN = 1
	}
	return o
}
