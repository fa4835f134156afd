package oncrpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// A dialing makes a connection for those calls that wait for it.
type dialing struct {
	stop    context.CancelFunc
	waiting int
	last    error // of the last dial

	done chan struct{} // closed once there is conn or err
	conn *link
	err  error
}

// ended reports whether a connection is of no use any more.
func ended(c Conn) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// connect returns a connection. If there is none, it waits for the one that is being
// made, which it has made if nobody else has.
func (c *Client) connect(ctx context.Context) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	if conn := c.conn; conn != nil {
		if !ended(conn) {
			c.mu.Unlock()
			return conn, nil
		}
		c.conn = nil
		c.bg.Go(func() { _ = conn.Close() }) // it has ended already
	}
	d := c.dialer
	if d == nil {
		d = &dialing{done: make(chan struct{})}
		var life context.Context
		life, d.stop = context.WithCancel(c.life)
		c.dialer = d
		c.bg.Go(func() {
			defer d.stop()
			c.redial(life, d)
		})
	}
	d.waiting++
	c.mu.Unlock()

	select {
	case <-d.done:
		return d.conn, d.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d.waiting--; d.waiting == 0 && c.dialer == d { // nobody wants it any more
		c.dialer = nil
		d.stop()
	}
	if d.last != nil {
		return nil, fmt.Errorf("oncrpc: there is no connection: %w: %w", d.last, ctx.Err())
	}
	return nil, ctx.Err()
}

// redial dials until there is a connection or no hope, or nobody waits for it any more.
func (c *Client) redial(ctx context.Context, d *dialing) {
	for try := 1; ; try++ {
		c.pause(ctx)
		limited, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
		conn, err := c.dial(limited)
		cancel()
		if c.dialled(ctx, d, try, conn, err) {
			return
		}
	}
}

// errNoConn says that a Dial has brought neither of what it should.
var errNoConn = errors.New("oncrpc: the dial has returned neither a connection nor an error")

// dialed takes note of what a dial has brought, and reports whether it was the last.
func (c *Client) dialled(ctx context.Context, d *dialing, try int, conn Conn, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vain++
	c.dialed = time.Now()
	if conn == nil && err == nil {
		err = errNoConn
	}
	switch {
	case c.closed:
		d.err = ErrClosed
	case ctx.Err() != nil: // nobody waits
		d.err = ctx.Err()
	case err == nil:
		d.conn = &link{conn}
		c.conn = d.conn
		c.dialer = nil
		close(d.done)
		return true
	case c.cfg.Dials > 0 && try >= c.cfg.Dials:
		d.err = err
	default:
		d.last = err
		return false
	}
	if c.dialer == d {
		c.dialer = nil
	}
	if err == nil {
		_ = conn.Close() // nobody has used it
	}
	close(d.done)
	return true
}

// pause waits for as long as the dials before that have brought nothing demand.
func (c *Client) pause(ctx context.Context) {
	c.mu.Lock()
	wait := c.backoff() - time.Since(c.dialed)
	c.mu.Unlock()
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// backoff returns how long after the last dial the next one may begin.
func (c *Client) backoff() time.Duration {
	if c.vain == 0 {
		return 0
	}
	d := c.cfg.Backoff
	for i := 1; i < c.vain && d < c.cfg.BackoffMost; i++ {
		d += min(d, c.cfg.BackoffMost-d)
	}
	return d - rand.N(d/3+1)
}

// proven takes note that a connection has brought a reply.
func (c *Client) proven(conn *link) {
	c.mu.Lock()
	if c.conn == conn {
		c.vain = 0
	}
	c.mu.Unlock()
}

// drop gives a connection up that was lost.
func (c *Client) drop(conn *link) {
	c.mu.Lock()
	if c.conn == conn {
		c.conn = nil
	}
	c.mu.Unlock()
	_ = conn.Close() // what it lost is known
}
