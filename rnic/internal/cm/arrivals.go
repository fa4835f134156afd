package cm

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

// Arrivals holds the connections of a device whose Request has not arrived yet.
// pd.HalfOpen is the number of slots. When all are in use, a new connection
// replaces another one: the oldest of the address that has most. So connections
// that send nothing, or send it slowly, delay others for at most sureTime, and a
// peer that opens many loses its own.
type Arrivals struct {
	Limit int // the places; set before it is used

	mu      sync.Mutex
	all     []*Arrival    // oldest first
	held    int           // all of them, and those that were asked to end and have not ended
	leaving int           // the latter
	waiting int           // connections that wait for a place
	changed chan struct{} // closed when one has ended; nil while nothing waits
}

// An Arrival is one such connection.
type Arrival struct {
	// Context ends when the arrival is to go.
	Context context.Context

	from  *source
	since time.Time
	drop  context.CancelCauseFunc
}

// A source counts the arrivals of one address.
type source struct {
	host string
	n    int
}

// Enter takes a place for a connection from that address, and waits for one if it
// must. It returns nil if the context ends first.
func (a *Arrivals) Enter(ctx context.Context, from net.Addr) *Arrival {
	host := HostOf(from)
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.held >= a.Limit {
		if !a.wait(ctx) {
			return nil
		}
	}
	v := &Arrival{from: a.source(host), since: time.Now()}
	v.Context, v.drop = context.WithCancelCause(ctx)
	v.from.n++
	a.all = append(a.all, v)
	a.held++
	return v
}

// source returns the count of a host. The caller holds mu.
func (a *Arrivals) source(host string) *source {
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
func (a *Arrivals) wait(ctx context.Context) bool {
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

// makeRoom asks arrivals to end until that many do. If those that are next have
// not had their time, it returns how long they still have. The caller holds mu.
func (a *Arrivals) makeRoom(places int) time.Duration {
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
func (a *Arrivals) next() *Arrival {
	var next *Arrival
	for _, v := range a.all {
		if next == nil || v.from.n > next.from.n {
			next = v
		}
	}
	return next
}

// remove takes an arrival off the list, and reports whether it was there. The caller
// holds mu.
func (a *Arrivals) remove(v *Arrival) bool {
	i := slices.Index(a.all, v)
	if i < 0 {
		return false
	}
	a.all = slices.Delete(a.all, i, i+1)
	v.from.n--
	return true
}

// Leave gives the place of an arrival back: its Request is in, or its connection
// closed.
func (a *Arrivals) Leave(v *Arrival) {
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

// Shed has one arrival go, if there is one that has had its time: the system has no
// descriptor for others.
func (a *Arrivals) Shed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.makeRoom(a.waiting + 1)
}

// HostOf returns what stands for the host of an address: the IP address, or of an
// IPv6 address the network, as a host has all of the addresses there.
func HostOf(a net.Addr) string {
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
