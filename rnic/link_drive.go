package rnic

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"urnic/mpa"
)

// Who receives. An RNIC works while its program does something else, so each link
// has a goroutine for it. But a program that waits for a completion, or polls for
// one, can do that work itself, and then need not be woken by another goroutine.
// It asks for the role, and keeps coming back for it; once it stays away, the
// goroutine goes on.
const (
	rxOwn    int32 = iota // the link's goroutine
	rxAsked               // it still, but it has been asked to let go
	rxFree                // nobody; the goroutine waits
	rxDriven              // somebody who waits or polls
)

// away is how long nobody drives a link before its goroutine goes on: longer than
// a program takes between two polls, shorter than a peer notices. One that keeps
// coming back is waited for longer, twice as long each time, up to longestAway: it is
// not gone, something else has its processor for a time slice, and the goroutine would
// be one more that wants it.
const (
	away        = 100 * time.Microsecond
	longestAway = 100 * away
)

// A receiving is the state of the receiver's role.
type receiving struct {
	role   atomic.Int32
	resume chan struct{} // the goroutine waits here while it lets go

	// Those who ask for the role, or give it back, use these.
	needed   atomic.Bool // the goroutine must go on: the driver is to stop
	ending   atomic.Bool // the link ends, which is the goroutine's affair
	uses     atomic.Uint64
	seen     atomic.Uint64 // of uses, by the watch
	watching atomic.Bool
	patience atomic.Int64 // how long the watch waits, in ns; 0 stands for away
	shy      atomic.Int32 // waits during which nobody asks
	polled   atomic.Bool  // the last driver polled, and did not wait
	posts    atomic.Bool  // and transmits now
	watch    *time.Timer

	// Those in the role use these.
	judged bool            // err, and what else came of receiving, is for the goroutine
	err    error           // of receiving
	bound  <-chan struct{} // of the context whose end ends the wait
	unbind func() bool     // if there is one
}

// receive is the goroutine: it takes segments until the stream ends, and ends the
// link then.
func (l *link) receive() {
	for {
		err := l.rdmap.Receive()
		if errors.Is(err, mpa.ErrHeld) {
			l.waitForReceive()
			continue
		}
		if errors.Is(err, mpa.ErrInterrupted) {
			l.letGo()
			err = l.rx.err // nil, unless a driver has found the end
		}
		l.rouse()
		if l.received(err) {
			return
		}
	}
}

// rouse gets transmitted what receiving has brought about.
func (l *link) rouse() {
	if l.woken.Load() {
		l.woken.Store(false)
		l.kick()
	}
}

// letGo leaves the role to those who have asked for it, and waits until it comes
// back.
func (l *link) letGo() {
	r := &l.rx
	if r.watch == nil {
		r.watch = time.AfterFunc(math.MaxInt64, l.look)
	}
	if !r.role.CompareAndSwap(rxAsked, rxFree) { // it is not asked for any more
		return
	}
	l.watchOver()
	l.offer()
	<-r.resume
	r.needed.Store(false)
	l.unpark()
}

// bind makes the end of a context end the wait of the driver. It lasts until there
// is another one, or the link ends: mostly, a program waits with the same again.
func (r *receiving) bind(ctx context.Context, conn *mpa.Conn) {
	done := ctx.Done()
	if done == r.bound {
		return
	}
	if r.unbind != nil {
		r.unbind()
	}
	r.bound, r.unbind = done, nil
	if done != nil {
		r.unbind = context.AfterFunc(ctx, func() {
			if r.role.Load() == rxDriven {
				conn.Interrupt()
			}
		})
	}
}

// end forgets the last driver.
func (r *receiving) end() {
	r.bind(context.Background(), nil)
	if r.watch != nil {
		r.watch.Stop()
	}
}

// mayDrive reports whether the role may leave the goroutine: not when something
// is to happen while the program does not wait.
func (l *link) mayDrive() bool {
	return !l.rx.ending.Load() && l.qp.sendCQ.armed.Load() == 0 && l.qp.recvCQ.armed.Load() == 0
}

// ask asks the goroutine for the role. When it is free, those who wait for
// completions are woken.
func (l *link) ask() {
	if !l.rx.role.CompareAndSwap(rxOwn, rxAsked) {
		return
	}
	if l.mayDrive() { // who changes that from now on gives the role back
		l.conn.Interrupt()
	} else {
		l.giveBack()
	}
}

