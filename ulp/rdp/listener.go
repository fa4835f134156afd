package rdp

import (
	"context"
	"fmt"
	"net"
	"sync"

	"urnic/internal/wake"
	"urnic/ulp/rdp/machine"
)

// ErrListenerClosed is what Accept returns after Close. It wraps net.ErrClosed.
var ErrListenerClosed = fmt.Errorf("rdp: the listener: %w", net.ErrClosed)

// A Listener is a port that was opened passively.
type Listener struct {
	e     *Endpoint
	ml    *machine.Listener
	limit int // of what its connections send
	ready wake.One
	done  chan struct{} // closed when nothing comes any more
	over  sync.Once
}

// Port returns the RDP port.
func (l *Listener) Port() uint16 { return l.ml.Port() }

// Accept returns the next connection that was opened. It waits for one until the context ends, or the listener is closed:
// then the error wraps net.ErrClosed.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	for {
		l.e.mu.Lock()
		if mc := l.ml.Accept(); mc != nil {
			c := l.e.adopt(mc, l.limit)
			if mc.State() == machine.Closed {
				c.leave() // there may be data that was not read
			}
			l.ready.Wake() // there may be more, and somebody who waits
			l.e.unlock()
			return c, nil
		}
		closed := l.ml.State() != machine.Listen
		l.e.mu.Unlock()
		if closed {
			return nil, ErrListenerClosed
		}
		if err := l.ready.Wait(ctx, l.done); err != nil {
			return nil, err
		}
	}
}

// Close ends the passive open. Connections that Accept has not returned are closed.
func (l *Listener) Close() error {
	l.e.mu.Lock()
	defer l.e.unlock()
	return l.end(l.e.now())
}

// end is Close with the lock held.
func (l *Listener) end(now machine.Time) error {
	err := l.ml.Close(now)
	delete(l.e.listeners, l.ml)
	l.over.Do(func() { close(l.done) })
	return err
}
