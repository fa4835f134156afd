package congestion

import "time"

// A Controller decides how many segments a connection may have in flight.
//
// Its methods are not for concurrent use. Times are durations since a moment that the caller
// chooses. In-flight counts are those after the event: segments that were sent and that no
// acknowledgement has named yet.
type Controller interface {
	// Window returns how many segments may be in flight, at least 1.
	Window() int

	// Sent reports that a segment was sent, for the first time or again.
	Sent(now time.Duration, inFlight int)

	// Acked reports that an acknowledgement has named segments that none had named before.
	Acked(now time.Duration, a Ack)

	// Lost reports that gaps in the extended acknowledgements show a loss. Once in a window of
	// data is enough: a controller counts the losses of a round as one.
	Lost(now time.Duration, inFlight int)

	// TimedOut reports that a retransmission timer has expired.
	TimedOut(now time.Duration, inFlight int)

	// Reported reports what code in the path has reported.
	Reported(now time.Duration, r Report)
}

// An Ack is what an acknowledgement tells a controller.
type Ack struct {
	Segments int           // how many it names that none had named before
	RTT      time.Duration // a sample of the round-trip time; 0: none
	InFlight int           // what is in flight after it
}

// A Report is what code in the path has seen of a flow.
type Report struct {
	// Window is how many segments the flow may have in flight. The node has enforced it
	// already: it has dropped what a sender with that window would not have sent. 0: none,
	// the controller is to react as if it had noticed the loss itself.
	Window int

	Drops int    // segments of the flow that the node has dropped
	Marks int    // segments of the flow that it would have marked
	From  string // the node, for logs
}

// A Config has the settings of a controller. The zero value has the defaults.
type Config struct {
	// InitialWindow is the window at the start and after idleness, in segments. 0: 10, which
	// RFC 6928 §2 allows for segments of up to 1460 bytes; see [InitialWindow].
	InitialWindow int

	// MaxWindow bounds the window. 0: 65,535, the most that a SYN can announce.
	MaxWindow int

	// Threshold is the window at which the first slow start ends. 0: MaxWindow, as "ssthresh
	// SHOULD be set arbitrarily high" (RFC 5681 §3.1).
	Threshold int

	// PerAck is by how many segments one acknowledgement may raise the window in slow start,
	// however many it names. 0: 2, as RFC 3465 §2.2 recommends where receivers acknowledge
	// every second segment. 1 is RFC 5681 §3.1. After a timeout it is always 1 (RFC 3465 §2.3).
	PerAck int
}

const (
	defaultInitial = 10
	defaultMax     = 65535
	defaultPerAck  = 2
)

// withDefaults replaces what is not set, or makes no sense.
func (c Config) withDefaults() Config {
	if c.MaxWindow <= 0 || c.MaxWindow > defaultMax {
		c.MaxWindow = defaultMax
	}
	if c.InitialWindow <= 0 {
		c.InitialWindow = defaultInitial
	}
	c.InitialWindow = min(c.InitialWindow, c.MaxWindow)
	if c.Threshold <= 0 {
		c.Threshold = c.MaxWindow
	}
	c.Threshold = max(c.Threshold, leastThreshold)
	if c.PerAck <= 0 {
		c.PerAck = defaultPerAck
	}
	return c
}

// InitialWindow returns the initial window in segments that RFC 6928 §2 allows for segments
// with so many bytes of data: min(10·n, max(2·n, 14600)) bytes.
func InitialWindow(n int) int {
	if n <= 0 {
		return defaultInitial
	}
	return max(2, min(defaultInitial, 14600/n))
}
