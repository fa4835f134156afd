package rdp

import (
	"context"
	"errors"
	"io"
	"net/netip"

	"urnic/internal/wake"
	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/machine"
)

// A Message is what Receive returns: data with its sequence number.
type Message = machine.Message

// A Status describes a connection.
type Status = machine.Status

// A Conn is a connection. Its methods may be called by many goroutines.
type Conn struct {
	e        *Endpoint
	mc       *machine.Conn
	readable wake.One
	writable wake.One
	bell     wake.Bell     // under the endpoint's lock
	over     chan struct{} // closed when nothing changes any more
	left     bool          // under the endpoint's lock
	refused  bool          // the same: nobody is at the host
}

// Send hands a message over. It waits while the window of the peer has no room, until the context ends. The message is
// copied. It has one byte at least, and at most Status().SendMax. That it was handed over does not mean that it has
// arrived: see Flush.
func (c *Conn) Send(ctx context.Context, data []byte) error {
	for {
		err := c.TrySend(data)
		if !errors.Is(err, machine.ErrWouldBlock) {
			return err
		}
		if err := c.writable.Wait(ctx, c.over); err != nil {
			return err
		}
	}
}

// TrySend is Send that does not wait: it returns machine.ErrWouldBlock instead.
func (c *Conn) TrySend(data []byte) error {
	c.e.mu.Lock()
	err := c.mc.Send(c.e.now(), data)
	if err == nil {
		c.writable.Wake() // whoever else waits looks whether there is more room
	}
	c.e.unlock()
	return err
}

// SendAll sends messages in turn. Those that the window has room for leave together. It returns how many were handed
// over.
func (c *Conn) SendAll(ctx context.Context, messages ...[]byte) (int, error) {
	n := 0
	for {
		k, err := c.TrySendAll(messages[n:]...)
		n += k
		if !errors.Is(err, machine.ErrWouldBlock) {
			return n, err
		}
		if err := c.writable.Wait(ctx, c.over); err != nil {
			return n, err
		}
	}
}

// TrySendAll is SendAll that does not wait: with machine.ErrWouldBlock there was no room for the rest.
func (c *Conn) TrySendAll(messages ...[]byte) (n int, err error) {
	c.e.mu.Lock()
	defer c.e.unlock()
	now := c.e.now()
	for ; n < len(messages); n++ {
		if err := c.mc.Send(now, messages[n]); err != nil {
			return n, err
		}
	}
	c.writable.Wake() // whoever else waits looks whether there is more room
	return n, nil
}

// AwaitRoom waits until Send may have room, or has an error to return.
func (c *Conn) AwaitRoom(ctx context.Context) error { return c.writable.Wait(ctx, c.over) }

// Receive returns the next message. It waits for one until the context ends. Once the connection has ended and all was
// read, it returns io.EOF if this side has closed it, or the peer, which RST does not tell from a failure: then the error
// is a *machine.ConnError that wraps machine.ErrReset.
func (c *Conn) Receive(ctx context.Context) (Message, error) {
	for {
		msg, err := c.TryReceive()
		if !errors.Is(err, machine.ErrWouldBlock) {
			return msg, err
		}
		if err := c.readable.Wait(ctx, c.over); err != nil {
			return Message{}, err
		}
	}
}

// TryReceive is Receive that does not wait: it returns machine.ErrWouldBlock instead.
func (c *Conn) TryReceive() (Message, error) {
	c.e.mu.Lock()
	msg, err := c.mc.Receive()
	if err == nil {
		c.readable.Wake() // whoever else waits looks whether there is more
	}
	c.e.unlock()
	if errors.Is(err, machine.ErrNotOpen) {
		err = io.EOF
	}
	return msg, err
}

// TryReceiveAll appends the messages that there are to a slice, as many as it has capacity for. It does not wait: an error
// comes with no message.
func (c *Conn) TryReceiveAll(into []Message) ([]Message, error) {
	c.e.mu.Lock()
	defer c.e.unlock()
	had := len(into)
	for len(into) < cap(into) {
		msg, err := c.mc.Receive()
		if err != nil {
			if len(into) > had {
				break
			}
			if errors.Is(err, machine.ErrNotOpen) {
				err = io.EOF
			}
			return into, err
		}
		into = append(into, msg)
	}
	c.readable.Wake()
	return into, nil
}

