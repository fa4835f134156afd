package rxrdma

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/ulp/rx/rxrdma/machine"
	"urnic/ulp/rx/rxrdma/wire"
)

// A link is a connection: a queue pair and one side of the protocol. One goroutine takes
// its completions; whoever has something to send posts it.
type link struct {
	e      *Endpoint
	client bool
	peer   netip.AddrPort
	cq     *rnic.CQ
	qp     *rnic.QP
	recv   []byte // of the receives
	mr     *rnic.MR
	size   int // of a receive
	start  time.Time
	ctx    context.Context // ends when the link is to end
	cancel context.CancelFunc
	over   chan struct{} // closed when nothing of it is left
	tx     sync.Mutex    // of whoever posts; taken before mu
	dirty  atomic.Bool
	wrs    []rnic.SendWR // under tx
	sges   []rnic.SGE
	inline []byte

	mu      sync.Mutex
	mc      *machine.Conn
	free    []rnic.RecvWR // receives to be posted
	slots   []rnic.SGE    // of each receive
	head    uint64        // requests that were posted
	done    uint64        // requests that are over
	ops     [sendSlots]op
	waiting []chan struct{} // who waits for a channel, the longest first
	timer   *time.Timer
	armed   machine.Time // when the timer fires; 0: it does not
	dead    bool         // the queue pair has ended
	retired bool         // it ends with its last call
	idle    machine.Time // since when there is no call
	counts  counts
	private wire.Private // of the peer
	service uint16
	begun   []*serverCall // calls that nobody serves yet
}

// An op is what a request of the send queue needs until it is over.
type op struct {
	buffer *machine.Buffer
	place  *machine.Place
}

const (
	sendSlots = 128
	atOnce    = 32
	recvID    = 1 << 63
	// farewell is how long a connection may take to end in good order.
	farewell = 2 * time.Second
)

// newLink makes a queue pair with its receives posted.
func (e *Endpoint) newLink(channels int) (l *link, err error) {
	n := e.cfg.credits(channels)
	l = &link{
		e: e, size: e.cfg.Receive, over: make(chan struct{}), slots: make([]rnic.SGE, n),
		wrs: make([]rnic.SendWR, 0, atOnce+1), sges: make([]rnic.SGE, atOnce+1), inline: make([]byte, (atOnce+1)*inlineLen),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	if l.cq, err = e.dev.CreateCQ(rnic.CQAttr{Entries: n + sendSlots}); err != nil {
		return l, err
	}
	if l.qp, err = e.pd.CreateQP(rnic.QPAttr{
		SendCQ: l.cq, RecvCQ: l.cq, MaxSendWR: sendSlots, MaxRecvWR: n, MaxSGE: 1, MaxInline: inlineLen,
	}); err != nil {
		return l, err
	}
	l.recv = make([]byte, n*l.size)
	if l.mr, err = e.pd.Register(l.recv, rnic.LocalWrite); err != nil {
		return l, err
	}
	for slot := range n {
		l.slots[slot] = l.mr.SGE(slot*l.size, l.size)
		l.Free(slot)
	}
	// The receives are there before the peer can send.
	err = l.qp.PostRecv(l.free...)
	l.free = l.free[:0]
	return l, err
}

// begin begins the protocol, once the two sides have said what they are.
func (l *link) begin(cfg machine.Config) {
	l.start = time.Now()
	cfg.Start, cfg.Host, cfg.LeastBulk = l.start, l, l.e.cfg.LeastBulk
	l.peer = addrPort(l.qp.RemoteAddr())
	l.mu.Lock()
	l.private = cfg.Peer
	l.mc = machine.New(cfg)
	l.leave()
	l.e.wg.Go(l.run)
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// now is the connection's time.
func (l *link) now() machine.Time { return time.Since(l.start) }

// leave unlocks the link, and sends what there is.
func (l *link) leave() {
	l.arm()
	end := l.mc.Err() != nil || l.retired && l.mc.Active() == 0
	l.mu.Unlock()
	l.flush()
	if end {
		l.cancel()
	}
}

// arm sets the timer. The link is locked.
func (l *link) arm() {
	at, ok := l.mc.Deadline()
	if !l.client && l.mc.Active() == 0 && !l.dead {
		at = min(at, l.idle+l.e.cfg.IdleTime)
		if !ok {
			at, ok = l.idle+l.e.cfg.IdleTime, true
		}
	}
	if !ok || l.dead || l.armed != 0 && l.armed <= at {
		return
	}
	l.armed = max(at, 1)
	d := max(at-l.now(), 0)
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.tick)
		return
	}
	l.timer.Reset(d)
}

