package rnic

import (
	"sync/atomic"
	"time"

	"urnic/mpa"
	"urnic/rdmap"
	"urnic/rnic/internal/drive"
	"urnic/rnic/internal/life"
	"urnic/stag"
)

// A link is one stream of a queue pair, from the end of start-up to its end. It carries
// out what the queue pair's life decides.
//
// Its driver decides which goroutine transmits and which receives, see package drive. An
// idle link has one goroutine, which receives; a request on it is sent by the goroutine
// that posts it. The link ends in the goroutine that receives: see finish.
type link struct {
	qp     *QP
	conn   LLPConn
	params mpa.Params
	rdmap  *rdmap.Stream
	held   []amount // of quotas, until the end
	driver drive.Driver
	transmitting
	receiving

	watches atomic.Uint32 // which segments the life wants to be notified of
	ending  atomic.Bool   // the life wants to be notified when there is nothing left to send

	quiet chan struct{} // closed when nothing more will be sent
	done  chan struct{} // closed at the end
	err   error         // why the link ended, if not gracefully; read only after that
	timer *time.Timer   // bounds the end, or nil; under the queue pair's mu
}

// A transmitting is what a link's transmitter has.
type transmitting struct {
	lease stag.Lease // of the memory of what is posted and not flushed

	batch      []*life.Request // begun together
	passedOn   int             // of them
	exhausted  bool            // nothing else can be begun in this pass
	flushFirst bool            // a request waits for the end of the lease

	sent     []posting // posted, not yet reported to the life
	accepted uint64    // what the LLP had accepted after the last flush
	over     bool      // nothing more will be sent
}

// A posting is a request of which a message has been posted.
type posting struct {
	request  *life.Request
	position uint64
}

// A receiving is what a link's receiver has.
type receiving struct {
	news      bool             // the life is to be notified of a segment that has arrived
	badClose  bool             // one arrived while the stream was closing
	terminate *rdmap.Terminate // the peer's
	failed    error            // of receiving

	rnr    life.RNR
	posted signal // a receive has been posted, or the link ends; nil if no message waits
}

// The values of link.watches.
const (
	watchNothing uint32 = iota
	watchFirst          // report an arrival; it may be placed first
	watchAll            // report an arrival while the stream is closing, before it is placed
)

// isDone reports whether the link has ended.
func (l *link) isDone() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}
