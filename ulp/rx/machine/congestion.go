package machine

import "urnic/ulp/rx/wire"

// congestion is the state of slow start, congestion avoidance and fast recovery of a call
// (draft §5.5). Windows are in packets.
type congestion struct {
	cwnd       int
	ssthresh   int
	recovering bool // fast recovery
	nacks      int  // negative acknowledgements in a row
}

// Numbers of draft §5.4 and §5.5.
const (
	nackLimit   = 3 // negative acknowledgements that mean a loss
	minSSThresh = 2
	// inflation is by how much the window exceeds the threshold when recovery begins: the
	// packets behind the hole that have left the network, as the draft's reference has it.
	inflation = 3
)

func (c *congestion) init(cwnd int) {
	c.cwnd, c.ssthresh = max(1, cwnd), wire.MaxAcks
}

// halve sets the threshold to half of the effective window.
func (c *congestion) halve(window uint32) {
	c.ssthresh = max(minSSThresh, min(c.cwnd, int(window))/2)
}

// negative processes an acknowledgement with a hole in it, behind which packets were
// newly acknowledged. It reports whether recovery begins.
func (c *congestion) negative(fresh int, window uint32) (begins bool) {
	if c.recovering {
		c.cwnd = min(c.cwnd+1, wire.MaxAcks)
		return false
	}
	// Acknowledgements of packets that came together are one: then the packets count.
	c.nacks += max(1, fresh)
	if c.nacks < nackLimit {
		return false
	}
	c.halve(window)
	c.cwnd = c.ssthresh + inflation
	c.recovering, c.nacks = true, 0
	return true
}

// positive processes an acknowledgement without a hole, of n packets that had not been
// acknowledged.
func (c *congestion) positive(fresh int) {
	c.nacks = 0
	switch {
	case c.recovering:
		c.cwnd, c.recovering = c.ssthresh, false
	case fresh == 0:
	case c.cwnd < c.ssthresh:
		c.cwnd = min(c.cwnd+fresh, c.ssthresh)
	default:
		c.cwnd = min(c.cwnd+1, wire.MaxAcks)
	}
}

// timeout takes the loss of everything that is outstanding.
func (c *congestion) timeout(window uint32) {
	c.halve(window)
	c.cwnd, c.nacks, c.recovering = 1, 0, false
}
