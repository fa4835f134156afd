package rnic

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"urnic/pd"
	"urnic/rnic/internal/cm"
)

// A Listener accepts connections to one address.
type Listener struct {
	dev    *Device
	lower  LLPListener
	queue  mailbox[*ConnRequest] // that Accept has not returned
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // of its goroutines
	once   sync.Once
	err    error // of Close
}

// Listen listens at host:port, or at whatever Config.LowerLayer takes for an address. An empty host stands for all addresses, 0.0.0.0 for all
// of IPv4, [::] for all of IPv6, and port 0 for a free port. It returns an *OpError that wraps a *pd.LimitError or an error of the network.
func (d *Device) Listen(ctx context.Context, address string) (*Listener, error) {
	op := "listen at " + address
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if ctx == nil {
		return nil, d.fail(op, ErrNoContext)
	}
	return d.listen(op, func() (LLPListener, error) { return d.lower.Listen(ctx, address) })
}

// ListenOn listens for MPA over byte streams that n accepts, such as those of a socket that is already bound.
// It ignores Config.LowerLayer. The Listener that it returns closes n. If ListenOn fails, it closes n and
// returns an *OpError that wraps a *pd.LimitError or ErrClosed.
func (d *Device) ListenOn(n net.Listener) (*Listener, error) {
	const op = "listen"
	switch {
	case !d.made():
		return nil, notMade(op, "device")
	case n == nil:
		return nil, d.fail(op, errNoListener)
	}
	l, err := d.listen(op, func() (LLPListener, error) { return &mpaListener{n, &d.mpa}, nil })
	if err != nil {
		_ = n.Close() // err says why
	}
	return l, err
}

var errNoListener = errors.New("there is nothing to listen on")

func (d *Device) listen(op string, open func() (LLPListener, error)) (*Listener, error) {
	if err := d.manager.Reserve(pd.Listeners, 1); err != nil {
		return nil, d.fail(op, err)
	}
	n, err := open()
	if err != nil {
		d.manager.Release(pd.Listeners, 1)
		return nil, d.fail(op, err)
	}
	l := &Listener{dev: d, lower: n}
	l.queue.limit = acceptQueue
	l.ctx, l.cancel = context.WithCancelCause(d.ctx)
	l.wg.Go(l.run)
	if err := d.add(d.listeners, l); err != nil {
		_ = l.Close() // the device is closed: nothing will accept
		return nil, d.fail(op, err)
	}
	return l, nil
}

// made reports whether Listen has made the listener.
func (l *Listener) made() bool { return l != nil && l.dev != nil }

// Addr returns the address at which the listener listens.
func (l *Listener) Addr() net.Addr {
	if !l.made() {
		return nil
	}
	return l.lower.Addr()
}

// Device returns the device that the listener belongs to.
func (l *Listener) Device() *Device {
	if !l.made() {
		return nil
	}
	return l.dev
}

func (l *Listener) fail(op string, err error) error {
	return &OpError{Op: op, Object: "listener " + l.Addr().String(), Err: err}
}

// run accepts connections and has their requests read, see cm.Arrivals. While there is
// no slot for one, further ones wait in the lower layer's queue.
func (l *Listener) run() {
	pause := shortestPause
	for {
		c, err := l.lower.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.failed(err, pause)
			pause = min(2*pause, longestPause)
			continue
		}
		pause = shortestPause
		v := l.dev.arrivals.Enter(l.ctx, c.RemoteAddr())
		if v == nil {
			_ = c.Close() // nothing will answer it
			return
		}
		l.wg.Go(func() { l.receive(c, v) })
	}
}

// How long a listener rests after an error of the network, twice as long each time.
const (
	shortestPause = time.Millisecond
	longestPause  = 64 * shortestPause
)

// failed rests after an error of the lower layer's Accept. Perhaps there are no descriptors left. An
// arrival closes its own, and other parts of the program may close some.
func (l *Listener) failed(err error, pause time.Duration) {
	if pause == shortestPause { // the first in a row
		l.dev.log.Warn("accept failed", "listener", l.Addr().String(), "error", err)
	}
	l.dev.arrivals.Shed()
	select {
	case <-time.After(pause):
	case <-l.ctx.Done():
	}
}

// receive reads the Request of an arrival and queues it. That frees the slot: a
// program that answers slowly must not delay other listeners.
func (l *Listener) receive(c LLPArrival, v *cm.Arrival) {
	d := l.dev
	defer d.arrivals.Leave(v)
	if err := d.manager.Reserve(pd.HalfOpen, 1); err != nil {
		_ = c.Close()
		return
	}
	defer d.manager.Release(pd.HalfOpen, 1)
	r := &ConnRequest{dev: d, remote: c.RemoteAddr(), local: c.LocalAddr()}
	req, err := c.Receive(v.Context)
	if err != nil {
		d.stats.failed.Add(1)
		d.log.Info("start-up failed", "device", d.cfg.Name, "peer", r.remote.String(), "error", err)
		return
	}
	r.wait(req, func() { l.queue.discard(func(o *ConnRequest) bool { return o == r }) })
	if out, ok := l.queue.squeeze(r, fairly); ok {
		out.turnAway()
	}
}

// fairly selects the request of a full queue that is dropped for the new one,
// which is the last: the youngest of the host that has most. So one host alone
// can't fill the queue.
func fairly(queue []*ConnRequest) int {
	n := make(map[string]int)
	for _, r := range queue {
		n[cm.HostOf(r.remote)]++
	}
	out := len(queue) - 1
	for i, r := range slices.Backward(queue) {
		if n[cm.HostOf(r.remote)] > n[cm.HostOf(queue[out].remote)] {
			out = i
		}
	}
	return out
}

// Accept waits for a connection request. It skips those whose peers have closed
// the connection meanwhile. It returns an *OpError that wraps the context's
// error, or ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*ConnRequest, error) {
	const op = "accept"
	if !l.made() {
		return nil, notMade(op, "listener")
	}
	if ctx == nil {
		return nil, l.fail(op, ErrNoContext)
	}
	for {
		changed := l.queue.wait()
		if r, ok := l.queue.take(); ok {
			if r.isOver() { // it was about to be taken out of the queue
				continue
			}
			return r, nil
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return nil, l.fail(op, ErrClosed)
		case <-ctx.Done():
			return nil, l.fail(op, context.Cause(ctx))
		}
	}
}

// Close stops listening, and drops the requests that Accept has not returned.
func (l *Listener) Close() error {
	if !l.made() {
		return notMade("close", "listener")
	}
	l.once.Do(func() {
		l.cancel(ErrClosed)
		l.err = l.lower.Close()
		l.wg.Wait()
		_ = l.queue.close() // it has no descriptor
		for {
			r, ok := l.queue.take()
			if !ok {
				break
			}
			_ = r.Close() // nothing will accept it
		}
		l.dev.manager.Release(pd.Listeners, 1)
		l.dev.remove(l.dev.listeners, l)
	})
	if l.err != nil {
		return l.fail("close", l.err)
	}
	return nil
}
