//go:build linux

package dropin

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"urnic/internal/dropin/datagram"
	"urnic/internal/dropin/datagram/carrier"
	"urnic/rnic"
)

// A sharing says which queue pairs take their receives from a shared receive queue. Those with a reliable connection
// take them from package rnic, which does not know the others. So the first queue pair decides.
type sharing uint32

const (
	sharedByNone        sharing = iota // not decided: receives are kept here
	sharedByConnected                  // receives are in package rnic
	sharedByUnconnected                // receives are kept here, for UD and UC
)

// A keptQueue holds the receives of a shared receive queue that package rnic does not have.
type keptQueue struct {
	by atomic.Uint32 // a sharing; written under mu

	mu      sync.Mutex // of what follows; taken after recvMu of a queue pair
	recvs   []pendingRecv
	first   int // of recvs
	n       int
	limit   int // 0: not armed
	users   int
	waiting []*datagramQP // they have a datagram that asked for an Ack when no receive was there
}

// isConnected reports whether the receives are in package rnic.
func (s *sharedQueue) isConnected() bool { return sharing(s.kept.by.Load()) == sharedByConnected }

// share counts a queue pair that takes its receives from s, of the type UD or UC if unconnected is set.
func (s *sharedQueue) share(unconnected bool) Errno {
	k := &s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	by := sharing(k.by.Load())
	switch {
	case unconnected && by == sharedByConnected, !unconnected && by == sharedByUnconnected && k.users > 0:
		return s.pd.ctx.engine.refuse(syscall.EOPNOTSUPP, "create QP: a shared receive queue is for queue pairs of IBV_QPT_RC, or for those of IBV_QPT_UD and IBV_QPT_UC, not for both: create one for each")
	case unconnected:
		k.by.Store(uint32(sharedByUnconnected))
		k.users++
	case by != sharedByConnected:
		return s.handOver()
	}
	return ok
}

// unshare takes back what share did for a queue pair of the type UD or UC.
func (s *sharedQueue) unshare(d *datagramQP) {
	k := &s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users--
	k.waiting = slices.DeleteFunc(k.waiting, func(w *datagramQP) bool { return w == d })
}

// handOver gives the receives to package rnic. The caller holds the mu of what is kept.
func (s *sharedQueue) handOver() Errno {
	k := &s.kept
	for ; k.n > 0; k.n-- {
		r := &k.recvs[k.first]
		sgl, err := sglOf(unsafe.SliceData(r.sgl), int32(len(r.sgl)))
		if err != nil {
			return s.pd.ctx.engine.fail(err)
		}
		if err := s.verbs.PostRecv(rnic.RecvWR{ID: r.id, SGL: sgl}); err != nil {
			return s.pd.ctx.engine.fail(err)
		}
		k.first = (k.first + 1) % len(k.recvs)
	}
	if k.limit > 0 {
		if err := s.verbs.ArmLimit(k.limit); err != nil {
			return s.pd.ctx.engine.fail(err)
		}
	}
	k.by.Store(uint32(sharedByConnected))
	k.recvs, k.waiting, k.limit = nil, nil, 0
	return ok
}

// postKept posts a list of receives, unless they belong in package rnic: then it reports false.
func (s *sharedQueue) postKept(wr *RecvWR, bad **RecvWR) (number Errno, kept bool) {
	if s.isConnected() {
		return ok, false
	}
	k := &s.kept
	k.mu.Lock()
	if s.isConnected() {
		k.mu.Unlock()
		return ok, false
	}
	attr := s.verbs.Attr()
	for ; wr != nil; wr = wr.Next {
		if number = k.add(wr, &attr); number != ok {
			*bad = wr
			break
		}
		s.pd.ctx.engine.replaceNullOf(k.recvs[(k.first+k.n-1)%len(k.recvs)].sgl, true)
	}
	var waiting []*datagramQP
	if k.n > 0 {
		waiting, k.waiting = k.waiting, nil
	}
	k.mu.Unlock()
	for _, d := range waiting {
		d.owe()
	}
	return number, true
}

// add puts a receive into the queue.
func (k *keptQueue) add(wr *RecvWR, attr *rnic.SRQAttr) Errno {
	if _, err := sglOf(wr.SGL, wr.NumSGE); err != nil || int(wr.NumSGE) > attr.MaxSGE {
		return syscall.EINVAL
	}
	if k.n >= attr.MaxWR {
		return syscall.ENOMEM
	}
	if k.n == len(k.recvs) {
		k.grow()
	}
	r := &k.recvs[(k.first+k.n)%len(k.recvs)]
	r.id, r.sgl = wr.ID, append(r.sgl[:0], sgesOf(wr.SGL, wr.NumSGE)...)
	k.n++
	return ok
}

