package rnic

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"urnic/mpa"
)

const (
	driveMost = 8   // links that one Poll looks after
	driveAll  = 256 // links of a queue, at most; with more, a turn would take longer than away
	spinPolls = 32  // polls in vain, within away, that show that a program spins
)

// A driving is what a completion queue knows of the links that complete there,
// for programs that wait or poll.
type driving struct {
	links   atomic.Pointer[[]*link] // replaced, never changed, under the queue's mu
	turn    atomic.Uint32           // of the links, when there are many
	sleeper *link                   // somebody in Wait receives for it, and is to be interrupted; under the queue's mu

	vain  atomic.Uint32 // polls in vain in a row
	since atomic.Int64  // the first of each spinPolls of them, in ns
}

// attach adds a link that completes here.
func (c *CQ) attach(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.drive.list(); !slices.Contains(all, l) {
		all = append(slices.Clone(all), l)
		c.drive.links.Store(&all)
	}
}

func (c *CQ) detach(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.drive.list(); slices.Contains(all, l) {
		all = slices.DeleteFunc(slices.Clone(all), func(o *link) bool { return o == l })
		c.drive.links.Store(&all)
	}
}

func (d *driving) list() []*link {
	if all := d.links.Load(); all != nil {
		return *all
	}
	return nil
}

// only returns the one link that completes here, if there is just one: who waits
// can do so at one connection only.
func (d *driving) only() *link {
	if all := d.list(); len(all) == 1 {
		return all[0]
	}
	return nil
}

// leave gives the roles that nobody has back to the goroutines, of links that a program
// has polled for and can't wait at.
func (d *driving) leave() {
	all := d.list()
	if len(all) == 1 {
		return
	}
	for _, l := range all {
		if l.rx.role.Load() == rxFree {
			l.giveBack()
		}
	}
}

// spins notes a poll in vain, and reports whether the program does little else.
func (d *driving) spins() bool {
	switch d.vain.Add(1) % spinPolls {
	case 1:
		d.since.Store(time.Now().UnixNano())
	case 0:
		return time.Now().UnixNano()-d.since.Load() < int64(away)
	}
	return false
}

// progress receives what has come for some of the queue's links, without
// waiting, and reports whether there may be completions now. It asks for the role
// of those it can't receive for, if the program spins.
func (c *CQ) progress() (some bool) {
	all := c.drive.list()
	if len(all) == 0 {
		return false
	}
	first, spins := 0, c.drive.spins()
	if len(all) > driveAll {
		if spins {
			runtime.Gosched() // to the goroutines of the links
		}
		return false
	}
	if len(all) > driveMost {
		first = int(c.drive.turn.Add(driveMost) % uint32(len(all)))
	}
	for i := range min(len(all), driveMost) {
		l := all[(first+i)%len(all)]
		if l.take() {
			if !l.rx.polled.Load() {
				l.rx.polled.Store(true)
			}
			if l.tx.Load() == txParked {
				l.kick()
				some = true
			}
			if l.step() {
				some = true
			}
			l.drop()
		} else if spins {
			l.ask()
		}
	}
	return some
}

// driveWaiting receives for a link once, waiting for what comes. The caller
// holds mu, counts as a waiter, and has taken the role.
func (c *CQ) driveWaiting(ctx context.Context, l *link) error {
	c.drive.sleeper = l
	c.waiters.Add(-1)
	c.mu.Unlock()
	if l.rx.polled.Load() {
		l.unpark()
	}
	err := l.await(ctx)
	c.mu.Lock()
	c.drive.sleeper = nil
	c.mu.Unlock()
	if err == nil {
		l.step()
	}
	l.drop()
	c.mu.Lock()
	c.waiters.Add(1)
	if errors.Is(err, mpa.ErrInterrupted) {
		return nil
	}
	return err
}
