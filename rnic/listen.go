package rnic

import (
	"context"
	"errors"
	"net"
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

// Listen listens at host:port; an empty host stands for all addresses, port 0
// for a free one. It returns an *OpError that wraps a *pd.LimitError or an error
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

// run takes byte streams and has their Requests read. A connection whose Request
// is not in holds a token; while all are taken, one waits here and further ones
// in the network's queue.
func (l *Listener) run() {
	const longest = time.Second
	pause := time.Millisecond
	for {
		c, err := l.net.Accept()
		if err != nil {
			if l.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			l.dev.log.Warn("accept failed", "listener", l.Addr().String(), "error", err)
			select { // no descriptors left, perhaps: others may close some
			case <-time.After(pause):
			case <-l.ctx.Done():
				return
			}
			pause = min(2*pause, longest)
			continue
		}
		pause = time.Millisecond
		select {
		case l.dev.halfOpen <- struct{}{}:
			l.wg.Go(func() { l.receive(c) })
		case <-l.ctx.Done():
			_ = c.Close() // nobody will answer it
			return
		}
	}
}

// receive reads the Request of one byte stream and queues it. The caller has
// taken a token, which is given back then: how slowly a program answers is no
// concern of other listeners.
func (l *Listener) receive(c net.Conn) {
	d := l.dev
	defer func() { <-d.halfOpen }()
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
	req, err := mpa.ReceiveRequest(l.ctx, c, cfg)
	if err != nil {
		d.stats.failed.Add(1)
		d.log.Info("start-up failed", "device", d.cfg.Name, "peer", r.remote.String(), "error", err)
		r.forget()
		return
	}
	r.wait(req)
	if !l.queue.offer(r) {
		r.turnAway()
	}
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
