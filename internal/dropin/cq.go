//go:build linux

package dropin

import (
	"sync"
	"syscall"

	"urnic/rnic"
)

// A completionQueue is a struct ibv_cq's.
type completionQueue struct {
	ctx     *rdmaContext
	handle  Handle
	cookie  uint64
	verbs   *rnic.CQ
	channel *channel // or nil

	mu  sync.Mutex         // of who polls
	wcs [pollBatch]rnic.WC // where package rnic leaves completions

	// withheld are completions that the program is not to see yet: see withholds.
	withheld []WC
}

// pollBatch is how many completions are moved at a time.
const pollBatch = 32

// CQCreate makes a completion queue of at least *entries, and tells how many it
// has.
func (e *Engine) CQCreate(ctx Handle, entries *uint32, ch Handle, cookie uint64) (Handle, Errno) {
	c := e.contexts.get(ctx)
	if c == nil || entries == nil || *entries == 0 || *entries > rnic.MaxCQE {
		return 0, syscall.EINVAL
	}
	q := &completionQueue{ctx: c, cookie: cookie}
	// Programs know queues that fire for what is left in them when they are armed:
	// perftest polls once for each event. Others fetch one event for each arming.
	attr := rnic.CQAttr{Entries: int(*entries), FireQueued: true, TellEach: true}
	if ch != 0 {
		if q.channel = e.channels.get(ch); q.channel == nil || q.channel.ctx != c {
			return 0, syscall.EINVAL
		}
		attr.Channel = q.channel.verbs
		q.channel.users.Add(1)
	}
	verbs, err := e.device.CreateCQ(attr)
	if err == nil {
		q.verbs = verbs
		if q.handle = e.cqs.add(q); q.handle == 0 {
			_ = verbs.Close() // nobody has used it
			err = syscall.ENOMEM
		}
	}
	if err != nil {
		q.leaveChannel()
		return 0, e.fail(err)
	}
	e.ofCQ.Store(verbs, q)
	*entries = uint32(verbs.Entries())
	return q.handle, ok
}

func (q *completionQueue) leaveChannel() {
	if q.channel != nil {
		q.channel.users.Add(-1)
	}
}

// CQResize changes how many completions a queue holds to at least *entries, and
// tells how many it has.
func (e *Engine) CQResize(cq Handle, entries *uint32) Errno {
	q := e.cqs.get(cq)
	if q == nil || entries == nil || *entries == 0 || *entries > rnic.MaxCQE {
		return syscall.EINVAL
	}
	if err := q.verbs.Resize(int(*entries)); err != nil {
		return e.fail(err)
	}
	*entries = uint32(q.verbs.Entries())
	return ok
}

// CQArm makes a queue fire once at its channel, at the next completion, or the next
// that is solicited or in error.
func (e *Engine) CQArm(cq Handle, solicitedOnly bool) Errno {
	q := e.cqs.get(cq)
	if q == nil {
		return syscall.EINVAL
	}
	what := rnic.NextCompletion
	if solicitedOnly {
		what = rnic.NextSolicited
	}
	bad := e.fail(q.verbs.Arm(what))
	if bad == ok && q.isDue(e) {
		q.verbs.Fire()
	}
	return bad
}

// CQDestroy gives a completion queue up, unless a queue pair uses it.
func (e *Engine) CQDestroy(cq Handle) Errno {
	q := e.cqs.get(cq)
	if q == nil {
		return syscall.EINVAL
	}
	if err := q.verbs.Close(); err != nil {
		return e.fail(err)
	}
	if e.cqs.remove(cq) == nil {
		return syscall.EINVAL
	}
	e.ofCQ.Delete(q.verbs)
	q.leaveChannel()
	q.ctx.forget(q.cookie, isCQEvent)
	return ok
}