// AwaitMessage waits until Receive has something to return, be it an error.
func (c *Conn) AwaitMessage(ctx context.Context) error {
	for {
		c.e.mu.Lock()
		s := c.mc.Status()
		c.e.mu.Unlock()
		if s.Queued > 0 || s.State != machine.Open {
			c.readable.Wake() // for whoever else waits
			return nil
		}
		if err := c.readable.Wait(ctx, c.over); err != nil {
			return err
		}
	}
}

// Free gives the data of messages back, for the next ones. It is optional.
func (c *Conn) Free(messages ...Message) {
	c.e.mu.Lock()
	for _, msg := range messages {
		c.e.m.Free(msg.Data)
	}
	c.e.mu.Unlock()
}

// Status returns the state of the connection.
func (c *Conn) Status() Status {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.mc.Status()
}

// Err returns why the connection has ended: a *machine.ConnError, or nil if it has not or was closed by Close.
func (c *Conn) Err() error {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.mc.Err()
}

// Wait waits until the status is as wanted, without polling: whenever a message has arrived or was accepted, or the state
// has changed. It returns an error if the context ends, or if the connection has ended without that.
func (c *Conn) Wait(ctx context.Context, wanted func(Status) bool) error {
	for {
		c.e.mu.Lock()
		s := c.mc.Status()
		if wanted(s) {
			c.e.mu.Unlock()
			return nil
		}
		if s.State == machine.Closed || c.left {
			err := c.mc.Err()
			c.e.mu.Unlock()
			if err == nil {
				err = machine.ErrNotOpen
			}
			return err
		}
		heard := c.bell.Heard()
		c.e.mu.Unlock()
		if err := wake.Await(ctx, heard, c.over); err != nil {
			return err
		}
	}
}

// Flush waits until the peer has accepted all that was sent: then it is safe to close. Accepted is not read.
func (c *Conn) Flush(ctx context.Context) error {
	err := c.Wait(ctx, func(s Status) bool { return s.Unacknowledged == 0 || s.State != machine.Open })
	if err != nil {
		return err
	}
	if s := c.Status(); s.Unacknowledged > 0 {
		if err := c.Err(); err != nil {
			return err
		}
		return machine.ErrNotOpen
	}
	return nil
}

// Report tells the connection's congestion control what code in the path says.
func (c *Conn) Report(r congestion.Report) {
	c.e.mu.Lock()
	c.mc.Report(c.e.now(), r)
	c.e.unlock()
}

// Close ends the connection at once: the peer is notified, and what it has not acknowledged is lost. The connection stays in
// CLOSE-WAIT for a while, which keeps its ports from being used again too soon.
func (c *Conn) Close() error {
	c.e.mu.Lock()
	err := c.mc.Close(c.e.now())
	c.leave()
	c.e.unlock()
	return err
}

// leave ends all waits, as nothing more comes. It is called with the lock held.
func (c *Conn) leave() {
	if !c.left {
		c.left = true
		delete(c.e.conns, c.mc)
		close(c.over)
		c.e.quiet.Ring()
	}
}

// Version returns the version of RDP, 1 or 2.
func (c *Conn) Version() uint8 { return c.mc.Name().Version }

// LocalPort and RemotePort return the RDP ports.
func (c *Conn) LocalPort() uint16 { return c.mc.Name().Local }

// RemotePort returns the peer's RDP port.
func (c *Conn) RemotePort() uint16 { return c.mc.Name().Remote }

// RemoteHost returns the address of the peer's carrier.
func (c *Conn) RemoteHost() netip.AddrPort { return c.mc.Name().Path.Remote }

// Sequenced reports whether messages are delivered in the order in which they were sent.
func (c *Conn) Sequenced() bool {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return c.mc.Sequenced()
}
