package rdpstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

// The kinds of messages.
const (
	data byte = 0
	end  byte = 1
)

// DefaultLinger is how long Close waits for the peer to accept what was written.
const DefaultLinger = 30 * time.Second

// A Conn is a stream. It is a net.Conn.
type Conn struct {
	rdp           *rdp.Conn
	local, remote Addr
	reading       deadline
	writing       deadline

	read  sync.Mutex // what follows
	rest  []byte     // of a message that was read in part
	whole rdp.Message
	ended bool // the peer's end mark has come

	write  sync.Mutex // what follows
	arena  []byte
	frames [][]byte
	room   int  // bytes of data in a message
	shut   bool // the end mark was sent

	mu     sync.Mutex
	linger time.Duration
	closed bool
}

var _ net.Conn = (*Conn)(nil)

func newConn(c *rdp.Conn, local Addr) *Conn {
	s := &Conn{rdp: c, local: local, remote: Addr{Host: c.RemoteHost(), Port: c.RemotePort()}, linger: DefaultLinger}
	s.local.Port = c.LocalPort()
	s.room = c.Status().Room - 1
	s.reading.init()
	s.writing.init()
	return s
}

// Read reads what has come, and waits if that is nothing. The error is io.EOF after the peer's end mark.
func (c *Conn) Read(b []byte) (int, error) {
	c.read.Lock()
	defer c.read.Unlock()
	if c.isClosed() {
		return 0, c.failed("read", net.ErrClosed)
	}
	if c.reading.expired() {
		return 0, c.failed("read", os.ErrDeadlineExceeded)
	}
	if len(b) == 0 {
		return 0, nil
	}
	for len(c.rest) == 0 {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) == 0 {
		c.rdp.Free(c.whole)
		c.whole = rdp.Message{}
	}
	return n, nil
}

// next takes the next message.
func (c *Conn) next() error {
	msg, err := c.rdp.Receive(c.reading.context())
	switch {
	case err != nil && c.isClosed():
		return c.failed("read", net.ErrClosed)
	case errors.Is(err, io.EOF): // without an end mark
		return c.failed("read", io.ErrUnexpectedEOF)
	case err != nil:
		return c.failed("read", err)
	}
	switch kind := msg.Data[0]; {
	case kind == data && len(msg.Data) > 1:
		c.whole, c.rest = msg, msg.Data[1:]
	case kind == end && len(msg.Data) == 1:
		c.ended = true
	default:
		return c.failed("read", fmt.Errorf("a message of kind %d with %d bytes: the peer does not speak rdpstream", kind, len(msg.Data)-1))
	}
	return nil
}

// Write writes all of b, and waits while the peer's window is full.
func (c *Conn) Write(b []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	switch {
	case c.isClosed() || c.shut:
		return 0, c.failed("write", net.ErrClosed)
	case c.writing.expired():
		return 0, c.failed("write", os.ErrDeadlineExceeded)
	case c.room < 1:
		return 0, c.failed("write", errors.New("the peer's messages have no room for data"))
	}
	written := 0
	for written < len(b) {
		n := c.frame(b[written:])
		sent, err := c.rdp.SendAll(c.writing.context(), c.frames...)
		if err != nil {
			for _, f := range c.frames[:sent] {
				written += len(f) - 1
			}
			if c.isClosed() {
				err = net.ErrClosed
			}
			return written, c.failed("write", err)
		}
		written += n
	}
	return written, nil
}

// atOnce is how many bytes are made into messages at once.
const atOnce = 256 << 10

// frame makes messages of the beginning of b, and returns how much of it.
func (c *Conn) frame(b []byte) (n int) {
	c.arena, c.frames = c.arena[:0], c.frames[:0]
	if c.arena == nil {
		c.arena = make([]byte, 0, atOnce)
	}
	for n < len(b) {
		k := min(c.room, len(b)-n)
		at := len(c.arena)
		if at+1+k > cap(c.arena) && at > 0 {
			break
		}
		c.arena = append(append(c.arena, data), b[n:n+k]...)
		c.frames = append(c.frames, c.arena[at:])
		n += k
	}
	return n
}

