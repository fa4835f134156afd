package drive

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A Group is the connections whose news come to one place, such as a completion queue,
// and the programs that poll and wait there.
type Group struct {
	mu      *sync.Mutex               // of the place
	members atomic.Pointer[[]*Driver] // replaced, never changed, under mu
	turn    atomic.Uint32             // of the members, when there are many
	spin    spin

	waiters atomic.Int32  // in Wait, and not receiving; written under mu
	sleeper *Driver       // a waiter receives for it, and must be interrupted; under mu
	news    chan struct{} // holds one token when the waiters must look again
}

// Init makes an empty group of the place that mu guards.
func (g *Group) Init(mu *sync.Mutex) { g.mu, g.news = mu, make(chan struct{}, 1) }

// perPoll is how many members one Poll looks after. Each costs a system call, so that a
// Poll takes a few microseconds, which a program can spare that has other things to look
// after, too.
const perPoll = 8

// most is for how many members of a group programs receive, at most: with more, perPoll
// at a time, a turn would take longer than away, and the watches would return the roles
// one after the other, only for them to be requested again.
const most = 256

func (g *Group) join(d *Driver) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if all := g.list(); !slices.Contains(all, d) {
		all = append(slices.Clone(all), d)
		g.members.Store(&all)
	}
}

func (g *Group) leave(d *Driver) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if all := g.list(); slices.Contains(all, d) {
		all = slices.DeleteFunc(slices.Clone(all), func(o *Driver) bool { return o == d })
		g.members.Store(&all)
	}
}

func (g *Group) list() []*Driver {
	if all := g.members.Load(); all != nil {
		return *all
	}
	return nil
}

// Poll receives what has come for some of the members, without waiting, and reports
// whether there may be news now. It asks for the role of those it can't receive for, if
// the program does little else than poll in vain.
func (g *Group) Poll() (some bool) {
	all := g.list()
	if len(all) == 0 {
		return false
	}
	first, spins := 0, g.spin.inVain()
	if len(all) > most {
		if spins {
			runtime.Gosched() // to the goroutines of the members
		}
		return false
	}
	if len(all) > perPoll {
		first = int(g.turn.Add(perPoll) % uint32(len(all)))
	}
	for i := range min(len(all), perPoll) {
		if all[(first+i)%len(all)].poll(spins) {
			some = true
		}
	}
	return some
}

// Found notes that a program that polls has found something: it does not spin.
func (g *Group) Found() { g.spin.found() }

// Recall gets the receiver's roles of all members back to their goroutines.
func (g *Group) Recall() {
	for _, d := range g.list() {
		d.GiveBack()
	}
}

// Enter counts a program that is about to wait. The caller holds mu, from before it
// looks for what it waits for.
func (g *Group) Enter() { g.waiters.Add(1) }

// Leave ends what Enter has begun. If there is more to be had, the caller calls Wake.
func (g *Group) Leave() { g.waiters.Add(-1) }

// Wait waits until there may be news, or the context ends, whose cause it returns then. If
// the group has just one member, it receives for it meanwhile: one can wait at one
// connection only. The caller has called Enter, and holds mu, which Wait
// releases meanwhile.
func (g *Group) Wait(ctx context.Context) error {
	all := g.list()
	if len(all) == 1 && all[0].mayWait() {
		if all[0].take() {
			return g.waitAt(ctx, all[0])
		}
		all[0].ask()
	}
	if len(all) > 1 { // they may have been polled for
		for _, d := range all {
			if d.rx.role() == rxFree {
				d.GiveBack()
			}
		}
	}
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-g.news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// waitAt receives for a member once, whose role the caller has taken, and waits for what
// comes.
func (g *Group) waitAt(ctx context.Context, d *Driver) error {
	g.sleeper = d
	g.waiters.Add(-1)
	g.mu.Unlock()
	o, err := d.await(ctx)
	g.mu.Lock()
	g.sleeper = nil
	g.mu.Unlock()
	if o == Some {
		o = d.step()
	}
	d.drop(o)
	g.mu.Lock()
	g.waiters.Add(1)
	return err
}

// Wake wakes one waiter because there is something new. If there is more, that waiter
// wakes the next one by another Wake. The caller holds mu.
func (g *Group) Wake() {
	if d := g.sleeper; d != nil {
		g.sleeper = nil
		d.pump.Interrupt()
		return
	}
	if g.waiters.Load() == 0 {
		return
	}
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// offer wakes a waiter that could take a free role, and reports whether there is one.
func (g *Group) offer() bool {
	if g.waiters.Load() == 0 {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Wake()
	return true
}
