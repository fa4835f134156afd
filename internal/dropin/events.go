//go:build linux

package dropin

import (
	"urnic/internal/door"
	"urnic/rnic"
)

func isCQEvent(t uint32) bool { return t == eventCQErr }

func isSRQEvent(t uint32) bool { return t == eventSRQLimit }

func isQPEvent(t uint32) bool { return !isCQEvent(t) && !isSRQEvent(t) }

// tell gives the program an asynchronous event of an object, if that still is: who
// destroys it makes sure of that before it calls forget.
func (c *rdmaContext) tell(typ uint32, cookie uint64, still func() bool) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if still() {
		c.async.push(Async{Type: typ, Cookie: cookie})
	}
}

// forget drops the events of an object that nobody has fetched.
func (c *rdmaContext) forget(cookie uint64, kind func(uint32) bool) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.async.take(func(a Async) bool { return a.Cookie == cookie && kind(a.Type) })
}

// dispatchEvents tells owners and programs what package rnic reports.
func (e *Engine) dispatchEvents() {
	for {
		event, err := e.device.WaitEvent(e.ctx)
		if err != nil {
			return
		}
		e.dispatch(&event)
	}
}

func (e *Engine) dispatch(event *rnic.Event) {
	switch {
	case event.CQ != nil:
		if v, known := e.ofCQ.Load(event.CQ); known {
			q := v.(*completionQueue)
			q.ctx.tell(eventCQErr, q.cookie, func() bool { return e.cqs.get(q.handle) == q })
		}
	case event.QP != nil:
		switch q := e.numbers.get(event.QP.Num()); {
		case q == nil || q.verbs != event.QP:
		case event.Type == door.EventSQDrained:
			q.drained()
		default:
			q.hear(event)
		}
	case event.SRQ != nil:
		if v, known := e.ofSRQ.Load(event.SRQ); known {
			s := v.(*sharedQueue)
			s.pd.ctx.tell(eventSRQLimit, s.cookie, func() bool { _, is := e.ofSRQ.Load(event.SRQ); return is })
		}
	}
}

// hear is told what has become of a queue pair's connection, which is the end of
// it. It tells the owner of the connection, then the program.
func (q *qp) hear(event *rnic.Event) {
	q.ending.Lock()
	defer q.ending.Unlock()
	if s := q.verbs.State(); s == rnic.RTS || s == rnic.Idle && q.verbs.Done() == nil {
		return // of a connection before a RESET
	}
	q.mu.Lock()
	if q.state.Load() != qpsReset {
		q.setState(qpsErr)
	}
	q.mu.Unlock()
	if event.Type == rnic.EventCloseComplete { // the queue pair is idle, and would keep what is posted
		q.closed.Store(true)
		q.verbs.Abort()
	}
	known := false
	if o := q.owner.Load(); o != nil {
		known = o.event(*event)
	}
	typ, tell := eventQPFatal, true
	switch event.Type {
	case rnic.EventCloseComplete:
		tell = false
	case rnic.EventLost, rnic.EventBadClose, rnic.EventBadLLPClose:
		tell = !known
	case rnic.EventIntegrity, rnic.EventRemoteOperation:
		typ = eventQPRequest
	case rnic.EventProtection:
		typ = eventQPAccess
	default:
	}
	if tell {
		q.tell(typ)
	}
	q.tellLast()
	q.over()
}

// tell gives the program an asynchronous event of the queue pair.
func (q *qp) tell(typ uint32) {
	q.ctx.tell(typ, q.cookie, func() bool { return q.engine.qps.get(q.handle) == q })
}

// tellLast tells the program once that the queue pair takes no receive from its SRQ
// any more.
func (q *qp) tellLast() {
	q.mu.Lock()
	due := q.init.SRQ != 0 && !q.last && q.state.Load() == qpsErr
	q.last = q.last || due
	q.mu.Unlock()
	if due {
		q.tell(eventLastWQE)
	}
}
