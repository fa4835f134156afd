package rnic

import "time"

// A starving is what a link knows of messages that wait for a receive: see
// QPAttr.RecvWait.
type starving struct {
	until time.Time     // when a message that waits has waited long enough; the receiver's
	told  bool          // the log has been told of one; the receiver's
	food  chan struct{} // holds one token: a receive has been posted, or the link ends; nil if no message waits
}

// mayPlace is the gate of the link's connection: it holds a segment back that wants
// a receive while there is none.
func (l *link) mayPlace(segment []byte) bool {
	s := &l.starve
	if !l.rdmap.TakesReceive(segment) || l.fed() {
		s.until = time.Time{}
		return true
	}
	now := time.Now()
	if s.until.IsZero() {
		s.until = now.Add(l.qp.attr.RecvWait)
	}
	if !s.told {
		s.told = true
		l.qp.pd.dev.log.Warn("a message waits for a receive: most RNICs would end the stream (RFC 5041 §7.1)", "device", l.qp.pd.dev.cfg.Name, "qp", l.qp.num)
	}
	return !now.Before(s.until)
}

// fed reports whether the message in turn has a receive, or goes on without one: when
// the link ends, which no message is to hold up, or has had its share of the SRQ. It
// takes the receive off the SRQ, as another link could before the message is placed.
func (l *link) fed() bool {
	q := l.qp
	switch {
	case l.rx.ending.Load():
		return true
	case q.srq == nil:
		q.rq.mu.Lock()
		defer q.rq.mu.Unlock()
		return q.rq.ring.n > 0
	}
	return q.rq.taken != nil || q.shareLeft() < 1 || q.takeShared() != nil
}

// waitForReceive waits, in the goroutine, until the message that is held back may
// go on.
func (l *link) waitForReceive() {
	s := &l.starve
	if srq := l.qp.srq; srq != nil {
		srq.starves(l)
		defer srq.sated(l)
	}
	if l.fed() { // an SRQ that got a receive before starves did not feed the link
		return
	}
	t := time.NewTimer(time.Until(s.until))
	defer t.Stop()
	select {
	case <-s.food:
	case <-t.C:
	}
}

// feed has the goroutine look again if it waits for a receive, or when it next does.
// It may be called from anywhere.
func (l *link) feed() {
	select {
	case l.starve.food <- struct{}{}:
	default:
	}
}
