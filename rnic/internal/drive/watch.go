package drive

import "sync/atomic"

// A presence is what shows that a program is there: how often it has had a role, and
// what it does now.
type presence struct{ atomic.Uint64 }

const (
	watched uint64 = 1 << iota // the watch is set
	polled                     // the last program in the receiver's role polled, and did not wait
	posts                      // and transmits now; a second one carries into use until the first is done
	use                        // the count of the times that a role was given up
)

func (p *presence) polls() bool { return p.Load()&polled != 0 }

func (p *presence) pollsNow() {
	if !p.polls() {
		p.Or(polled)
	}
}

func (p *presence) pollsNoMore() {
	if p.polls() {
		p.And(^polled)
	}
}

// watchOver makes sure that something checks whether a program comes back for the
// role, which is free.
func (d *Driver) watchOver() {
	if d.presence.Load()&watched == 0 && d.presence.Or(watched)&watched == 0 {
		d.watch.Reset(d.patience.time())
	}
}

// look is the watch: it returns the role to the goroutine if no program has had it
// since the last look. While a program has it, there is nothing to watch: drop
// continues.
func (d *Driver) look() {
	p := d.presence.Load()
	var v verdict
	d.patience, v = d.patience.look(sight{free: d.rx.role() == rxFree, posts: p&posts != 0, uses: p / use})
	if v == goOn {
		d.watch.Reset(d.patience.time())
		return
	}
	d.presence.And(^watched) // from here on, who frees the role sets the watch, and patience is theirs
	switch {
	case v == takeBack:
		d.GiveBack()
	case d.rx.role() == rxFree: // by a caller that has found the watch set
		d.watchOver()
	}
}