// tick does what is due.
func (l *link) tick() {
	l.mu.Lock()
	l.armed = 0
	now := l.now()
	l.mc.Advance(now)
	if !l.client && !l.dead && !l.retired && l.mc.Active() == 0 && now >= l.idle+l.e.cfg.IdleTime {
		l.mc.Close(now)
		l.retired = true
		l.counts.idle++
	}
	l.leave()
}

// run takes completions until the link ends.
func (l *link) run() {
	err := l.completions()
	l.finish(err)
}

var errPeerClosed = errors.New("the peer has closed the connection")

func (l *link) completions() error {
	var wcs [64]rnic.WC
	for {
		n, err := l.cq.Wait(l.ctx, wcs[:])
		if err != nil {
			return nil // it is to end: the machine knows why
		}
		var failed *rnic.WC
		l.mu.Lock()
		now := l.now()
		for i := range wcs[:n] {
			switch wc := &wcs[i]; {
			case wc.Status != rnic.StatusSuccess:
				if failed == nil {
					failed = wc
				}
			case wc.ID&recvID != 0:
				slot := int(wc.ID &^ recvID)
				l.counts.receives++
				l.mc.Received(now, slot, l.recv[slot*l.size:][:wc.ByteLen])
			default:
				l.sent(now, wc.ID)
			}
		}
		l.offer()
		l.leave()
		if failed == nil {
			continue
		}
		if cause := l.qp.Err(); failed.Status == rnic.StatusFlushed {
			if cause == nil {
				cause = errPeerClosed
			}
			return cause
		}
		return failed.Err()
	}
}

// sent notes that the requests up to one are over. The link is locked.
func (l *link) sent(now machine.Time, id uint64) {
	for l.done < id {
		l.done++
		o := &l.ops[l.done%sendSlots]
		if o.buffer != nil {
			l.e.buffers.put(o.buffer)
		}
		if o.place != nil {
			l.mc.Done(now, o.place)
		}
		*o = op{}
	}
}

// finish ends the connection, in good order if cause is nil, and gives everything back.
func (l *link) finish(cause error) {
	if cause == nil {
		l.flush() // the last words
		ctx, cancel := context.WithTimeout(l.e.ctx, farewell)
		_ = l.qp.Disconnect(ctx) // which ends it in any case
		cancel()
	}
	l.qp.Abort() // from here on no memory is touched
	l.tx.Lock()
	l.mu.Lock()
	l.dead = true
	if l.timer != nil {
		l.timer.Stop()
	}
	now := l.now()
	closing := l.mc.Closing() || l.retired
	if l.mc.Err() == nil {
		l.mc.Lost(now, firstErr(cause, errPeerClosed))
	}
	l.sent(now, l.head)
	err := l.mc.Err()
	l.wake(true)
	l.mu.Unlock()
	l.tx.Unlock()
	l.cancel()
	l.blame(err, cause, closing)
	if err := l.release(); err != nil {
		l.e.cfg.Log.Error("rxrdma: a connection is not given back", "error", err)
	}
	l.e.forget(l)
	close(l.over)
}

func firstErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// blame counts how the connection has ended, and reports the rule that the peer has broken,
// if it has.
func (l *link) blame(err, cause error, closing bool) {
	var v *machine.ViolationError
	var e *rdmap.Error
	switch {
	case errors.As(err, &v):
		l.e.violated(Violation{Peer: l.peer, Rule: v.Rule, Err: v.Err})
	case errors.As(cause, &e) && !e.Code.LocalCatastrophic() && !harmless(e.Code):
		l.e.violated(Violation{Peer: l.peer, Rule: machine.RuleTransport, Err: e})
	}
	if !closing || cause != nil && !errors.Is(cause, errPeerClosed) {
		l.e.mu.Lock()
		l.e.stats.Lost++
		l.e.mu.Unlock()
	}
}

// harmless reports whether a code of RDMAP says only that the connection was lost.
func harmless(c rdmap.TermCode) bool {
	const connectionLost rdmap.TermCode = 0x2001 // RFC 5044 §8
	return c == connectionLost || c == rdmap.CodeStreamCatastrophic || c == rdmap.CodeGlobalCatastrophic
}

// release gives back what the link has.
func (l *link) release() error {
	l.cancel()
	var errs []error
	if l.qp != nil {
		errs = append(errs, l.qp.Close())
	}
	if l.mr != nil {
		errs = append(errs, l.mr.Close())
	}
	if l.cq != nil {
		errs = append(errs, l.cq.Close())
	}
	return errors.Join(errs...)
}

// retire ends the link once its calls have.
func (l *link) retire() {
	l.mu.Lock()
	l.retired = true
	l.leave()
}
