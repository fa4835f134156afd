package rnic

import (
	"fmt"
	"sync"

	"urnic/pd"
	"urnic/stag"
)

// SRQAttr has the attributes of a shared receive queue.
type SRQAttr struct {
	MaxWR  int // receives; 0 stands for DefaultWR
	MaxSGE int // entries of an SGL; 0 stands for DefaultSGE
	// Limit arms the limit event, which is reported once, when fewer receives
	// than this are left. 0 arms nothing.
	Limit int
	// PerQP is how many receives of one stream may be in use: their messages
	// have arrived, and their completions are not polled. A stream that needs
	// more is ended, with EventSRQShare, as its peer uses more than its fair
	// share (RFC 5040 §8.1.2 rule 8). 0 stands for no limit.
	PerQP int
}

// An SRQ is a shared receive queue, from which many queue pairs take their
// receives. All of its methods are safe for concurrent use.
type SRQ struct {
	pd   *PD
	num  uint32
	attr SRQAttr // MaxWR under mu

	mu      sync.Mutex
	queue   recvRing
	lease   stag.Lease // of the SGLs that are checked
	limit   int
	users   int
	closed  bool
	waiting map[signal]struct{} // of the links whose messages wait for a receive now

	closing sync.Mutex // held by Close
}

// CreateSRQ returns a new shared receive queue. It returns an *OpError if an
// attribute is out of range or exceeds a quota.
func (p *PD) CreateSRQ(attr SRQAttr) (*SRQ, error) {
	const op = "create SRQ"
	if !p.made() {
		return nil, notMade(op, "PD")
	}
	c := &p.dev.cfg
	if attr.MaxWR == 0 {
		attr.MaxWR = min(DefaultWR, c.MaxWR)
	}
	if attr.MaxSGE == 0 {
		attr.MaxSGE = min(DefaultSGE, c.MaxSGE)
	}
	switch {
	case attr.MaxWR < 1 || attr.MaxWR > c.MaxWR:
		return nil, p.fail(op, fmt.Errorf("MaxWR %d: say 1 to %d", attr.MaxWR, c.MaxWR))
	case attr.MaxSGE < 1 || attr.MaxSGE > c.MaxSGE:
		return nil, p.fail(op, fmt.Errorf("MaxSGE %d: say 1 to %d", attr.MaxSGE, c.MaxSGE))
	case attr.Limit < 0 || attr.Limit > attr.MaxWR:
		return nil, p.fail(op, fmt.Errorf("limit %d: say 0 to MaxWR, %d", attr.Limit, attr.MaxWR))
	case attr.PerQP < 0:
		return nil, p.fail(op, fmt.Errorf("PerQP %d is negative", attr.PerQP))
	}
	if err := p.dev.begin(); err != nil {
		return nil, p.fail(op, err)
	}
	defer p.dev.end()
	if err := p.domain.Reserve(pd.SharedQueues, 1); err != nil {
		return nil, p.fail(op, err)
	}
	if err := p.domain.Reserve(pd.RecvWRs, uint64(attr.MaxWR)); err != nil {
		p.domain.Release(pd.SharedQueues, 1)
		return nil, p.fail(op, err)
	}
	s := &SRQ{pd: p, num: p.dev.lastNum.Add(1), attr: attr, limit: attr.Limit}
	s.queue.Init(attr.MaxWR)
	s.queue.Follow(orStrict(nil, p.dev.cfg.policy))
	p.dev.put(p.dev.srqs, s)
	return s, nil
}

func (s *SRQ) release() {
	s.pd.domain.Release(pd.RecvWRs, uint64(s.attr.MaxWR))
	s.pd.domain.Release(pd.SharedQueues, 1)
}

// made reports whether CreateSRQ has made the queue.
func (s *SRQ) made() bool { return s != nil && s.pd != nil }

// Num returns the number of the queue within its device.
func (s *SRQ) Num() uint32 {
	if !s.made() {
		return 0
	}
	return s.num
}