func (k *keptQueue) grow() {
	recvs := make([]pendingRecv, max(16, 2*len(k.recvs)))
	n := copy(recvs, k.recvs[k.first:])
	copy(recvs[n:], k.recvs[:k.first])
	k.recvs, k.first = recvs, 0
}

// take moves the oldest receive to r, or reports that there is none.
func (s *sharedQueue) take(r *pendingRecv) bool {
	k := &s.kept
	k.mu.Lock()
	if k.n == 0 {
		k.mu.Unlock()
		return false
	}
	oldest := &k.recvs[k.first]
	*r, *oldest = *oldest, *r // the SGL of the other is for use again
	k.first = (k.first + 1) % len(k.recvs)
	k.n--
	due := k.limitDue()
	k.mu.Unlock()
	s.tellLimit(due)
	return true
}

// left returns how many receives there are. If there are none, d is told of the next ones.
func (s *sharedQueue) left(d *datagramQP) int {
	k := &s.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.n == 0 && !slices.Contains(k.waiting, d) {
		k.waiting = append(k.waiting, d)
	}
	return k.n
}

// limitDue reports once that fewer receives are left than the limit. The caller holds mu.
func (k *keptQueue) limitDue() bool {
	due := k.n < k.limit
	if due {
		k.limit = 0
	}
	return due
}

// modifyKept is SRQModify for a queue whose receives are kept here; most is how many it is to hold. It reports false for others.
func (s *sharedQueue) modifyKept(attr *SRQAttr, mask uint32, most int) (number Errno, kept bool) {
	k := &s.kept
	k.mu.Lock()
	if s.isConnected() {
		k.mu.Unlock()
		return ok, false
	}
	due := false
	switch {
	case k.n > most || mask&srqLimit == 0 && k.limit > most:
		number = syscall.EINVAL
	case mask&srqMaxWR != 0:
		number = s.pd.ctx.engine.fail(s.verbs.Resize(most))
	}
	if number == ok && mask&srqLimit != 0 {
		k.limit = int(attr.Limit)
		due = k.limitDue()
	}
	k.mu.Unlock()
	s.tellLimit(due)
	return number, true
}

// tellLimit tells the program that few receives are left, if due says so.
func (s *sharedQueue) tellLimit(due bool) {
	if !due {
		return
	}
	e := s.pd.ctx.engine
	s.pd.ctx.tell(eventSRQLimit, s.cookie, func() bool { _, is := e.ofSRQ.Load(s.verbs); return is })
}

// owe sends the Acks that are due now that the shared receive queue has receives.
func (d *datagramQP) owe() {
	d.postMu.Lock()
	defer d.postMu.Unlock()
	d.recvMu.Lock()
	d.queue.Share(d.srq.left(d))
	d.due = append(d.due[:0], d.queue.Post(0)...)
	d.recvMu.Unlock()
	d.port.Owe(d.due)
}

// Asked is asked whether there is room for more.
func (d *datagramQP) Asked(by carrier.Peer, sequence uint32) uint32 {
	d.recvMu.Lock()
	defer d.recvMu.Unlock()
	if d.srq != nil {
		d.queue.Share(d.srq.left(d))
	}
	return d.queue.Asked(by, sequence)
}

// oldestRecv returns the receive for the message that has begun, or nil. It stays there until popRecv. The
// caller holds recvMu.
func (d *datagramQP) oldestRecv() *pendingRecv {
	switch {
	case d.srq == nil && d.pendingRecvs == 0:
		return nil
	case d.srq == nil:
		return &d.recvs[d.firstRcv]
	case d.pendingRecvs == 0 && !d.srq.take(&d.recvs[0]):
		return nil
	}
	d.pendingRecvs = 1
	return &d.recvs[0]
}

// takeRecv takes the receive for a message, or counts that there is none. The caller holds recvMu.
func (d *datagramQP) takeRecv() *pendingRecv {
	if d.oldestRecv() == nil {
		d.queue.Drop(datagram.NoReceive)
		return nil
	}
	d.queue.Take()
	return d.popRecv()
}
