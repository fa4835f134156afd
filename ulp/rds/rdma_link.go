package rds

import (
	"fmt"
	"time"

	"urnic/rnic"
	"urnic/ulp/rds/machine"
)

// opID marks the work request of an RDMA operation.
const opID = 1 << 62

// posted is an operation that an RNIC has.
type posted struct {
	o   *Operation
	m   *machine.Operation
	id  uint64
	mrs []*rnic.MR // of its buffers
}

// operate makes the work request of an operation. The node is locked.
func (l *iwarpLink) operate(m *machine.Operation) {
	o := m.Arg.(*Operation)
	if m.Answered && l.ord() == 0 {
		l.path.Done(l.n.now(), l.id, m, fmt.Errorf("%w: the peer takes no RDMA Reads", ErrNotSupported))
		return
	}
	p := &posted{o: o, m: m, id: opID | uint64(l.head+1)}
	wr := rnic.SendWR{ID: p.id, Op: o.op, Remote: o.remote, Atomic: o.atomic}
	access := rnic.Access(0)
	if o.op == rnic.OpRead {
		access = rnic.LocalWrite
	}
	for _, b := range o.local {
		if len(b) == 0 {
			continue
		}
		mr, err := l.t.pd.Register(b, access)
		if err != nil {
			p.release()
			l.path.Done(l.n.now(), l.id, m, err)
			return
		}
		p.mrs = append(p.mrs, mr)
		wr.SGL = append(wr.SGL, mr.SGE(0, len(b)))
	}
	l.head++
	l.wrs = append(l.wrs, wr)
	o.posted, o.link = true, l
	l.posted = append(l.posted, p)
	l.unsettled = append(l.unsettled, p)
	if m.Answered && l.unanswered == 0 {
		l.patience.Reset(l.n.cfg.OperationTimeout)
	}
	if m.Answered {
		l.unanswered++
	}
}

// ord returns how many Reads and atomics may be outstanding to the peer.
func (l *iwarpLink) ord() uint16 {
	params, _ := l.qp.Params()
	return params.ORD
}

// release gives back the registrations of buffers.
func (p *posted) release() {
	for _, mr := range p.mrs {
		_ = mr.Close() // it has no windows
	}
}

// operated takes a completion, if it is that of an operation.
func (l *iwarpLink) operated(wc *rnic.WC) {
	if wc.ID&(recvID|opID) != opID {
		return
	}
	l.n.mu.Lock()
	defer l.n.unlock()
	if len(l.posted) == 0 || l.posted[0].id != wc.ID { // completions come in the order of requests
		return
	}
	p := l.posted[0]
	l.posted = l.posted[1:]
	p.release()
	switch {
	case wc.Status == rnic.StatusSuccess:
		if p.o.isAtomic() {
			p.o.original = wc.Original
		}
		l.path.Done(l.n.now(), l.id, p.m, nil)
	case wc.Status != rnic.StatusFlushed:
		l.blamed = true
		err := wc.Err()
		if wc.Status == rnic.StatusRemoteTermination {
			r, _ := l.qp.Refusal()
			err = refusal(r, err)
		}
		l.path.Done(l.n.now(), l.id, p.m, err)
	}
	if p.m.Answered {
		if l.unanswered--; l.unanswered > 0 {
			l.patience.Reset(l.n.cfg.OperationTimeout)
		} else {
			l.patience.Stop()
		}
	}
	p.o.posted = false
	p.o.finish()
}

// overdue ends the link because of the oldest operation that the peer has not answered.
func (l *iwarpLink) overdue() {
	l.n.mu.Lock()
	defer l.n.unlock()
	for _, p := range l.posted {
		if p.m.Answered {
			l.path.Done(l.n.now(), l.id, p.m, ErrUnanswered)
			l.stop()
			return
		}
	}
}

// settled forgets the oldest operations of which it is known how they end. The node is
// locked.
func (l *iwarpLink) settled() {
	for len(l.unsettled) > 0 && l.unsettled[0].o.settled {
		l.unsettled[0] = nil
		l.unsettled = l.unsettled[1:]
	}
}

// lingering bounds how long a connection is kept for what is said last on it.
const lingering = 100 * time.Millisecond

// partWords waits until a Terminate is sent, which a reset could overtake; and until the peer's is
// read, if the peer has ended the connection, and operations that can't be repeated depend on what
// it has said.
func (l *iwarpLink) partWords() {
	l.n.mu.Lock()
	waits := l.qp.State() == rnic.Terminating
	for _, p := range l.unsettled {
		waits = waits || l.linger.Load() && p.m.Doomed()
	}
	l.n.mu.Unlock()
	if !waits {
		return
	}
	t := time.NewTimer(lingering)
	defer t.Stop()
	select {
	case <-l.qp.Done():
	case <-t.C:
	case <-l.n.ctx.Done():
	}
}

// abandon ends the queue pair, and takes the operations back that it has not completed. What
// has failed is reported; the machine repeats the rest, if it can.
func (l *iwarpLink) abandon() {
	l.partWords()
	l.qp.Abort()
	var wcs [64]rnic.WC
	for n := l.cq.Poll(wcs[:]); n > 0; n = l.cq.Poll(wcs[:]) {
		for i := range wcs[:n] {
			l.operated(&wcs[i])
		}
	}
	l.n.mu.Lock()
	defer l.n.unlock()
	l.patience.Stop()
	for _, p := range l.posted { // which could not be posted
		p.release()
		p.o.posted = false
		p.o.finish()
	}
	l.posted = nil
	l.blameOperation()
	l.unsettled = nil
}
