package rds

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"urnic/rdmap"
	"urnic/rnic"
	"urnic/ulp/rds/machine"
	"urnic/ulp/rds/wire"
)

const (
	// sendSlots is how many fragments may be in the send queue of a connection.
	sendSlots = 256
	// atOnce is how many are posted at once.
	atOnce = 32
	// signalEvery is how many Sends share a completion.
	signalEvery = 16
	// headerLen is how much memory a header has.
	headerLen = 64
)

// receiveWait is how long a fragment waits for a receive: a peer that does not use flow
// control, as Linux by default, sends as fast as it can, as InfiniBand's RNR retry has it
// wait. A program that reads nothing for so long costs the connection, and no message.
const receiveWait = time.Minute

// An iwarpLink is a connection of RDS over an RNIC. One goroutine takes completions.
// Whoever has something to send posts it.
type iwarpLink struct {
	t    *IWARP
	n    *Node
	path *machine.Path
	id   machine.Link
	told machine.Params

	cq   *rnic.CQ
	qp   *rnic.QP
	ctx  context.Context
	stop context.CancelFunc
	in   receives
	room chan struct{}

	tx      sync.Mutex // of whoever posts
	dirty   atomic.Bool
	dead    bool // under tx
	head    int  // requests that were posted; under tx
	done    atomic.Int64
	headers []byte // of the Sends in the queue
	mr      *rnic.MR
	held    [sendSlots]*buffer // what their data lie in
	wrs     []rnic.SendWR
	sges    []rnic.SGE

	// Operations, under the node's lock.
	posted     []*posted   // that the RNIC has, in the order of their requests
	unsettled  []*posted   // of which it is not known how they end; those behind the first may be settled
	unanswered int         // Reads and atomics among posted
	patience   *time.Timer // for the oldest of them
	linger     atomic.Bool // the peer has ended the connection
	blamed     bool        // the RNIC has told because of which of them the link has ended
}

func newIWARPLink(t *IWARP) (l *iwarpLink, err error) {
	most := t.receives()
	l = &iwarpLink{t: t, room: make(chan struct{}, 1), headers: make([]byte, sendSlots*headerLen)}
	l.ctx, l.stop = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, l.release())
		}
	}()
	if l.cq, err = t.Device.CreateCQ(rnic.CQAttr{Entries: most + sendSlots}); err != nil {
		return l, err
	}
	l.qp, err = t.pd.CreateQP(rnic.QPAttr{
		SendCQ: l.cq, RecvCQ: l.cq, MaxSendWR: sendSlots, MaxRecvWR: most, MaxSGE: MaxLocal, SplitReads: true, RecvWait: receiveWait,
	})
	if err != nil {
		return l, err
	}
	if l.mr, err = t.pd.Register(l.headers, 0); err != nil {
		return l, err
	}
	// The receives are there before the peer can send.
	l.in = receives{l: l}
	return l, l.in.add(t.first())
}

// release gives back what the link has.
func (l *iwarpLink) release() error {
	l.stop()
	var errs []error
	if l.qp != nil {
		l.qp.Abort()
		errs = append(errs, l.qp.Close())
	}
	if l.mr != nil {
		errs = append(errs, l.mr.Close())
	}
	errs = append(errs, l.in.close())
	if l.cq != nil {
		errs = append(errs, l.cq.Close())
	}
	for i, b := range l.held {
		if b != nil {
			b.leave()
			l.held[i] = nil
		}
	}
	return errors.Join(errs...)
}

func (l *iwarpLink) params() machine.Params { return l.told }

func (l *iwarpLink) attach(n *Node, p *machine.Path, id machine.Link) {
	l.n, l.path, l.id = n, p, id
	l.patience = time.AfterFunc(n.cfg.OperationTimeout, l.overdue)
	l.patience.Stop()
}

func (l *iwarpLink) replaced() { l.linger.Store(true) }

func (l *iwarpLink) abort() { l.stop() }

func (l *iwarpLink) resume() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}

// flush posts what there is to send. If somebody posts already, that one looks again.
func (l *iwarpLink) flush() {
	l.dirty.Store(true)
	for l.dirty.Load() && l.tx.TryLock() {
		l.dirty.Store(false)
		l.transmit()
		l.tx.Unlock()
	}
}

// transmit posts Sends until there is nothing left, or no slot is free.
func (l *iwarpLink) transmit() {
	for !l.dead && l.fill() {
		if err := l.qp.PostSendAll(l.wrs...); err != nil {
			l.dead = true
			l.stop() // the completions say why
		}
	}
}

