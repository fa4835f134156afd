package rnic

import (
	"time"

	"urnic/rnic/internal/life"
)

// happen passes an event to the life and carries out the effects, unless the queue pair
// has already given the link up. It may be called from anywhere, with no lock held.
func (l *link) happen(event func(*life.Machine) life.Effects) {
	q := l.qp
	q.mu.Lock()
	if q.link != l {
		q.mu.Unlock()
		return
	}
	fx := event(q.life)
	l.settle(fx)
	q.mu.Unlock()
	l.carryOut(fx)
}

// settle carries out the effects of an event that need the queue pair's mu.
func (l *link) settle(fx life.Effects) {
	l.qp.complete()
	l.note()
	if fx.Quiet {
		close(l.quiet)
	}
	if fx.Arm {
		l.timer = time.AfterFunc(l.qp.pd.dev.cfg.CloseTimeout, func() {
			l.happen(func(m *life.Machine) life.Effects { return m.Expired(errNoDeadline) })
		})
	}
}

// note notes which events the life wants, where the goroutines that report them
// can see it.
func (l *link) note() {
	m := l.qp.life
	watches := watchNothing
	if m.Watches() {
		watches = watchFirst
		if m.State() == life.Closing {
			watches = watchAll
		}
	}
	if l.watches.Load() != watches {
		l.watches.Store(watches)
	}
	if ending := m.Ending(); l.ending.Load() != ending {
		l.ending.Store(ending)
	}
}

// carryOut carries out the effects of an event that need no lock.
func (l *link) carryOut(fx life.Effects) {
	if n := fx.Tell; n.Event != 0 {
		l.qp.pd.dev.report(Event{Type: EventType(n.Event), QP: l.qp, Err: n.Err, Terminate: n.Terminate})
	}
	if fx.Terminate != nil {
		l.rdmap.Fail(fx.Terminate)
	}
	if fx.Abort {
		_ = l.conn.Abort() // the link ends, whatever it says
	}
	if fx.End {
		l.driver.End()
		l.posted.raise()
	}
	if fx.Transmit {
		l.driver.Kick()
	}
}

// abort resets the connection, so that the receiver ends the link.
func (l *link) abort(why error) {
	l.happen(func(m *life.Machine) life.Effects { return m.Abort(why, 0) })
}

// lose resets a connection that is of no more use.
func (l *link) lose(why error) {
	l.happen(func(m *life.Machine) life.Effects { return m.Abort(why, life.Lost) })
}
