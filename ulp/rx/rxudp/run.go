package rxudp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"urnic/internal/host/udp"
	"urnic/ulp/rx/machine"
)

// now is the machine's time.
func (e *Endpoint) now() machine.Time { return time.Since(e.start) }

// fail ends the endpoint as its socket has failed.
func (e *Endpoint) fail(err error) {
	e.mu.Lock()
	e.failure = err
	for c := range e.conns {
		c.mc.Close(e.now())
		c.wake()
	}
	e.unlock()
}

// unreachable notes that nobody is at a destination.
func (e *Endpoint) unreachable(to netip.AddrPort, _ []byte) {
	e.mu.Lock()
	e.m.Unreachable(e.now(), to)
	e.unlock()
}

// localFor is the endpoint's own address as a peer sees it, for recordings.
func (e *Endpoint) localFor(peer netip.AddrPort) netip.AddrPort {
	a := e.Addr()
	if a.Addr().IsUnspecified() {
		return netip.AddrPortFrom(e.links.source(peer.Addr()), a.Port())
	}
	return a
}

// ring is called when the timer rings.
func (e *Endpoint) ring() {
	e.mu.Lock()
	e.alarm = 0
	e.m.Advance(e.now())
	e.unlock()
}

// unlock is called with the lock held, after anything that the machine did. It carries out
// what follows, and releases the lock.
func (e *Endpoint) unlock() {
	e.carryOn()
	e.mu.Unlock()
}

// carryOn carries out what follows. It is called with the lock held, and releases it during
// system calls.
func (e *Endpoint) carryOn() {
	e.carryOut()
	e.arm()
	if !e.sending {
		e.transmit()
	}
}

// carryOut carries out the machine's effects.
func (e *Endpoint) carryOut() {
	for effects := e.m.Effects(); len(effects) > 0; effects = e.m.Effects() {
		for _, f := range effects {
			switch f.Kind {
			case machine.Incoming:
				e.incoming(f.Call)
			case machine.Changed:
				if w, ok := f.Call.Owner.(waiter); ok {
					w.changed()
				}
			case machine.Freed:
				if c, ok := f.Conn.Owner.(*conn); ok {
					c.wake()
				}
			}
		}
	}
	if e.draining {
		e.quiet.Broadcast()
	}
}

// A waiter is a call of a program, which may wait for it to change.
type waiter interface{ changed() }

// arm sets the timer to the machine's next deadline, unless it rings before.
func (e *Endpoint) arm() {
	at, ok := e.m.Deadline()
	if !ok || e.alarm != 0 && e.alarm <= at || e.closed {
		return
	}
	e.alarm = max(at, 1)
	e.timer.Reset(max(at-e.now(), 0))
}

// outboxes are shared, so that an idle endpoint has none.
var outboxes = sync.Pool{New: func() any { return new(udp.Outbox) }}

// turns is how often a goroutine sends for others before it has another one do so.
const turns = 16

// transmit sends what there is to send. It is called with the lock held, and releases it
// during system calls.
func (e *Endpoint) transmit() {
	e.sending = true
	var o *udp.Outbox
	for i := 0; ; i++ {
		if i == turns {
			go e.goOn()
			break
		}
		if o == nil {
			o = outboxes.Get().(*udp.Outbox)
		}
		if !e.fill(o) {
			e.sending = false
			break
		}
		e.mu.Unlock()
		err := e.sock.Send(o)
		o.Reset()
		e.mu.Lock()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			e.sendErrors.Add(1)
		}
		e.carryOut()
		e.arm()
	}
	outboxes.Put(o)
}

// goOn continues sending.
func (e *Endpoint) goOn() {
	e.mu.Lock()
	e.transmit()
	e.mu.Unlock()
}

// fill takes what the machine has to send. It reports whether there was anything.
func (e *Endpoint) fill(o *udp.Outbox) bool {
	now := e.now()
	for {
		b := o.Room(machine.MaxDatagram)
		if b == nil {
			break
		}
		n, to, ok := e.m.Pull(now, b)
		if !ok {
			break
		}
		if e.recorder != nil {
			e.recorder.Datagram(e.localFor(to), to, b[:n])
		}
		o.Add(n, to, e.sock.Joins())
	}
	return o.Len() > 0
}