// Attr returns the attributes with which the queue was created, defaults filled
// in, and with the MaxWR of the last Resize. Its Limit is the one that is armed
// now: 0 after the event.
func (s *SRQ) Attr() SRQAttr {
	if !s.made() {
		return SRQAttr{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attr
	a.Limit = s.limit
	return a
}

// Resize changes how many receives the queue can hold. If it holds more now, the
// armed limit is higher, or a quota is used up, Resize returns an *OpError and the
// queue is unchanged.
func (s *SRQ) Resize(maxWR int) error {
	const op = "resize"
	if !s.made() {
		return notMade(op, "SRQ")
	}
	if most := s.pd.dev.cfg.MaxWR; maxWR < 1 || maxWR > most {
		return s.fail(op, fmt.Errorf("MaxWR %d: say 1 to %d", maxWR, most))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.attr.MaxWR
	switch {
	case s.closed:
		return s.fail(op, ErrClosed)
	case maxWR < s.queue.Len():
		return s.fail(op, fmt.Errorf("MaxWR %d, but %d receives are in the queue", maxWR, s.queue.Len()))
	case maxWR < s.limit:
		return s.fail(op, fmt.Errorf("MaxWR %d, but the limit event is armed for %d: arm it lower", maxWR, s.limit))
	case maxWR > old:
		if err := s.pd.domain.Reserve(pd.RecvWRs, uint64(maxWR-old)); err != nil {
			return s.fail(op, err)
		}
	default:
		s.pd.domain.Release(pd.RecvWRs, uint64(old-maxWR))
	}
	s.attr.MaxWR = maxWR
	s.queue.SetLimit(maxWR)
	return nil
}

// Len returns how many receives are posted.
func (s *SRQ) Len() int {
	if !s.made() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

func (s *SRQ) fail(op string, err error) error {
	return &OpError{Op: op, Object: fmt.Sprintf("SRQ %d", s.num), Err: err}
}

// PostRecv posts receives. It returns an *OpError that wraps a *WRError for the
// first one that it refuses; those before it are posted.
func (s *SRQ) PostRecv(wrs ...RecvWR) error {
	if !s.made() {
		return notMade("post receive", "SRQ")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.fail("post receive", ErrClosed)
	}
	defer s.notifyPosted()
	defer s.lease.End()
	scope := stag.Scope{Domain: s.pd.domain}
	for i := range wrs {
		if err := s.queue.postFor(&wrs[i], &s.lease, &s.pd.dev.memory, scope, s.attr.MaxSGE); err != nil {
			return s.fail("post receive", &WRError{Index: i, ID: wrs[i].ID, Op: OpRecv, Err: err})
		}
	}
	return nil
}

// waits notes that the message of a link waits for a receive, so that the link is
// notified of one that is posted. waitsNoMore takes that back.
func (s *SRQ) waits(posted signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(map[signal]struct{})
	}
	s.waiting[posted] = struct{}{}
}

func (s *SRQ) waitsNoMore(posted signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, posted)
}

// notifyPosted wakes the links whose messages wait for a receive. The caller holds mu.
func (s *SRQ) notifyPosted() {
	for posted := range s.waiting {
		posted.raise()
	}
}

// limitDue reports once that fewer receives are left than the limit. The caller
// holds mu. It then calls tell without it.
func (s *SRQ) limitDue() bool {
	due := s.queue.Len() < s.limit
	if due {
		s.limit = 0
	}
	return due
}

// take removes the oldest receive, or returns nil. due says that the limit event is due,
// see tell.
func (s *SRQ) take() (w *recvWQE, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.Len() == 0 {
		return nil, false
	}
	return s.queue.take(), s.limitDue()
}

// sizeOf returns how many bytes the receive at index ahead has, 0 being the
// oldest one, or false if there is none.
func (s *SRQ) sizeOf(ahead int) (octets uint64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ahead >= s.queue.Len() {
		return 0, false
	}
	return s.queue.at(ahead).size, true
}

// putBack returns a receive of take for reuse, after it has completed.
func (s *SRQ) putBack(w *recvWQE) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.recycle(w)
}

// use counts a queue pair that takes its receives here; unuse uncounts it.
func (s *SRQ) use() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.users++
	return nil
}

func (s *SRQ) unuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
}

// Close releases the queue, with the receives in it, which don't complete. It
// returns an *OpError that wraps ErrBusy while queue pairs use the queue.
func (s *SRQ) Close() error {
	if !s.made() {
		return notMade("close", "SRQ")
	}
	s.closing.Lock()
	defer s.closing.Unlock()
	s.mu.Lock()
	switch {
	case s.closed:
		s.mu.Unlock()
		return nil
	case s.users > 0:
		s.mu.Unlock()
		return s.fail("close", fmt.Errorf("%w by queue pairs: close them first", ErrBusy))
	}
	s.closed = true
	s.mu.Unlock()
	s.release()
	s.pd.dev.remove(s.pd.dev.srqs, s)
	return nil
}