// CloseWrite tells the peer that nothing more is written; reading continues.
func (c *Conn) CloseWrite() error {
	c.write.Lock()
	defer c.write.Unlock()
	if c.isClosed() {
		return c.failed("close", net.ErrClosed)
	}
	if err := c.sendEnd(c.writing.context()); err != nil {
		return c.failed("close", err)
	}
	return nil
}

// sendEnd sends the end mark once. It is called with write held.
func (c *Conn) sendEnd(ctx context.Context) error {
	if c.shut {
		return nil
	}
	err := c.rdp.Send(ctx, []byte{end})
	c.shut = err == nil
	return err
}

// SetLinger sets for how long after Close the peer may take to accept what was written; 0 or less: no time, so that it may
// be lost.
func (c *Conn) SetLinger(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger = d
}

// Close ends the stream and returns at once. What was written is sent on its way to the peer, which may take as long as
// SetLinger says to accept it; rdp.Endpoint.Shutdown waits for that. What the peer writes is dropped.
func (c *Conn) Close() error {
	linger, err := c.begin()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), linger, errNotAccepted)
	go func() {
		defer cancel()
		c.finish(ctx) //nolint:errcheck // there is nobody to tell: CloseContext does
	}()
	return nil
}

// CloseContext is Close that waits until the peer has accepted all that was written, or the context ends. Its error says that
// something may be lost.
func (c *Conn) CloseContext(ctx context.Context) error {
	if _, err := c.begin(); err != nil {
		return err
	}
	return c.finish(ctx)
}

// begin ends what waits, and returns how long the peer has.
func (c *Conn) begin() (linger time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, c.failed("close", net.ErrClosed)
	}
	c.closed = true
	c.reading.set(time.Unix(1, 0))
	c.writing.set(time.Unix(1, 0))
	return max(c.linger, 0), nil
}

// finish ends the connection when the peer has accepted all.
func (c *Conn) finish(ctx context.Context) error {
	var err error
	if c.rdp.Status().State == machine.Open {
		err = c.drain(ctx)
	}
	lost := c.lost()
	if lost > 0 && err == nil {
		err = c.rdp.Err()
	}
	c.rdp.Close() //nolint:errcheck // the peer may have closed it
	if lost > 0 && err != nil {
		return c.failed("close", err)
	}
	return nil // the peer may have closed as soon as it had all
}

// drain sends the end mark, and waits until all was accepted.
func (c *Conn) drain(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	drained := make(chan struct{})
	go func() { // the peer may wait for room to write before it reads
		defer close(drained)
		for {
			msg, err := c.rdp.Receive(ctx)
			if err != nil {
				return
			}
			c.rdp.Free(msg)
		}
	}()
	defer func() {
		cancel()
		<-drained
	}()
	c.write.Lock()
	err := c.sendEnd(ctx)
	c.write.Unlock()
	if err == nil {
		err = c.rdp.Flush(ctx)
	}
	return err
}

// lost returns how many messages with data the peer has not accepted. The end mark is none.
func (c *Conn) lost() int {
	c.write.Lock()
	defer c.write.Unlock()
	n := c.rdp.Status().Unacknowledged
	if c.shut && n > 0 {
		n--
	}
	return n
}

var errNotAccepted = errors.New("the peer has not accepted all that was written in time: it may be lost")

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *Conn) failed(op string, err error) error {
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// LocalAddr returns this end's Addr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the peer's Addr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets when reads and writes fail with os.ErrDeadlineExceeded; the zero Time: never.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline sets it for reads.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadline(&c.reading, t) }

// SetWriteDeadline sets it for writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(&c.writing, t) }

func (c *Conn) setDeadline(d *deadline, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.failed("set", net.ErrClosed)
	}
	d.set(t)
	return nil
}

// Status returns the state of the connection below.
func (c *Conn) Status() rdp.Status { return c.rdp.Status() }
