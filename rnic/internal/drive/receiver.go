package drive

import (
	"math"
	"sync/atomic"
	"time"
)

// An rxRole says who has the receiver's role.
type rxRole uint32

const (
	rxGoroutine rxRole = iota // the goroutine
	rxAsked                   // it still, but a program has asked it to release the role
	rxFree                    // nothing; the goroutine waits to get it back
	rxProgram                 // a program that polls or waits
	rxRecalled                // it still, but the goroutine must continue
	rxEnding                  // it still, but the goroutine must continue, for good
	rxKept                    // the goroutine, for good
	rxRoles
)

func (r rxRole) String() string {
	return [rxRoles]string{"goroutine", "asked", "free", "program", "recalled", "ending", "kept"}[r]
}

// goroutines reports whether the goroutine runs with the role.
func (r rxRole) goroutines() bool { return r == rxGoroutine || r == rxAsked || r == rxKept }

// An rxEvent is what happens to the receiver's role.
type rxEvent uint8

const (
	rxAsk    rxEvent = iota // a program wants it
	rxLetGo                 // the goroutine was interrupted
	rxTake                  // a program takes it
	rxDrop                  // the program gives it up
	rxSettle                // so, and what has come is the goroutine's
	rxRecall                // the goroutine has to continue
	rxEnd                   // for good
	rxEvents
)

// rxNext is who has the role next.
var rxNext = [rxRoles][rxEvents]rxRole{
	//            ask          letGo        take         drop         settle       recall       end
	rxGoroutine: {rxAsked, rxGoroutine, rxGoroutine, rxGoroutine, rxGoroutine, rxGoroutine, rxKept},
	rxAsked:     {rxAsked, rxFree, rxAsked, rxAsked, rxAsked, rxGoroutine, rxKept},
	rxFree:      {rxFree, rxFree, rxProgram, rxFree, rxFree, rxGoroutine, rxKept},
	rxProgram:   {rxProgram, rxProgram, rxProgram, rxFree, rxGoroutine, rxRecalled, rxEnding},
	rxRecalled:  {rxRecalled, rxRecalled, rxRecalled, rxGoroutine, rxGoroutine, rxRecalled, rxEnding},
	rxEnding:    {rxEnding, rxEnding, rxEnding, rxKept, rxKept, rxEnding, rxEnding},
	rxKept:      {rxKept, rxKept, rxKept, rxKept, rxKept, rxKept, rxKept},
}

// A receiver is the receiver's role.
type receiver struct{ state atomic.Uint32 }

func (r *receiver) role() rxRole { return rxRole(r.state.Load()) }

// on changes the role as an event says.
func (r *receiver) on(e rxEvent) (was, now rxRole) {
	for {
		was = r.role()
		now = rxNext[was][e]
		if now == was || r.state.CompareAndSwap(uint32(was), uint32(now)) {
			return was, now
		}
	}
}

// change changes the receiver's role after an event, and notifies those concerned: the
// program that must release it, the goroutine that has it again, or the waiters that may
// take it. It reports whether there was a change.
func (d *Driver) change(e rxEvent) bool {
	was, now := d.rx.on(e)
	switch {
	case was == now:
		return false
	case now == rxFree:
		d.watchOver()
		d.offer()
	case was == rxProgram && (now == rxRecalled || now == rxEnding):
		d.pump.Interrupt()
	case now.goroutines() && !was.goroutines():
		d.resume <- struct{}{}
	}
	return true
}

// receive is the goroutine: it receives until the connection ends.
func (d *Driver) receive() {
	for {
		if d.pump.Receive() == Interrupted {
			d.letGo()
		}
		d.rouse()
		if d.pump.Received() {
			return
		}
	}
}

// rouse gets transmitted what receiving has brought about.
func (d *Driver) rouse() {
	if d.woken.Load() {
		d.woken.Store(false)
		d.Kick()
	}
}

// letGo leaves the role to those that have asked for it, and waits until it
// comes back.
func (d *Driver) letGo() {
	if d.watch == nil {
		d.watch = time.AfterFunc(math.MaxInt64, d.look)
	}
	if d.change(rxLetGo) { // else it is no longer requested
		<-d.resume
		d.unpark()
	}
}

// GiveBack gets the receiver's role back to the goroutine, until a program asks for it
// again. It may be called from anywhere.
func (d *Driver) GiveBack() { d.change(rxRecall) }

// ask asks the goroutine for the role. When it is free, those who wait are woken.
func (d *Driver) ask() {
	if !d.change(rxAsk) {
		return
	}
	if d.pump.MayLeave() { // who changes that from now on gives the role back
		d.pump.Interrupt()
	} else {
		d.GiveBack()
	}
}

// take takes the role, if it is free. Who has it calls drop.
func (d *Driver) take() bool { return d.change(rxTake) }

// step receives what there is, without waiting.
func (d *Driver) step() Outcome {
	o := d.pump.TryReceive()
	d.rouse()
	return o
}

// drop releases the role: to the goroutine if it is needed, and else to the
// next one that takes it.
func (d *Driver) drop(o Outcome) {
	d.presence.Add(use)
	if o == ForGoroutine {
		d.change(rxSettle)
	} else {
		d.change(rxDrop)
	}
}

// offer wakes a waiter that could take the free role.
func (d *Driver) offer() {
	for _, g := range d.groups {
		if g.offer() {
			return
		}
	}
}
