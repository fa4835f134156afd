package rnic

import "urnic/rnic/internal/life"

// end ends the link, in the receiver's goroutine, by the course that the life has chosen. Closing
// the connection earlier could destroy a Terminate that is still in transit to the peer (RFC 5040
// §6.2.1). The life bounds the time.
func (l *link) end(course life.Course) {
	orderly := false
	switch course {
	case life.Linger:
		<-l.quiet
		err := l.rdmap.Discard() // which a reset ends
		l.happen(func(m *life.Machine) life.Effects {
			orderly = m.Lingered(err)
			return life.Effects{}
		})
	case life.Settle:
		<-l.quiet
		l.happen(func(m *life.Machine) (fx life.Effects) {
			fx, orderly = m.Settled()
			return fx
		})
	case life.Finish, life.GoOn:
	}
	l.finish(orderly)
}

// finish closes the connection, makes sure that no goroutine transmits any more, and
// notifies the life, which flushes the queues. orderly says that both halves have ended.
// Then it must not reset the connection, which could destroy data in transit to the peer.
func (l *link) finish(orderly bool) {
	q := l.qp
	if orderly {
		_ = l.conn.Close() // the link ends, whatever it says
	} else {
		_ = l.conn.Abort()
	}
	l.driver.End()
	l.driver.Stop()
	l.conn.Free()
	for _, h := range l.held {
		q.pd.domain.Release(h.resource, h.n)
	}

	q.mu.Lock()
	if l.timer != nil {
		l.timer.Stop()
	}
	fx := q.life.Over(orderly) // under mu, so that nothing is posted behind what is flushed
	q.complete()
	q.flushRecv()
	graceful := q.life.State() == life.Idle
	if graceful {
		q.renew()
	} else {
		l.err = q.life.Why()
	}
	q.mu.Unlock()
	if graceful {
		l.carryOut(fx)
	} else {
		q.pd.dev.stats.lost.Add(1)
		q.pd.dev.log.Info("stream ended", "device", q.pd.dev.cfg.Name, "qp", q.num, "error", l.err)
	}
	close(l.done)
}