// mayWait reports whether a program that waits for completions had better receive
// meanwhile. Those of a transmitter that works for it would have to interrupt it
// each time, so that it then leaves the goroutine alone for a while.
func (l *link) mayWait() bool {
	const often = 64
	switch l.tx.Load() {
	case txBusy, txAgain:
		l.rx.shy.Store(often)
		l.giveBack()
		return false
	}
	if l.rx.shy.Load() > 0 {
		l.rx.shy.Add(-1)
		return l.rx.role.Load() == rxFree
	}
	return true
}

// take takes the role, if it is free. Who has it calls drop.
func (l *link) take() bool {
	return l.rx.role.Load() == rxFree && l.rx.role.CompareAndSwap(rxFree, rxDriven)
}

// step receives what there is, without waiting, and reports whether there was
// anything.
func (l *link) step() (some bool) {
	r := &l.rx
	some, r.err = l.rdmap.TryReceive()
	l.rouse()
	interrupted := errors.Is(r.err, mpa.ErrInterrupted)
	r.judged = r.err != nil && !interrupted || l.peerTerminate != nil // a link that closes has asked for the role
	if interrupted {
		r.err = nil
	}
	return some
}

// await waits until there is something for step, or the wait is interrupted, as
// it is when the context ends, or is for the goroutine: a message waits for a
// receive.
func (l *link) await(ctx context.Context) error {
	l.rx.bind(ctx, l.conn)
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
	}
	err := l.conn.Await()
	if errors.Is(err, mpa.ErrHeld) {
		l.rx.needed.Store(true)
		return mpa.ErrInterrupted
	}
	return err
}

// drop gives the role up: to the goroutine if it is needed, and else to whoever
// comes next.
func (l *link) drop() {
	r := &l.rx
	r.uses.Add(1)
	if r.judged {
		r.role.Store(rxOwn)
		r.resume <- struct{}{}
		return
	}
	r.role.Store(rxFree)
	if r.needed.Load() { // who needs it from now on finds the role free
		l.giveBack()
		return
	}
	l.watchOver()
	l.offer()
}

// offer wakes somebody who waits for a completion and could take the free role.
func (l *link) offer() {
	for _, c := range [...]*CQ{l.qp.recvCQ, l.qp.sendCQ} {
		if c.waiters.Load() > 0 {
			c.mu.Lock()
			c.wake()
			c.mu.Unlock()
			return
		}
	}
}

// giveBack gets the role back to the goroutine. It may be called from anywhere.
func (l *link) giveBack() {
	r := &l.rx
	for {
		switch r.role.Load() {
		case rxOwn:
			return
		case rxAsked:
			if r.role.CompareAndSwap(rxAsked, rxOwn) {
				return
			}
		case rxFree:
			if r.role.CompareAndSwap(rxFree, rxOwn) {
				r.resume <- struct{}{}
				return
			}
		default:
			r.needed.Store(true)
			l.conn.Interrupt()
			if r.role.Load() == rxDriven { // drop sees to it
				return
			}
		}
	}
}

// ends says that the link is about to end: its goroutine sees to that.
func (l *link) ends() {
	l.rx.ending.Store(true)
	l.giveBack()
	l.feed()
}

// watchOver makes sure that somebody looks whether the driver comes back.
func (l *link) watchOver() {
	if r := &l.rx; !r.watching.Load() && !r.watching.Swap(true) {
		r.watch.Reset(max(away, time.Duration(r.patience.Load())))
	}
}

// look gives the role back to the goroutine if nobody has had it since the last
// look, and learns from that how long to wait for the next driver. While somebody
// has it, there is nothing to watch: drop goes on.
func (l *link) look() {
	r := &l.rx
	r.watching.Store(false)
	uses := r.uses.Load()
	switch {
	case r.role.Load() != rxFree:
	case r.posts.Load():
		l.watchOver()
	case r.seen.Swap(uses) != uses:
		r.patience.Store(min(2*max(int64(away), r.patience.Load()), int64(longestAway)))
		l.watchOver()
	default:
		r.patience.Store(r.patience.Load() / 4)
		l.giveBack()
	}
}
