//go:build linux

package dropin

import (
	"slices"
	"time"

	"urnic/internal/door"
)

// On InfiniBand, nothing tells a queue pair that its peer has gone: its receives wait
// on, and what it sends fails once it has been sent often enough in vain, which takes
// half a second with the time-outs that most programs set. Those that are through with
// their work count on both, such as ibv_srq_pingpong: the side that is done first
// destroys its queue pairs, while the other may still send by one of them, which
// nobody wants any more, and takes by others what it needs to be done.
//
// So completions of a queue pair that was connected without rdma_cm, and whose peer
// has gone, are withheld from the program: those of Sends for as long, and those of
// receives until then.

// timeToFail returns how long InfiniBand takes to find that a peer is not there: a
// time-out of 4.096 µs * 2^timeout, for each of retries+1 tries. Timeout 0 stands for
// no bound. The times bound it on both sides.
func (t *times) timeToFail(timeout, retries uint32) time.Duration {
	if timeout == 0 {
		return t.goneMost
	}
	return min(max(4096*time.Nanosecond<<min(timeout, 31)*time.Duration(min(retries, 7)+1), t.goneLeast), t.goneMost)
}

// isReceive reports whether a completion is that of a receive.
func isReceive(wc *WC) bool { return wc.Opcode&wcRecv != 0 }

// isOf reports whether some completions are of a queue pair.
func isOf(wcs []WC, qpn uint32) bool {
	return slices.ContainsFunc(wcs, func(wc WC) bool { return wc.QPN == qpn })
}

// withholds keeps a flushed completion back if it is not for the program yet, or comes
// behind such a one, and reports whether it does. The caller holds mu.
func (c *completionQueue) withholds(q *qp, wc *WC, unexplained bool) bool {
	behind := isOf(c.withheld, wc.QPN)
	if !behind && (!unexplained || !q.isLeftAlone()) {
		if !isReceive(wc) && !q.missed.Swap(true) && q.met.Load() {
			q.engine.wg.Go(q.fire) // the caller holds a completion queue
		}
		return false
	}
	if isReceive(wc) {
		c.withheld = append(c.withheld, *wc)
		return true
	}
	at := slices.IndexFunc(c.withheld, func(w WC) bool { return isReceive(&w) }) // a Send is what fails, then receives are flushed
	if at < 0 {
		at = len(c.withheld)
	}
	c.withheld = slices.Insert(c.withheld, at, *wc)
	q.miss()
	return true
}

// release moves completions that are not withheld any more to out, and returns how
// many. The caller holds mu.
func (c *completionQueue) release(e *Engine, out []WC) (n int) {
	if len(c.withheld) == 0 {
		return 0
	}
	left := c.withheld[:0]
	for _, wc := range c.withheld {
		switch of := e.numbers.get(wc.QPN); {
		case of == nil: // it is no more
		case n == len(out) || of.isLeftAlone() || isOf(left, wc.QPN): // it may have missed its peer since the one before
			left = append(left, wc)
		default:
			of.blame(&wc, true)
			out[n] = wc
			n++
		}
	}
	c.withheld = left
	return n
}

// isDueAtArming reports whether a queue that is armed fires for what a poll has that package
// rnic does not know of. As policy.FireForQueued has it, it fires once for completions that
// nobody has polled.
func (c *completionQueue) isDueAtArming(e *Engine, solicitedOnly bool) bool {
	c.mu.Lock()
	due := !c.told && slices.ContainsFunc(c.stash, func(wc WC) bool { return !solicitedOnly || wc.Status != wcSuccess })
	c.told = c.told || due
	fresh := len(c.stash) == 0
	c.mu.Unlock()
	return due || fresh && c.isDue(e)
}

// isDue reports whether a poll has something that package rnic does not know of.
func (c *completionQueue) isDue(e *Engine) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stash) > 0 || len(c.due) > 0 || slices.ContainsFunc(c.withheld, func(wc WC) bool {
		of := e.numbers.get(wc.QPN)
		return of != nil && !of.isLeftAlone()
	})
}

// forget drops the completions of a queue pair that are kept here.
func (c *completionQueue) forget(num uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withheld = slices.DeleteFunc(c.withheld, func(wc WC) bool { return wc.QPN == num })
	c.stash = slices.DeleteFunc(c.stash, func(wc WC) bool { return wc.QPN == num })
	c.due = slices.DeleteFunc(c.due, func(q *qp) bool { return q.num == num })
}

// isLeftAlone reports whether a queue pair that was connected without rdma_cm has not
// missed its peer so far, and its program has not ended it.
func (q *qp) isLeftAlone() bool { return q.met.Load() && !q.missed.Load() }

// A missing is one time for which a queue pair does not miss its peer yet.
type missing struct{ timer *time.Timer }

// miss has the queue pair miss its peer after the time that takes, from the first
// Send to a peer that has gone. The caller holds the mu of a completion queue.
func (q *qp) miss() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.missing == nil && q.isLeftAlone() {
		wait := q.engine.times.timeToFail(q.attr.Timeout, q.attr.RetryCount)
		if q.neverMet.Load() { // that has taken its time
			wait = 0
		}
		m := new(missing) // which the function knows before it runs, as it may at once
		m.timer = time.AfterFunc(wait, func() { q.hasMissed(m) })
		q.missing = m
	}
}

// hasMissed ends what miss has begun, and tells programs that wait.
func (q *qp) hasMissed(by *missing) {
	q.mu.Lock()
	is := q.missing == by
	if is {
		q.missed.Store(true)
	}
	q.mu.Unlock()
	if is {
		q.fire()
	}
}

// stopMissing ends what miss has begun, because there is no peer to be missed.
func (q *qp) stopMissing() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.missing != nil {
		q.missing.timer.Stop()
		q.missing = nil
	}
}

// fire fires the queues where requests of the queue pair complete, if they have
// something that is not withheld any more. The caller holds no lock.
func (q *qp) fire() {
	for _, h := range []Handle{q.init.SendCQ, q.init.RecvCQ} {
		if c := q.engine.cqs.get(h); c != nil && c.isDue(q.engine) {
			door.Fire(c.verbs)
		}
	}
}
