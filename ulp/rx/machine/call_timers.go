package machine

import (
	"urnic/ulp/rx/wire"
)

// rearm sets the call's timer to its next deadline.
func (k *Call) rearm() {
	if at := k.deadline(); at != never {
		k.c.m.timers.set(&k.timer, at)
	}
}

// alive reports whether the peer of a call has to give signs of life. A server that has sent
// its whole reply may forget the call: its client may take its time to read.
func (k *Call) alive() bool {
	if k.client && (k.ended || k.in.arrived()) {
		return false
	}
	return k.err == nil && (!k.in.complete() || !k.out.finished())
}

// known reports whether the peer knows the call, or could know it: a client that has
// sent nothing yet does not wait for its peer.
func (k *Call) known() bool { return !k.client || k.out.next > 1 }

// deadline is when something is due next.
func (k *Call) deadline() Time {
	at := never
	soon := func(t Time) {
		if t != 0 {
			at = min(at, t)
		}
	}
	if k.in.endAt != 0 {
		soon(k.in.endAt)
	}
	if k.err != nil {
		return at
	}
	soon(k.out.timeoutAt)
	soon(k.in.ackAt)
	soon(k.out.probe.deadline())
	if k.alive() {
		l := k.c.limits
		if k.known() {
			soon(k.heard + l.dead)
			soon(k.pingAt)
		}
		if l.idle != 0 {
			soon(k.moved + l.idle)
		}
		if l.hard != 0 {
			soon(k.began + l.hard)
		}
	}
	return at
}

// ring does what is due.
func (k *Call) ring(now Time) Time {
	r, s := &k.in, &k.out
	if r.endAt != 0 && now >= r.endAt {
		k.endNow()
	}
	if k.err != nil {
		return k.deadline()
	}
	if r.ackAt != 0 && now >= r.ackAt {
		r.ackAt = 0
		k.ack(wire.ReasonDelay, 0)
	}
	if s.timeoutAt != 0 && now >= s.timeoutAt {
		s.expire(k)
	}
	s.probe.ring(k, now)
	if k.alive() {
		k.live(now)
	}
	return k.deadline()
}

// live ends a call whose time is over, and asks a peer that is silent for a sign of life
// (draft §5.3).
func (k *Call) live(now Time) {
	l := k.c.limits
	switch {
	case k.known() && now-k.heard >= l.dead:
		// No abort is sent: the peer is gone.
		k.fail(&AbortError{Code: wire.CallDead, Cause: errSilent})
		return
	case l.idle != 0 && now-k.moved >= l.idle:
		k.tell(&AbortError{Code: wire.CallTimeout, Cause: errIdle})
		return
	case l.hard != 0 && now-k.began >= l.hard:
		k.tell(&AbortError{Code: wire.CallTimeout, Cause: errHard})
		return
	case !k.known() || now < k.pingAt:
		return
	}
	every := l.dead / 6
	if !k.client && !k.offered && !k.waiting {
		// Its address may be forged. A challenge asks for a sign of life too.
		k.pingAt = now + every
		return
	}
	if k.waiting {
		every = min(every, reachWait)
	}
	if k.waiting || now-k.heard >= every {
		k.out.pingDue = true
		k.c.wake()
		k.pingAt = now + every
		return
	}
	k.pingAt = k.heard + every
}
