package perf

import (
	"errors"
	"fmt"
	"math"
	"time"

	"urnic/rnic"
)

// A flow keeps requests under way on one queue pair, takes what the other side
// sends there, or both. It acts only when it is told of completions.
//
// An end that sends says at last how many messages that were, and is done when
// the other one has acknowledged that: all has arrived then. Messages that take
// receives are sent only as far as there are some: the other end returns credit
// for those that it has posted anew.
type flow struct {
	*end

	// As one that sends:
	list        []rnic.SendWR
	period      int // after so many requests the list begins anew
	at          int
	outstanding int // requests that may not have completed
	posted      uint64
	limit       uint64 // messages in all
	allowed     uint64 // messages for which there are or were receives
	deadline    time.Time
	look        uint64 // at the clock, when so many are posted
	started     bool
	ended       bool // noteEnd is posted
	endSent     bool
	acked       bool

	// As one that receives:
	received  uint64 // messages of data that took a receive
	granted   uint64
	peerEnded bool
	peerTotal uint64
	ackSent   bool
}

var errProtocol = errors.New("the other side does not keep to the rules of the test: use the same urnic on both sides")

func newFlow(e *end) *flow {
	f := &flow{end: e}
	if !e.g.active {
		return f
	}
	every := e.g.SignalEvery
	f.period = (e.g.Depth + every - 1) / every * every
	n := f.period
	if every > 1 {
		n += e.g.Depth
	}
	for i := range n {
		var flags rnic.Flags
		if (i+1)%every != 0 {
			flags = rnic.FlagUnsignaled
		}
		f.list = append(f.list, e.request(flags))
	}
	return f
}

// begin gets the flow ready for a round. Who initiates sends at once; the other
// side does when it hears of that.
func (f *flow) begin(r round) error {
	g := f.g
	*f = flow{end: f.end, list: f.list, period: f.period, limit: r.Iterations}
	if f.limit == 0 {
		f.limit = maxIterations
	}
	f.allowed = math.MaxUint64
	if g.receives() {
		f.allowed = uint64(2 * g.Depth) // which the other side has posted
	}
	if !g.active {
		f.endSent, f.acked = true, true
	}
	if !g.peerActive {
		f.peerEnded, f.ackSent = true, true
	}
	if !g.initiator {
		return nil
	}
	if g.Bidir {
		if err := f.tell(noteGo, 0, 0); err != nil {
			return err
		}
	}
	return f.start(r)
}

func (f *flow) start(r round) error {
	f.started = true
	if r.Iterations == 0 {
		f.deadline = time.Now().Add(r.Duration)
		f.look = 1 // something is sent in any case
	}
	return f.fill()
}

func (f *flow) done() bool { return f.endSent && f.acked && f.peerEnded && f.ackSent }

// advance takes completions, and posts what they make room for.
func (f *flow) advance(wcs []rnic.WC, r *round) error {
	recvs := 0
	for i := range wcs {
		wc := &wcs[i]
		if wc.Status != rnic.StatusSuccess {
			return f.why(wc)
		}
		switch wc.Op {
		case rnic.OpRecv:
			recvs++
			f.received++
		case rnic.OpRecvImmediate:
			recvs++
			if err := f.noted(wc, r); err != nil {
				return err
			}
		case rnic.OpImmediate:
			f.endSent = f.endSent || wc.ID == idEnd
			f.ackSent = f.ackSent || wc.ID == idAck
		default:
			f.outstanding -= f.g.SignalEvery
		}
	}
	if recvs > 0 {
		if err := f.qp.PostRecv(f.recvs[:recvs]...); err != nil {
			return err
		}
		if f.received-f.granted >= uint64(max(1, f.window/4)) && !f.peerEnded {
			f.granted = f.received
			if err := f.tell(noteCredit, f.granted, 0); err != nil {
				return err
			}
		}
	}
	if f.started && !f.ended {
		return f.fill()
	}
	return nil
}

// noted takes a note of the other side.
func (f *flow) noted(wc *rnic.WC, r *round) error {
	kind, n := unpackNote(wc.Immediate)
	switch {
	case kind == noteData:
		f.received++
	case kind == noteGo && f.g.active && !f.started:
		return f.start(*r)
	case kind == noteCredit && f.g.active:
		f.allowed = n + uint64(2*f.g.Depth)
	case kind == noteEnd && !f.peerEnded:
		f.peerEnded, f.peerTotal = true, n
		if f.window > 0 && f.received != n {
			return fmt.Errorf("queue pair %d: %d messages arrived of %d", f.i, f.received, n)
		}
		return f.tell(noteAck, n, idAck)
	case kind == noteAck && f.ended && n == f.posted:
		f.acked = true
	default:
		return errProtocol
	}
	return nil
}

// fill posts as many requests as there is room for, in one list.
func (f *flow) fill() error {
	for {
		room := uint64(f.g.Depth - f.outstanding)
		room = min(room, f.allowed-f.posted, f.limit-f.posted)
		if room == 0 {
			break
		}
		if !f.deadline.IsZero() && f.posted >= f.look {
			if !time.Now().Before(f.deadline) {
				f.limit = f.posted
				break
			}
			f.look = f.posted + max(1, min(256, (256<<10)/uint64(f.g.Size)))
		}
		n := int(room)
		if err := f.qp.PostSend(f.list[f.at : f.at+n]...); err != nil {
			return err
		}
		if f.g.SignalEvery > 1 { // else all are alike
			f.at = (f.at + n) % f.period
		}
		f.outstanding += n
		f.posted += room
	}
	if f.posted == f.limit {
		f.ended = true
		return f.tell(noteEnd, f.posted, idEnd)
	}
	return nil
}
