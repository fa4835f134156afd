package machine

import (
	"time"

	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A Call is one exchange of a client with a service: a stream to the server, then a
// stream back.
type Call struct {
	// Owner is for the owner's use.
	Owner any

	c       *Conn
	number  uint32
	channel uint8
	client  bool

	offered bool // a server's program knows of it
	ended   bool // the program is done with it
	changed bool // an effect says so already
	waiting bool // of a server: the program waits for a sign of life of the client
	err     *AbortError
	abort   bool // an abort packet is due
	settled bool // it no longer counts as an outstanding call

	// prior is the call before on the channel, until this one's first packet acknowledges
	// its reply: the server may still ask for that.
	prior *Call

	in  receiver
	out sender

	began, heard, moved Time // moved: when data last arrived or was acknowledged
	asked               Time // when a client's first packet left
	pingAt              Time
	timer
}

// newCall puts a call on a channel.
func (c *Conn) newCall(channel uint8, number uint32, client bool) *Call {
	m := c.m
	k := &Call{c: c, number: number, channel: channel, client: client, began: m.now, heard: m.now, moved: m.now}
	k.alarm = k
	k.in.init()
	k.out.init(c.peer.cwnd)
	k.pingAt = m.now + c.limits.dead/6
	c.calls[channel], c.numbers[channel] = k, number
	c.busy()
	m.stats.Calls++
	m.stats.LiveCalls++
	k.rearm()
	return k
}

// Begin begins a call. The error is ErrNoChannel while all four channels have calls; an
// effect Freed reports when to try again.
func (c *Conn) Begin(now Time) (*Call, error) {
	m := c.m
	m.tick(now)
	switch {
	case c.err != nil:
		return nil, c.err
	case c.closed || c.gone():
		return nil, ErrClosed
	}
	best := -1
	for i, k := range c.calls {
		free := k == nil || k.ended
		// The server may not have noticed yet that the last call of a channel was aborted.
		spoiled := k != nil && k.err != nil
		if free && (best < 0 || !spoiled && c.calls[best] != nil && c.calls[best].err != nil) {
			best = i
		}
	}
	if best < 0 {
		return nil, ErrNoChannel
	}
	number := c.numbers[best] + 1
	if number == 0 {
		number = 1 // 0 is the connection
	}
	old := c.calls[best]
	k := c.newCall(uint8(best), number, true)
	if old != nil {
		if old.err == nil {
			k.prior = old // until the new call's first packet acknowledges it
		} else {
			old.detach()
		}
	}
	return k, nil
}

// Conn is the call's connection.
func (k *Call) Conn() *Conn { return k.c }

// Caller identifies the caller.
func (k *Call) Caller() secure.Caller { return k.c.Caller() }

// Number is the call number.
func (k *Call) Number() uint32 { return k.number }

// Channel is the call's channel.
func (k *Call) Channel() uint8 { return k.channel }

// Err returns how the call has failed, or nil.
func (k *Call) Err() error {
	if k.err == nil {
		return nil
	}
	return k.err
}

// over reports whether the call no longer needs the channel: it has failed, or all that
// this side has to send was acknowledged and all that it has to receive has arrived.
func (k *Call) over() bool {
	return k.err != nil || k.out.finished() && k.in.complete()
}

// detach is called when another call takes the channel. Whatever the peer has not
// acknowledged of this one counts as acknowledged.
func (k *Call) detach() {
	m := k.c.m
	if k.err == nil && !k.over() {
		k.fail(&AbortError{Code: wire.CallDead, Cause: errReplaced})
	}
	k.in.ackDue, k.in.ackAt, k.in.endAt, k.abort = false, 0, 0, false
	if k.prior != nil {
		k.prior.detach()
		k.prior = nil
	}
	k.settle()
	k.release()
	m.timers.stop(&k.timer)
}

// release gives the memory of a call back.
func (k *Call) release() {
	k.in.release(k)
	k.out.probe.end(k)
	k.out.release(k.c.m)
}

// fail ends a call with an error.
func (k *Call) fail(err *AbortError) {
	if k.err != nil {
		return
	}
	if k.ended && k.over() {
		return
	}
	k.err = err
	k.settle()
	k.release()
	k.change()
	if k.client && k.ended {
		k.c.m.emit(Effect{Kind: Freed, Conn: k.c})
	}
}

// settle notes that the call is over.
func (k *Call) settle() {
	if !k.settled {
		k.settled, k.c.used = true, k.c.m.now
		k.c.m.stats.LiveCalls--
	}
}

// change notifies the owner of a change.
func (k *Call) change() {
	if k.changed || !k.client && !k.offered || k.ended {
		return
	}
	k.changed = true
	k.c.m.emit(Effect{Kind: Changed, Call: k})
}

// Abort ends a call with a code, and notifies the peer. It does not change a call that has
// ended.
func (k *Call) Abort(now Time, code wire.Code) {
	k.c.m.tick(now)
	if k.err != nil || k.ended || k.client && k.in.complete() && k.out.finished() {
		return
	}
	k.tell(&AbortError{Code: code})
}

// tell fails the call and notifies the peer.
func (k *Call) tell(err *AbortError) {
	if k.err != nil {
		return
	}
	if k.fail(err); k.err == nil {
		return // it is over
	}
	k.abort = true
	k.c.wake()
}

// End reports that the program is done with a call. A call that is not complete is
// aborted with -6: at a client, and at a server that has not written its whole reply.
func (k *Call) End(now Time) {
	m := k.c.m
	m.tick(now)
	if k.ended {
		return
	}
	if k.client && k.err == nil && !k.in.complete() || !k.client && k.err == nil && !k.out.wrote {
		k.tell(&AbortError{Code: wire.UserAbort})
	}
	k.ended = true
	k.c.busy()
	if !k.client {
		k.in.release(k)
		if k.over() {
			k.rest()
		}
		k.rearm()
		return
	}
	if k.err == nil {
		k.in.release(k)
		k.rest()
	}
	m.emit(Effect{Kind: Freed, Conn: k.c})
}

// rest is called when a call is complete for both sides. What remains answers duplicates.
func (k *Call) rest() {
	k.settle()
	k.out.probe.end(k)
	k.out.release(k.c.m)
	k.c.peer.cwnd = max(1, min(k.out.cwnd, wire.MaxAcks))
	k.rearm()
}

// endNow makes the acknowledgement of the reply be sent now.
func (k *Call) endNow() {
	if k.in.endAt != 0 {
		k.in.endAt = 0
		k.ack(wire.ReasonIdle, 0)
	}
}

// receive processes a packet of the call.
func (k *Call) receive(h *wire.Header, body []byte) {
	m := k.c.m
	switch h.Type {
	case wire.TypeData:
		k.heard = m.now
		packets := wire.SplitData(*h, body)
		for {
			h, body, ok := packets.Next()
			if !ok {
				break
			}
			k.data(&h, body)
			if k.c.err != nil {
				return
			}
		}
		if packets.Err() != nil {
			m.stats.Drops.Jumbo++
		}
	case wire.TypeAck:
		k.acked(h, body)
	case wire.TypeAckAll:
		k.heard = m.now
		k.ackedAll()
	case wire.TypeBusy:
		k.busy()
	case wire.TypeAbort:
		m.stats.Aborted++
		k.fail(&AbortError{Code: wire.Code(wire.ParseAbort(body)), Remote: true})
	case wire.TypeChallenge, wire.TypeResponse:
		m.stats.Drops.Type++ // they are about the connection
	default:
		m.stats.Drops.Type++
		if !k.client {
			k.tell(&AbortError{Code: wire.ProtocolError})
		}
	}
	k.rearm()
}

// busy processes the server's report that the channel has another call there. The
// request is sent again soon: the server's program has been notified, and will have
// left the call by then.
func (k *Call) busy() {
	if !k.client || k.err != nil || k.in.started() {
		k.c.m.stats.Drops.Type++
		return
	}
	k.heard = k.c.m.now
	k.out.hasten(k, busyWait)
}

// answerAbort answers a packet of a call that this side has aborted.
func (k *Call) answerAbort() {
	if k.err != nil && !k.err.Remote && !k.err.Conn && k.c.m.answers.take(k.c.m.now) {
		k.abort = true
		k.c.wake()
	}
}

// offer reports a client's call to the program, once its first packet has arrived, the
// caller is known and the client has shown that it is there.
func (k *Call) offer() {
	if k.client || k.offered || k.err != nil || !k.in.started() {
		return
	}
	c := k.c
	if c.serverSec != nil && c.secured == nil {
		c.challenge()
		return
	}
	if c.of.Reach && !c.peer.present(c.m.now) {
		k.waiting = true
		k.pingAt = min(k.pingAt, c.m.now)
		return
	}
	k.waiting = false
	k.offered = true
	c.m.stats.Offered++
	c.m.emit(Effect{Kind: Incoming, Call: k})
}

// present reports whether the peer has given a sign of life lately.
func (p *peer) present(now Time) bool {
	return p.reached != 0 && now-p.reached < reachMemory
}

// Idle returns for how long no data of a call has moved.
func (k *Call) Idle(now Time) time.Duration { return now - k.moved }
