package rnic

import (
	"errors"
	"sync/atomic"
	"time"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
)

// A link is one stream of a queue pair, from the end of start-up to its end.
//
// Two roles work on it. The receiver is a goroutine that waits for segments. The
// transmitter is whoever holds tx: the poster of a request who finds it idle,
// the receiver when there are responses to send, or, while the LLP is full, a
// goroutine that waits for room. So an idle link has one goroutine, and a
// request on it is sent by the goroutine that posts it.
//
// The link ends in the receiver: see finish.
type link struct {
	qp        *QP
	conn      *mpa.Conn
	rdmap     *rdmap.Stream
	recording *capture.Stream // or nil
	held      []amount        // of quotas, until the end

	tx        atomic.Int32  // who transmits: txIdle, txBusy, txAgain
	woken     atomic.Bool   // RDMAP has something to transmit
	stopping  atomic.Bool   // nobody is to transmit any more
	txStopped chan struct{} // closed when that is so
	accepted  atomic.Uint64 // what the LLP had taken after the last flush
	fault     *rdmap.Error  // the transmitter's, to be reported when it holds no lock

	peerEnded  atomic.Bool   // the peer has closed its half
	closeAsked atomic.Bool   // the consumer wants a graceful close
	closing    atomic.Bool   // the state is Closing
	late       atomic.Bool   // a segment arrived in that state
	endWrite   atomic.Bool   // this side's half is to be closed when all is out
	writeEnded chan struct{} // closed when it is, or can't be
	ended      bool          // the transmitter has closed writeEnded

	peerTerminate *rdmap.Terminate // the receiver's
	done          chan struct{}    // closed at the end

	// Under the queue pair's mu.
	draining bool        // no requests are taken any more
	timer    *time.Timer // bounds the end, or nil
}

// llp is the link's lower layer as RDMAP sees it. It notes segments that arrive
// while the link is closing.
type llp struct {
	*mpa.Conn
	link  *link
	place func(segment []byte, order uint64)
	watch func(segment []byte, order uint64)
}

func newLLP(l *link) *llp {
	p := &llp{Conn: l.conn, link: l}
	p.watch = func(segment []byte, order uint64) {
		if l.closing.Load() {
			l.late.Store(true)
		}
		p.place(segment, order)
	}
	return p
}

// Receive implements ddp.LLP.
func (p *llp) Receive(place func(segment []byte, order uint64)) error {
	p.place = place
	return p.Conn.Receive(p.watch)
}

// bind gives a queue pair its stream and starts it: from Idle to RTS.
func (q *QP) bind(conn *mpa.Conn, recording *capture.Stream, held []amount) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.state != Idle {
		return &StateError{State: q.state, Err: ErrClosed}
	}
	if q.link != nil { // a stream before this one was closed gracefully
		q.ended.Add(q.link.rdmap.Stats())
		q.stream.Store(q.pd.dev.lastLink.Add(1))
	}
	params := conn.Params()
	l := &link{
		qp: q, conn: conn, recording: recording, held: held,
		txStopped: make(chan struct{}), writeEnded: make(chan struct{}), done: make(chan struct{}),
	}
	cfg := rdmap.Config{Memory: &q.pd.dev.memory, Scope: q.scope(), IRD: int(params.IRD), ORD: int(params.ORD)}
	if params.Role == mpa.Initiator {
		cfg.SendRTR = params.RTR
	} else {
		cfg.ExpectRTR = params.RTR
	}
	if trace := q.pd.dev.cfg.Trace; trace != nil {
		cfg.Trace = func(t rdmap.Trace) { trace(Trace{Device: q.pd.dev.cfg.Name, QPN: q.num, Trace: t}) }
	}
	l.rdmap = rdmap.NewStream(newLLP(l), l, cfg)
	q.link, q.state, q.err = l, RTS, nil
	q.pd.dev.wg.Go(l.receive)
	return nil
}

// terminating ends the stream for an error that this side has found: the peer
// is told by a Terminate message, and the link closes. It may be called from
// anywhere, with no lock held.
func (l *link) terminating(e *rdmap.Error, event EventType) {
	q := l.qp
	q.mu.Lock()
	switch q.state {
	case RTS:
	case Closing: // a graceful close has no room for it
		q.mu.Unlock()
		l.abort(e)
		return
	default:
		q.mu.Unlock()
		return
	}
	q.state, q.err = Terminating, e
	l.limit()
	q.mu.Unlock()
	q.pd.dev.report(Event{Type: event, QP: q, Err: e})
	l.rdmap.Fail(e)
	l.kick()
}

// limit bounds the time that the end takes. The caller holds the queue pair's
// mu.
func (l *link) limit() {
	if l.timer == nil {
		l.timer = time.AfterFunc(l.qp.pd.dev.cfg.CloseTimeout, func() { l.abort(errNoDeadline) })
	}
}

// abort resets the connection. The receiver finds out and ends the link.
func (l *link) abort(why error) {
	q := l.qp
	q.mu.Lock()
	if q.link == l && (q.state == RTS || q.state == Closing || q.state == Terminating) {
		q.state = Error
		if q.err == nil {
			q.err = why
		}
	}
	q.mu.Unlock()
	_ = l.conn.Abort() // the link ends, whatever it says
}

// catastrophe ends the stream because something of the queue pair's own has
// failed, such as a completion queue.
func (q *QP) catastrophe(why error) {
	q.mu.Lock()
	l := q.link
	q.mu.Unlock()
	if l != nil {
		l.terminating(&rdmap.Error{Code: rdmap.CodeStreamCatastrophic, Clause: "RFC 5040 §4.8", Err: why}, EventCatastrophic)
	}
}

// flush completes all requests that have not completed.
func (q *QP) flush(l *link) {
	if l != nil && l.peerTerminate != nil && l.peerTerminate.R() {
		q.sq.markRead(StatusRemoteTermination, &rdmap.PeerError{Terminate: *l.peerTerminate})
	}
	q.sq.flush()
	q.flushRecv()
}

// finish ends the link, in the receiver's goroutine: the connection is closed,
// nobody transmits any more, what is left in the queues is flushed, and the
// queue pair gets its last state.
func (l *link) finish(graceful bool) {
	q := l.qp
	if graceful {
		_ = l.conn.Close() // both halves are closed
	} else {
		_ = l.conn.Abort()
	}
	l.stopping.Store(true)
	l.kick()
	<-l.txStopped
	q.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
	}
	if !graceful {
		q.state = Error
	}
	err := q.err
	q.mu.Unlock()
	if l.recording != nil {
		if graceful {
			l.recording.Close(!l.peerEnded.Load())
		} else {
			l.recording.Reset(true)
		}
	}
	for _, h := range l.held {
		q.pd.domain.Release(h.resource, h.n)
	}
	q.flush(l)
	if graceful {
		q.mu.Lock()
		q.state = Idle
		q.mu.Unlock()
		q.pd.dev.report(Event{Type: EventCloseComplete, QP: q})
	} else {
		q.pd.dev.stats.lost.Add(1)
		q.pd.dev.log.Info("stream ended", "device", q.pd.dev.cfg.Name, "qp", q.num, "error", err)
	}
	close(l.done)
}

var errBadClose = errors.New("a segment arrived while the connection was closing")
