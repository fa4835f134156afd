package rnic

import (
	"sync/atomic"
	"time"

	"urnic/internal/capture"
	"urnic/mpa"
	"urnic/rdmap"
	"urnic/stag"
)

// A link is one stream of a queue pair, from the end of start-up to its end.
//
// Two roles work on it. The receiver is a goroutine that waits for segments, or a
// program that waits or polls for completions, see link_drive.go. The transmitter
// is whoever holds tx: the poster of a request who finds it idle, the receiver when
// there are responses to send, or, while the LLP is full, a goroutine that waits for
// room, or a program that polls. So an idle link has one goroutine, and a request
// on it is sent by the goroutine that posts it.
//
// The link ends in the receiver: see finish.
type link struct {
	qp        *QP
	conn      *mpa.Conn
	params    mpa.Params
	rdmap     *rdmap.Stream
	recording *capture.Stream // or nil
	held      []amount        // of quotas, until the end

	tx        atomic.Int32  // who transmits: txIdle, txBusy, txAgain or txParked
	woken     atomic.Bool   // RDMAP has something to transmit
	stopping  atomic.Bool   // nobody is to transmit any more
	txStopped chan struct{} // closed when that is so
	carryOn   func()        // transmit, waiting, in a goroutine; made once, so that none of them allocates
	accepted  atomic.Uint64 // what the LLP had taken after the last flush

	heard      atomic.Bool // the peer has sent something, or need not be first
	peerEnded  atomic.Bool // the peer has closed its half
	closeAsked atomic.Bool // the consumer wants a graceful close
	closing    atomic.Bool // the state is Closing
	late       atomic.Bool // a segment arrived in that state
	disputed   atomic.Bool // the peer has sent a Terminate: nobody knows what it took

	// The transmitter's.
	lease      stag.Lease    // of the memory of what is posted and not flushed
	flushFirst bool          // a request waits for its end
	ready      []*sendWQE    // begun, and still to be passed on
	passed     int           // of them
	submitted  []*sendWQE    // posted, which the send queue does not know yet
	endWrite   bool          // this side's half is to be closed
	ended      bool          // writeEnded is closed
	writeEnded chan struct{} // closed when nothing will be sent any more
	sendErr    error         // why not, if the LLP has failed; to be read after that

	// The receiver's.
	rx            receiving
	starve        starving
	peerTerminate *rdmap.Terminate
	answered      uint32 // Reads and atomics whose responses are in

	aborted chan struct{} // closed when the connection was reset by this side
	done    chan struct{} // closed at the end
	err     error         // why the link ended, if not gracefully; to be read after that

	// Under the queue pair's mu.
	draining bool        // no requests are taken any more
	timer    *time.Timer // bounds the end, or nil
	wasReset bool        // aborted is closed
	over     bool        // the last state is decided
}

// llp is the link's lower layer as RDMAP sees it. It notes when segments arrive.
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
		if !l.heard.Load() {
			l.heard.Store(true)
			l.Wake() // a close may have waited for it
		}
	}
	return p
}

// Receive implements ddp.LLP.
func (p *llp) Receive(place func(segment []byte, order uint64)) error {
	p.place = place
	return p.Conn.Receive(p.watch)
}

// TryReceive implements ddp.LLP.
func (p *llp) TryReceive(place func(segment []byte, order uint64)) (bool, error) {
	p.place = place
	return p.Conn.TryReceive(p.watch)
}

// bind gives a queue pair its stream and starts it: from Idle, in which beginStartup
// has kept it, to RTS.
func (q *QP) bind(conn *mpa.Conn, recording *capture.Stream, held []amount) (*link, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	if err := q.join(); err != nil { // a completion queue that fails from now on finds the stream
		return nil, err
	}
	if q.link != nil { // a stream before this one was closed gracefully
		q.ended.Add(q.link.rdmap.Stats())
	}
	params := conn.Params()
	l := &link{
		qp: q, conn: conn, params: params, recording: recording, held: held,
		txStopped: make(chan struct{}), writeEnded: make(chan struct{}), aborted: make(chan struct{}), done: make(chan struct{}),
	}
	cfg := rdmap.Config{
		Memory: &q.pd.dev.memory, Scope: q.scope(), IRD: int(params.IRD), ORD: int(params.ORD), Refused: &q.refused,
	}
	if params.Role == mpa.Initiator {
		cfg.SendRTR = params.RTR
		l.heard.Store(true)
	} else {
		cfg.ExpectRTR = params.RTR
	}
	if trace := q.pd.dev.cfg.Trace; trace != nil {
		cfg.Trace = func(t rdmap.Trace) { trace(Trace{Device: q.pd.dev.cfg.Name, QPN: q.num, Trace: t}) }
	}
	l.rdmap = rdmap.NewStream(newLLP(l), l, cfg)
	l.carryOn = func() {
		defer q.pd.dev.wg.Done()
		l.transmit(true)
	}
	conn.SetKeeper(l.keeps)
	l.rx.resume = make(chan struct{}, 1)
	if q.attr.RecvWait > 0 {
		l.starve.food = make(chan struct{}, 1)
		conn.SetGate(l.mayPlace)
	}
	if conn.Polls() {
		q.recvCQ.attach(l)
		q.sendCQ.attach(l)
	}
	q.link, q.starting, q.state, q.err = l, nil, RTS, nil
	q.pd.dev.wg.Go(l.receive)
	return l, nil
}
