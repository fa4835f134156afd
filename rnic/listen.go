package rnic

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"urnic/mpa"
	"urnic/pd"
)

// A Listener accepts connections to one address.
type Listener struct {
	dev    *Device
	net    net.Listener
	queue  mailbox[*ConnRequest] // that Accept has not returned
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // of its goroutines
	once   sync.Once
	err    error // of Close
}

// Listen listens at host:port; an empty host stands for all addresses, 0.0.0.0 for those
// of IPv4 alone, [::] for those of IPv6 alone, and port 0 for a free one. It returns an *OpError that wraps a *pd.LimitError or an error
// of the network.
func (d *Device) Listen(ctx context.Context, address string) (*Listener, error) {
	op := "listen at " + address
	if !d.made() {
		return nil, notMade(op, "device")
	}
	if ctx == nil {
		return nil, d.fail(op, ErrNoContext)
	}
	return d.listen(op, func() (net.Listener, error) { return d.network.Listen(ctx, address) })
}

// ListenOn listens for byte streams that n accepts, such as those of a socket that
// is bound already. The listener of the device closes n, and so does ListenOn if
// it fails, with an *OpError that wraps a *pd.LimitError or ErrClosed.
func (d *Device) ListenOn(n net.Listener) (*Listener, error) {
	const op = "listen"
	switch {
	case !d.made():
		return nil, notMade(op, "device")
	case n == nil:
		return nil, d.fail(op, errNoListener)
	}
	l, err := d.listen(op, func() (net.Listener, error) { return n, nil })
	if err != nil {
		_ = n.Close() // err says why
	}
	return l, err
}

var errNoListener = errors.New("there is nothing to listen on")

func (d *Device) listen(op string, open func() (net.Listener, error)) (*Listener, error) {
	if err := d.manager.Reserve(pd.Listeners, 1); err != nil {
		return nil, d.fail(op, err)
	}
	n, err := open()
	if err != nil {
		d.manager.Release(pd.Listeners, 1)
		return nil, d.fail(op, err)
	}
	l := &Listener{dev: d, net: n}
	l.queue.limit = acceptQueue
	l.ctx, l.cancel = context.WithCancelCause(d.ctx)
	l.wg.Go(l.run)
	if err := add(d, d.listeners, closer(l)); err != nil {
		_ = l.Close() // the device is closed: nobody will accept
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
	return l.net.Addr()
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

// run takes byte streams and has their Requests read, see arrivals. While there is no
// place for one, further ones wait in the network's queue.
func (l *Listener) run() {
	pause := shortestPause
	for {
		c, err := l.net.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.failed(err, pause)
			pause = min(2*pause, longestPause)
			continue
		}
		pause = shortestPause
		v := l.dev.arrivals.enter(l.ctx, c.RemoteAddr())
		if v == nil {
			_ = c.Close() // nobody will answer it
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

// failed rests after an error of Accept. Perhaps there are no descriptors left: an
// arrival gives its own up, and others may close some.
func (l *Listener) failed(err error, pause time.Duration) {
	if pause == shortestPause { // the first of a row
		l.dev.log.Warn("accept failed", "listener", l.Addr().String(), "error", err)
	}
	l.dev.arrivals.shed()
	select {
	case <-time.After(pause):
	case <-l.ctx.Done():
	}
}

// receive reads the Request of an arrival and queues it. The place is given back
// then: how slowly a program answers is no concern of other listeners.
func (l *Listener) receive(c net.Conn, v *arrival) {
	d := l.dev
	defer d.arrivals.leave(v)
	if err := d.manager.Reserve(pd.HalfOpen, 1); err != nil {
		_ = c.Close()
		return
	}
	defer d.manager.Release(pd.HalfOpen, 1)
	r := &ConnRequest{dev: d, listener: l, remote: c.RemoteAddr(), local: c.LocalAddr(), stream: d.recordStream(c, false)}
	cfg := d.cfg.MPA
	if r.stream != nil {
		cfg.Recorder = r.stream
	}
	req, err := mpa.ReceiveRequest(v.ctx, c, cfg)
	if err != nil {
		d.stats.failed.Add(1)
		d.log.Info("start-up failed", "device", d.cfg.Name, "peer", r.remote.String(), "error", err)
		r.forget()
		return
	}
	r.wait(req)
	if out, ok := l.queue.squeeze(r, fairly); ok {
		out.turnAway()
	}
}

// fairly says which request of a full queue has to go for a new one, which is the
// last: the youngest of the host that has most. So one host alone can't fill it.
func fairly(queue []*ConnRequest) int {
	n := make(map[string]int)
	for _, r := range queue {
		n[hostOf(r.remote)]++
	}
	out := len(queue) - 1
	for i, r := range slices.Backward(queue) {
		if n[hostOf(r.remote)] > n[hostOf(queue[out].remote)] {
			out = i
		}
	}
	return out
}

// Accept waits for a connection request; those whose peers have gone meanwhile
// are passed over. It returns an *OpError that wraps the context's error, or
// ErrClosed.
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

// Close stops listening. Requests that Accept has not returned are dropped.
func (l *Listener) Close() error {
	if !l.made() {
		return notMade("close", "listener")
	}
	l.once.Do(func() {
		l.cancel(ErrClosed)
		l.err = l.net.Close()
		l.wg.Wait()
		_ = l.queue.close() // it has no descriptor
		for {
			r, ok := l.queue.take()
			if !ok {
				break
			}
			_ = r.Close() // nobody will accept it
		}
		l.dev.manager.Release(pd.Listeners, 1)
		remove(l.dev, l.dev.listeners, closer(l))
	})
	if l.err != nil {
		return l.fail("close", l.err)
	}
	return nil
}
