package drive

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Driver decides which goroutine runs the [Pump] of one connection. Its zero
// value notes events; Start makes it work.
type Driver struct {
	pump   Pump
	wg     *sync.WaitGroup
	groups []*Group // of those who wait for what comes

	tx        transmitter
	transmits func()        // transmit, waiting, in a goroutine; made once, so that none of them allocates
	stopped   chan struct{} // closed when no goroutine transmits any more

	rx     receiver
	woken  atomic.Bool   // receiving has brought about something to transmit
	resume chan struct{} // holds one token: the goroutine has the role again
	yields atomic.Int32  // so many waits leave the role where it is

	presence presence
	patience patience    // the one that has set the watch has it
	watch    *time.Timer // made when the goroutine first lets go

	// Those in the receiver's role use these.
	bound  <-chan struct{} // of the context whose end ends the wait
	unbind func() bool     // if there is one
}

// Start starts the goroutine that receives, in wg, as are those that transmit. The
// programs of groups may take the receiver's role from it; with none, it always keeps it.
func (d *Driver) Start(p Pump, wg *sync.WaitGroup, groups ...*Group) {
	d.pump, d.wg, d.groups = p, wg, groups
	d.stopped, d.resume = make(chan struct{}), make(chan struct{}, 1)
	d.transmits = func() {
		defer wg.Done()
		d.transmit(true)
	}
	for _, g := range groups {
		g.join(d)
	}
	wg.Go(d.receive)
}

// Wake notes that there is something to transmit. The receiver kicks the transmitter when
// it has taken what has arrived. It may be called from anywhere.
func (d *Driver) Wake() { d.woken.Store(true) }

// End gets the receiver's role to the goroutine for good, as the connection is about to
// end. It may be called from anywhere.
func (d *Driver) End() { d.change(rxEnd) }

// Ending reports whether End was called.
func (d *Driver) Ending() bool {
	r := d.rx.role()
	return r == rxEnding || r == rxKept
}

// Stop waits until no goroutine transmits or ever will, and releases the groups
// and the last waiter's context. The goroutine calls it, after End.
func (d *Driver) Stop() {
	if was, now := d.tx.on(txStop); now == txStopped && was != now {
		close(d.stopped)
	}
	<-d.stopped
	for _, g := range d.groups {
		g.leave(d)
	}
	d.bind(context.Background())
	if d.watch != nil {
		d.watch.Stop()
	}
}

// Roles returns the names of the states of both roles, as the tables of the package's
// documentation have them.
func (d *Driver) Roles() (transmitter, receiver string) {
	return d.tx.role().String(), d.rx.role().String()
}
