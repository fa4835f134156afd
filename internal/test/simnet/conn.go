package simnet

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// DefaultBuffer is how many octets may be on their way in one direction.
const DefaultBuffer = 256 << 10

// Options says what the two streams of a Pipe are like. A is the end that
// dialled, B the one that accepted.
type Options struct {
	AB, BA Faults
	MSS    int // what the streams say of their segment size, in octets; 0: they can't tell
	Buffer int // octets on their way in one direction; 0: DefaultBuffer

	Polls bool // the streams say that they can be polled

	Host net.IP // of the end that dials; nil: 192.0.2.1
}

// A Conn is one end of a stream. It is a net.Conn, and can be used without
// waiting.
type Conn struct {
	in, out       *half
	local, remote net.Addr
	mss           int
	polls         bool
	readBy        deadline
	writeBy       deadline
	closed        atomic.Bool
}

// Pipe returns the two ends of a stream.
func Pipe(o Options) (a, b *Conn) {
	return pipe(o, addr(1, 49152), addr(2, 7174))
}

func addr(host byte, port int) *net.TCPAddr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, host).To4(), Port: port}
}

func pipe(o Options, aAddr, bAddr net.Addr) (a, b *Conn) {
	limit := o.Buffer
	if limit == 0 {
		limit = DefaultBuffer
	}
	ab, ba := newHalf(o.AB, limit), newHalf(o.BA, limit)
	a = &Conn{in: ba, out: ab, local: aAddr, remote: bAddr, mss: o.MSS, polls: o.Polls}
	b = &Conn{in: ab, out: ba, local: bAddr, remote: aAddr, mss: o.MSS, polls: o.Polls}
	return a, b
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return c.ReadInto(func() []byte { return p }, func() {})
}

// ReadInto waits until there is something to read and then reads it into the
// buffer that get returns. While it waits, it holds none.
func (c *Conn) ReadInto(get func() []byte, unget func()) (int, error) {
	for {
		n, err := c.TryRead(get())
		if n > 0 || err != nil {
			return n, err
		}
		unget()
		if err := c.in.wait(readable, &c.readBy); err != nil {
			return 0, c.opError("read", err)
		}
	}
}

// Polls returns what the Options say.
func (c *Conn) Polls() bool { return c.polls }

// TryRead reads what is there.
func (c *Conn) TryRead(p []byte) (int, error) {
	if err := c.usable(&c.readBy); err != nil {
		return 0, c.opError("read", err)
	}
	n, err := c.in.take(p)
	return n, c.opError("read", err)
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n, err := c.Writev([][]byte{p[written:]}, true)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Writev writes pieces; without wait, it takes only what there is room for.
func (c *Conn) Writev(pieces [][]byte, wait bool) (int, error) {
	wait = wait && slices.ContainsFunc(pieces, func(p []byte) bool { return len(p) > 0 })
	for {
		if err := c.usable(&c.writeBy); err != nil {
			return 0, c.opError("write", err)
		}
		n, cut, err := c.out.put(pieces)
		if cut {
			c.reset(syscall.ECONNRESET)
		}
		if n > 0 || err != nil || !wait {
			return n, c.opError("write", err)
		}
		if err := c.out.wait(writable, &c.writeBy); err != nil {
			return 0, c.opError("write", err)
		}
	}
}

// usable says why nothing can be done before d, if that is so: like a socket, a
// Conn whose deadline has passed does not even what it could do at once.
func (c *Conn) usable(d *deadline) error {
	switch {
	case c.closed.Load():
		return net.ErrClosed
	case d.over():
		return os.ErrDeadlineExceeded
	}
	return nil
}

// MSS returns the segment size of the Options.
func (c *Conn) MSS() int { return c.mss }

// CloseWrite ends this end's direction: the peer reads io.EOF after the rest.
func (c *Conn) CloseWrite() error {
	if c.closed.Load() {
		return c.opError("close", net.ErrClosed)
	}
	return c.opError("close", c.out.end())
}

// Close closes this end. Like TCP, it resets the connection if there is
// something that was never read.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return c.opError("close", net.ErrClosed)
	}
	c.in.mu.Lock()
	unread := c.in.size > 0
	c.in.mu.Unlock()
	if unread {
		c.reset(syscall.ECONNRESET)
		return nil
	}
	_ = c.out.end() // after a reset, closing is all that is left
	c.in.fail(syscall.EPIPE)
	return nil
}

// Abort resets the connection.
func (c *Conn) Abort() error {
	if c.closed.Swap(true) {
		return c.opError("close", net.ErrClosed)
	}
	c.reset(syscall.ECONNRESET)
	return nil
}

func (c *Conn) reset(err error) {
	c.in.fail(err)
	c.out.fail(err)
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}

// opError says whose error it is; io.EOF stays as it is.
func (c *Conn) opError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "sim", Source: c.local, Addr: c.remote, Err: err}
}

// Plain hides from others that c can be used without waiting.
func Plain(c *Conn) net.Conn { return plain{c} }

type plain struct{ c *Conn }

func (p plain) Read(b []byte) (int, error)         { return p.c.Read(b) }
func (p plain) Write(b []byte) (int, error)        { return p.c.Write(b) }
func (p plain) Close() error                       { return p.c.Close() }
func (p plain) CloseWrite() error                  { return p.c.CloseWrite() }
func (p plain) LocalAddr() net.Addr                { return p.c.LocalAddr() }
func (p plain) RemoteAddr() net.Addr               { return p.c.RemoteAddr() }
func (p plain) SetDeadline(t time.Time) error      { return p.c.SetDeadline(t) }
func (p plain) SetReadDeadline(t time.Time) error  { return p.c.SetReadDeadline(t) }
func (p plain) SetWriteDeadline(t time.Time) error { return p.c.SetWriteDeadline(t) }
