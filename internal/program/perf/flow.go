package perf

import (
	"errors"
	"fmt"
	"math"
	"time"

	"urnic/internal/host/plural"
	"urnic/rnic"
)

// A flow keeps requests outstanding on one queue pair, takes what the other side
// sends there, or both. It acts only when it is notified of completions.
//
// An end that sends says at last how many messages that were, and is done when
// the other one has acknowledged that: all has arrived then. Messages that take
// receives are sent only as far as there are some: the other end returns credit
// for those that it has posted anew. RDMA Writes are sent only as far as the other end
// has looked at those that they are written over: see places.
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
	looked      uint64 // messages that have been looked at where they arrived
	completed   uint64 // requests, but for those that ask for no completion
	deadline    time.Time
	look        uint64 // at the clock, when so many are posted
	markAt      uint64 // a mark is due, when so many are posted
	started     bool
	ended       bool // noteEnd is posted
	endSent     bool
	acked       bool

	// As one that receives:
	came      uint64 // messages that this side has seen: that took a receive, or lie where they must
	place     int    // of the last one
	granted   uint64
	peerEnded bool
	peerTotal uint64
	ackSent   bool
}

var errProtocol = errors.New("the other side does not conform to the rules of the test: use the same urnic on both sides")

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
	f.markAt = math.MaxUint64
	if f.marks() {
		f.markAt = g.places.mark(0)
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
	for i := range wcs {
		wc := &wcs[i]
		if wc.Status != rnic.StatusSuccess {
			return f.why(wc)
		}
		switch wc.Op {
		case rnic.OpRecv:
			if err := f.arrive(f.take()); err != nil {
				return err
			}
		case rnic.OpRecvImmediate:
			f.take()
			if err := f.noted(wc, r); err != nil {
				return err
			}
		case rnic.OpImmediate:
			if wc.ID == idEnd {
				f.endSent = true
				f.completed = f.posted // of Reads: the note has waited for them
			}
			f.ackSent = f.ackSent || wc.ID == idAck
		default:
			f.outstanding -= f.g.SignalEvery
			f.completed += uint64(f.g.SignalEvery)
		}
	}
	if f.g.Op == OpRead && f.g.active {
		if err := f.find(f.completed); err != nil {
			return err
		}
		f.looked = f.came
	}
	if f.owed > 0 {
		if err := f.repost(); err != nil {
			return err
		}
		if err := f.grant(); err != nil {
			return err
		}
	}
	if f.started && !f.ended {
		return f.fill()
	}
	return nil
}

// arrive counts a message that has taken a receive, and looks whether it is there.
func (f *flow) arrive(place int) error {
	if f.g.Op != OpSend {
		place = f.g.places.of(f.came)
	}
	f.place = place
	// Of Sends that share a place, the next one may be written there just now.
	if (f.g.Op != OpSend || f.g.places.count > 1) && !f.g.arrived(f.i, place, f.came) {
		return &MissingError{QP: f.i, Message: f.came, Came: f.came, Of: f.came + 1}
	}
	f.came++
	return nil
}

// find looks whether all messages before message n are there. Those before the ones that
// it has found are none of its business any more.
func (f *flow) find(n uint64) error {
	found, missing := f.came, n
	for m := f.came; m < n; m++ {
		if f.g.arrived(f.i, f.g.places.of(m), m) {
			found++
		} else {
			missing = min(missing, m)
		}
	}
	if missing < n {
		return &MissingError{QP: f.i, Message: missing, Came: found, Of: n}
	}
	if n > f.came {
		f.came, f.place = n, f.g.places.of(n-1)
	}
	return nil
}

// allCame checks that the messages have come which the other side has sent, when it has
// ended.
func (f *flow) allCame(n uint64) error {
	switch f.g.Op {
	case OpRead: // which fetches
		return nil
	case OpWrite:
		return f.find(n)
	case OpAtomic:
		f.came = f.g.added(f.i)
	default: // they have taken receives
	}
	if f.came != n {
		return fmt.Errorf("the data are damaged: %s of queue pair %d came of %d that were sent", plural.Count(f.came, "message"), f.i, n)
	}
	return nil
}

// grant returns credit, once there is a good deal of it, or once all messages of a lap
// are here, for which the other side may wait.
func (f *flow) grant() error {
	if f.peerEnded || f.window == 0 {
		return nil
	}
	lap := uint64(f.g.places.count)
	due := f.came-f.granted >= uint64(max(1, f.window/4))
	if !due && (!f.g.places.overlap() || f.came/lap == f.granted/lap) {
		return nil
	}
	f.granted = f.came
	return f.tell(noteCredit, f.granted, 0)
}

// marks reports whether this end says now and then how many messages it has sent, as
// nothing else reports them.
func (f *flow) marks() bool { return f.g.Op == OpWrite && f.g.active && !f.g.receives() }

// noted takes a note of the other side.
func (f *flow) noted(wc *rnic.WC, r *round) error {
	kind, n := unpackNote(wc.Immediate)
	switch {
	case kind == noteData:
		return f.arrive(0)
	case kind == noteGo && f.g.active && !f.started:
		return f.start(*r)
	case kind == noteCredit && f.g.active:
		f.looked = n
		if f.g.receives() {
			f.allowed = n + uint64(2*f.g.Depth)
		}
	case kind == noteMark && f.g.peerActive && !f.g.receives():
		if err := f.find(n); err != nil {
			return err
		}
		return f.tell(noteCredit, n, 0)
	case kind == noteEnd && !f.peerEnded:
		f.peerEnded, f.peerTotal = true, n
		if err := f.allCame(n); err != nil {
			return err
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
		if f.g.places.overlap() {
			room = min(room, f.g.places.limit(f.looked, f.g.Size)-f.posted, f.markAt-f.posted)
		}
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
		list := f.list[f.at : f.at+n]
		for i := range list {
			f.aim(&list[i], f.posted+uint64(i))
		}
		if err := f.qp.PostSend(list...); err != nil {
			return err
		}
		if f.g.SignalEvery > 1 { // else all are alike
			f.at = (f.at + n) % f.period
		}
		f.outstanding += n
		f.posted += room
		if f.posted == f.markAt {
			if err := f.tell(noteMark, f.posted, 0); err != nil {
				return err
			}
			f.markAt = f.g.places.mark(f.posted)
		}
	}
	if f.posted == f.limit {
		f.ended = true
		return f.tell(noteEnd, f.posted, idEnd)
	}
	return nil
}
