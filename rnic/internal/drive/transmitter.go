package drive

import "sync/atomic"

// A txRole says who has the transmitter's role.
type txRole uint32

const (
	txIdle     txRole = iota // no goroutine: there is nothing to transmit
	txBusy                   // somebody
	txAgain                  // a goroutine, which must look again before it leaves
	txParked                 // no goroutine, though there is more: a program that polls comes back to it
	txStopping               // a goroutine, which must stop
	txStopped                // no goroutine ever again
	txRoles
)

func (r txRole) String() string {
	return [txRoles]string{"idle", "busy", "again", "parked", "stopping", "stopped"}[r]
}

// A txEvent is what happens to the transmitter's role.
type txEvent uint8

const (
	txKick   txEvent = iota // there is something to transmit
	txPass                  // the transmitter begins a pass
	txRest                  // has found nothing more
	txPark                  // leaves the rest to a program that polls
	txUnpark                // the program polls no more
	txStop                  // transmission must stop
	txEvents
)

// txNext is who has the role next.
//
// A pass begins with txBusy: it handles what was requested before, and what is
// requested later is noted.
var txNext = [txRoles][txEvents]txRole{
	//           kick        pass        rest        park        unpark      stop
	txIdle:     {txBusy, txIdle, txIdle, txIdle, txIdle, txStopped},
	txBusy:     {txAgain, txBusy, txIdle, txParked, txBusy, txStopping},
	txAgain:    {txAgain, txBusy, txAgain, txParked, txAgain, txStopping},
	txParked:   {txBusy, txParked, txParked, txParked, txBusy, txStopped},
	txStopping: {txStopping, txStopped, txStopping, txStopping, txStopping, txStopping},
	txStopped:  {txStopped, txStopped, txStopped, txStopped, txStopped, txStopped},
}

// A transmitter is the transmitter's role.
type transmitter struct{ state atomic.Uint32 }

func (t *transmitter) role() txRole { return txRole(t.state.Load()) }

// on changes the role as an event says.
func (t *transmitter) on(e txEvent) (was, now txRole) {
	for {
		was = t.role()
		now = txNext[was][e]
		if now == was || t.state.CompareAndSwap(uint32(was), uint32(now)) {
			return was, now
		}
	}
}

// inlinePasses is how often a poster transmits before a goroutine takes over: others may
// post faster than it can send, and it would never return. With fewer passes, a
// goroutine would be started for what a few more passes can send.
const inlinePasses = 8

// Kick makes sure that a goroutine transmits what there is to transmit from now on. If none
// does, the caller transmits, as far as it need not wait. Kick may be called from anywhere, also
// by the pump while it transmits.
func (d *Driver) Kick() {
	if was, now := d.tx.on(txKick); now == txBusy && was != now {
		d.transmitNow()
	}
}

// transmitNow transmits for a program, which takes part in it while it does, see presence:
// it may take longer than the watch waits for the next poll.
func (d *Driver) transmitNow() {
	polls := d.presence.polls()
	if polls {
		d.presence.Add(posts)
	}
	d.transmit(false)
	if polls {
		d.presence.Add(use - posts)
	}
}

// transmit transmits until there is nothing more. The caller has the role, and gives it
// up. Without wait, it leaves the rest to a goroutine, or to a program that polls, if
// there is no room; with wait, to a program that has begun to poll.
func (d *Driver) transmit(wait bool) {
	for passes := 1; ; passes++ {
		if was, now := d.tx.on(txPass); now == txStopped {
			if was != now {
				close(d.stopped)
			}
			return
		}
		switch r := d.pump.Transmit(wait); {
		case r == Idle:
			if _, now := d.tx.on(txRest); now == txIdle {
				return
			}
		case !wait && (r == Blocked || passes >= inlinePasses):
			if !d.park() {
				d.handOver()
			}
			return
		case wait && d.park():
			return
		}
	}
}

// park releases the role with more to transmit, if a program polls: where all
// processors are busy polling, a goroutine would wait for one. It reports
// whether it has released it. Once the program no longer polls, unpark
// continues.
func (d *Driver) park() bool {
	if !d.presence.polls() {
		return false
	}
	if _, now := d.tx.on(txPark); now != txParked {
		return false
	}
	if d.presence.polls() {
		return true
	}
	was, now := d.tx.on(txUnpark)
	return was == now // or another goroutine has the role now
}

// unpark continues in a goroutine with what a program that no longer polls has
// left.
func (d *Driver) unpark() {
	d.presence.pollsNoMore()
	if was, now := d.tx.on(txUnpark); was != now {
		d.handOver()
	}
}

// handOver gives the role to a goroutine, which waits for room.
func (d *Driver) handOver() {
	d.wg.Add(1)
	go d.transmits()
}
