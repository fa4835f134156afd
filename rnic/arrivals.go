package rnic

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// errCrowdedOut says why a start-up ended before its Request was in.
var errCrowdedOut = errors.New("the connection made room for a newer one, as its Request was not in: see Limits[pd.HalfOpen]")

// sureTime is how long an arrival keeps its place whatever comes: time enough for a
// Request, which follows the connection at once, and short for those who wait.
const sureTime = 5 * time.Millisecond

// arrivals holds the connections of a device whose Request is not in. There are as
// many places as pd.HalfOpen says. When all are taken, a new connection takes the
// place of another one: of the address that has most, the oldest. So connections
// that say nothing, or say it slowly, delay nobody else for longer than sureTime,
// and who opens many pushes out its own.
type arrivals struct {
	limit int

	mu      sync.Mutex
	all     []*arrival    // oldest first
	held    int           // those in all, and those that were told to go and have not gone
	leaving int           // the latter
	waiting int           // connections that wait for a place
	changed chan struct{} // closed when one has gone; nil while nobody waits
}

// An arrival is one such connection.
type arrival struct {
	from  *source
	since time.Time
	drop  context.CancelCauseFunc
	ctx   context.Context // ends when the arrival is to go
}

// A source counts the arrivals of one address.
type source struct {
	host string
	n    int
}

// enter takes a place for a connection from that address, and waits for one if it
// must. It returns nil if the context ends first.
func (a *arrivals) enter(ctx context.Context, from net.Addr) *arrival {
	host := hostOf(from)
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.held >= a.limit {
		if !a.wait(ctx) {
			return nil
		}
	}
	v := &arrival{from: a.source(host), since: time.Now()}
	v.ctx, v.drop = context.WithCancelCause(ctx)
	v.from.n++
	a.all = append(a.all, v)
	a.held++
	return v
}

// source returns the count of a host. The caller holds mu.
func (a *arrivals) source(host string) *source {
	for _, v := range a.all {
		if v.from.host == host {
			return v.from
		}
	}
	return &source{host: host}
}

// wait waits until it is worth another look whether there is a place, and sees to it
// that there soon is. It reports false if the context has ended. The caller holds mu,
// which it gives up meanwhile.
func (a *arrivals) wait(ctx context.Context) bool {
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	changed := a.changed
	a.waiting++
	var early <-chan time.Time
	if d := a.makeRoom(a.waiting); d > 0 {
		early = time.After(d)
	}
	a.mu.Unlock()
	select {
	case <-changed:
	case <-early:
	case <-ctx.Done():
	}
	a.mu.Lock()
	a.waiting--
	return ctx.Err() == nil
}

// makeRoom tells arrivals to go until that many do. If those who are next have not
// had their time, it returns how long they still have. The caller holds mu.
func (a *arrivals) makeRoom(places int) time.Duration {
	for a.leaving < places {
		v := a.next()
		if v == nil {
			break
		}
		if left := sureTime - time.Since(v.since); left > 0 {
			return left
		}
		a.remove(v)
		a.leaving++
		v.drop(errCrowdedOut)
	}
	return 0
}

// next returns who has to go next: of those from the address that has most, the
// oldest; of two such addresses, the older of the two. The caller holds mu.
func (a *arrivals) next() *arrival {
	var next *arrival
	for _, v := range a.all {
		if next == nil || v.from.n > next.from.n {
			next = v
		}
	}
	return next
}

// remove takes an arrival off the list, and reports whether it was there. The caller
// holds mu.
func (a *arrivals) remove(v *arrival) bool {
	i := slices.Index(a.all, v)
	if i < 0 {
		return false
	}
	a.all = slices.Delete(a.all, i, i+1)
	v.from.n--
	return true
}

// leave gives the place of an arrival back: its Request is in, or its connection
// closed.
func (a *arrivals) leave(v *arrival) {
	v.drop(nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.remove(v) {
		a.leaving--
	}
	a.held--
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// shed has one arrival go, if there is one that has had its time: the system has no
// descriptor for others.
func (a *arrivals) shed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.makeRoom(a.waiting + 1)
}

// hostOf returns what stands for the host of an address: the IP address, or of an
// IPv6 address the network, as a host has all of the addresses there.
func hostOf(a net.Addr) string {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return "" // all that are no TCP count as one
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().String()
	}
	return ip.String()
}
