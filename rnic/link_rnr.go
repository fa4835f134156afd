package rnic

import "time"

// mustWait reports whether a message has to wait for a receive, see policy.Policy. If
// so, DDP leaves it with the LLP, and TCP slows the peer down.
func (l *link) mustWait() bool {
	wait, first := l.rnr.Waits(l.ready(), time.Now())
	if first {
		d := l.qp.pd.dev
		d.log.Warn("a message waits for a receive: most RNICs would end the stream (RFC 5041 §7.1)", "device", d.cfg.Name, "qp", l.qp.num)
	}
	return wait
}

// ready reports whether the message in turn has a receive, or need not wait for one:
// when the link ends, which no message may delay, or when it has used its share of the
// SRQ. ready removes the receive from the SRQ, as another link could do so before the
// message is placed.
func (l *link) ready() bool {
	q := l.qp
	switch {
	case l.driver.Ending():
		return true
	case q.srq == nil:
		q.rq.mu.Lock()
		defer q.rq.mu.Unlock()
		return q.rq.ring.Len() > 0
	}
	return len(q.rq.taken) > 0 || q.shareLeft() < 1 || q.takeShared() != nil
}

// awaitReceive waits, in the goroutine, until the message that waits for a receive may
// continue.
func (l *link) awaitReceive() {
	if srq := l.qp.srq; srq != nil {
		srq.waits(l.posted)
		defer srq.waitsNoMore(l.posted)
	}
	if l.ready() { // an SRQ that got a receive before waits did not notify the link
		return
	}
	t := time.NewTimer(l.rnr.Left(time.Now()))
	defer t.Stop()
	select {
	case <-l.posted:
	case <-t.C:
	}
}