// fill takes segments from the machine, as far as there is room in the send queue.
func (l *iwarpLink) fill() bool {
	if l.wrs == nil {
		l.wrs, l.sges = make([]rnic.SendWR, 0, atOnce), make([]rnic.SGE, 2*atOnce)
	}
	l.wrs = l.wrs[:0]
	l.n.mu.Lock()
	now := l.n.now()
	var seg machine.Segment
	for l.head-int(l.done.Load()) < sendSlots && len(l.wrs) < atOnce && l.path.Pull(now, l.id, &seg) {
		if seg.Op != nil {
			l.operate(seg.Op)
			continue
		}
		if err := l.send(&seg); err != nil {
			l.dead = true
			l.stop()
			l.n.cfg.Logger.Warn("rds: iwarp: no memory", "error", err)
			break
		}
	}
	l.n.unlock()
	return len(l.wrs) > 0
}

// send makes the request of a segment. Its data are sent from where they lie.
func (l *iwarpLink) send(seg *machine.Segment) error {
	slot := l.head % sendSlots
	sges := l.sges[2*len(l.wrs):][:1:2]
	seg.Header.Encode((*[wire.HeaderLen]byte)(l.headers[slot*headerLen:]), true)
	sges[0] = l.mr.SGE(slot*headerLen, wire.HeaderLen)
	b, at := (*buffer)(nil), 0
	if own, ok := seg.Memory.(*buffer); ok {
		b, at = own, cap(own.data)-cap(seg.Data)
	}
	n := len(seg.Data)
	if b == nil && n > 0 {
		var err error
		if b, err = l.t.memory(n); err != nil {
			return err
		}
		b.Use()
		copy(b.data, seg.Data)
	}
	l.held[slot] = b
	if n > 0 {
		sges = append(sges, b.mr.SGE(b.at+at, n))
	}
	l.head++
	wr := rnic.SendWR{ID: uint64(l.head), Op: rnic.OpSend, SGL: sges}
	if l.head%signalEvery != 0 && (!seg.Last || seg.Header.Len <= wire.FragmentLen) { // long messages don't wait for others to be given up
		wr.Flags |= rnic.FlagUnsignaled
	}
	if seg.Last {
		wr.Flags |= rnic.FlagSolicited
	}
	l.wrs = append(l.wrs, wr)
	return nil
}

// sent notes that all requests up to one are done.
func (l *iwarpLink) sent(last int) {
	for i := int(l.done.Load()); i < last; i++ {
		if b := l.held[i%sendSlots]; b != nil {
			b.leave()
			l.held[i%sendSlots] = nil
		}
	}
	l.done.Store(int64(last))
}

// serve takes completions until the link ends.
func (l *iwarpLink) serve() error {
	err := l.completions()
	l.tx.Lock()
	l.dead = true
	l.tx.Unlock()
	l.blame(err)
	l.abandon()
	return errors.Join(err, l.release())
}

// Errors that the peer need not have caused by breaking a rule, and those that rules of RDS
// explain (RFC 5040 §4.8, RFC 5041 §7.2, RFC 5044 §8).
const (
	noBuffer       rdmap.TermCode = 0x1202
	tooLong        rdmap.TermCode = 0x1205
	connectionLost rdmap.TermCode = 0x2001
)

// blame tells the machine if the connection has ended since the peer has broken a rule of
// iWARP.
func (l *iwarpLink) blame(err error) {
	var e *rdmap.Error
	if !errors.As(err, &e) || e.Code.LocalCatastrophic() {
		return
	}
	rule := machine.RuleTransport
	switch e.Code {
	case connectionLost, rdmap.CodeStreamCatastrophic, rdmap.CodeGlobalCatastrophic:
		return
	case noBuffer:
		if l.told.Granted == 0 || l.told.Credit == 0 {
			return // without flow control, that happens
		}
		rule = machine.RuleCredit
	case tooLong:
		rule = machine.RuleLength
	default:
	}
	l.n.mu.Lock()
	l.path.Broken(l.n.now(), l.id, rule, err)
	l.n.unlock()
}

func (l *iwarpLink) completions() error {
	var wcs [64]rnic.WC
	for {
		n, err := l.cq.Wait(l.ctx, wcs[:])
		if err != nil {
			if cause := l.qp.Err(); cause != nil {
				return cause
			}
			return errLinkGone
		}
		sent := false
		var failed *rnic.WC
		for i := range wcs[:n] {
			wc := &wcs[i]
			l.operated(wc)
			switch {
			case wc.Status != rnic.StatusSuccess && failed == nil:
				failed = wc
			case wc.Status == rnic.StatusSuccess && wc.ID&recvID == 0:
				l.sent(int(wc.ID &^ opID))
				sent = true
			}
		}
		if err := l.in.take(wcs[:n]); err != nil { // also what came before a failure: it may acknowledge Writes
			return err
		}
		if failed != nil {
			if cause := l.qp.Err(); failed.Status == rnic.StatusFlushed && cause != nil {
				return cause
			}
			return failed.Err()
		}
		if sent {
			l.flush()
		}
	}
}
