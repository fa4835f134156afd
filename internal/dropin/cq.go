//go:build linux

package dropin

import (
	"sync"
	"sync/atomic"
	"syscall"

	"urnic/internal/door"
	"urnic/rnic"
)

// A completionQueue is a struct ibv_cq's.
type completionQueue struct {
	ctx     *rdmaContext
	handle  Handle
	cookie  uint64
	verbs   *rnic.CQ
	channel *channel // or nil

	// extra is how many completions more than the program wants the queue has room for: of
	// requests that are the library's. Under resizing.
	extra    int
	resizing sync.Mutex

	mu  sync.Mutex         // of whoever polls
	wcs [pollBatch]rnic.WC // where package rnic leaves completions

	polled      atomic.Uint64 // completions that the program has got
	connections atomic.Int32  // queue pairs that are connected by TCP, twice if it is for both queues
	datagrams   datagramWCs

	// withheld are completions that the program is not to see yet: see withholds.
	withheld []WC

	// Of a poll that is in progress: where completions go, and how many are there.
	out    []WC
	filled int
	// stash has completions for which there was no room in a poll. They come first in the
	// next one.
	stash []WC
	told  bool  // the queue has fired for them
	due   []*qp // whose stream is over: what they have not completed is to be
}

// pollBatch is how many completions are moved at a time.
const pollBatch = 32

// CQCreate makes a completion queue of at least *entries, and reports how many it
// has.
func (e *Engine) CQCreate(ctx Handle, entries *uint32, ch Handle, cookie uint64) (Handle, Errno) {
	c := e.contexts.get(ctx)
	if c == nil || entries == nil || *entries == 0 || *entries > rnic.MaxCQE {
		return 0, syscall.EINVAL
	}
	q := &completionQueue{ctx: c, cookie: cookie}
	attr := rnic.CQAttr{Entries: int(*entries)}
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
// reports how many it has.
func (e *Engine) CQResize(cq Handle, entries *uint32) Errno {
	q := e.cqs.get(cq)
	if q == nil || entries == nil || *entries == 0 || *entries > rnic.MaxCQE {
		return syscall.EINVAL
	}
	q.resizing.Lock()
	defer q.resizing.Unlock()
	if n := q.datagrams.n.Load(); int64(*entries) < int64(n) {
		return e.refuse(syscall.EINVAL, "resize CQ: %d entries for %d completions", *entries, n)
	}
	if err := q.verbs.Resize(min(int(*entries)+q.extra, rnic.MaxCQE)); err != nil {
		return e.fail(err)
	}
	*entries = max(*entries, uint32(q.verbs.Entries()-q.extra))
	return ok
}

// enlarge makes room for n completions that the program does not know of.
func (q *completionQueue) enlarge(n int) error {
	if n == 0 {
		return nil
	}
	q.resizing.Lock()
	defer q.resizing.Unlock()
	if err := q.verbs.Resize(min(q.verbs.Entries()+n, rnic.MaxCQE)); err != nil {
		return err
	}
	q.extra += n
	return nil
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
	if bad == ok && (q.datagrams.arm(solicitedOnly) || q.isDueAtArming(e, solicitedOnly)) {
		door.Fire(q.verbs)
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
