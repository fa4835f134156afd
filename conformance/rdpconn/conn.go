package rdpconn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"urnic/conformance/wire"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
)

// ahead is how many messages are taken before somebody reads them, as TCP takes some into its buffer. RDP acknowledges what
// was taken: a target that waits for the acknowledgement of its last message has it, though the case reads no more. What
// is not taken keeps RDP's window closed, as a peer does that does not read.
const ahead = 16

// A Conn is a connection of RDP: a net.Conn whose Read and Write are of one message each. It implements
// wire.MessageConn.
type Conn struct {
	rdp *rdp.Conn
	e   *endpoint

	in      chan []byte   // messages that were taken; closed behind the last one
	err     error         // why there are no more; to be read when in is closed
	closing chan struct{} // closed by Close
	taking  sync.WaitGroup

	once sync.Once

	mu          sync.Mutex
	read, write time.Time // deadlines
}

var _ wire.MessageConn = (*Conn)(nil)

func newConn(conn *rdp.Conn, e *endpoint) *Conn {
	c := &Conn{rdp: conn, e: e, in: make(chan []byte, ahead), closing: make(chan struct{})}
	c.taking.Go(c.take)
	return c
}

// take takes messages until there are no more.
func (c *Conn) take() {
	defer close(c.in)
	for {
		m, err := c.rdp.Receive(context.Background()) // which Close ends
		if err != nil {
			c.err = err
			return
		}
		select {
		case c.in <- m.Data:
		case <-c.closing:
			c.err = io.EOF
			return
		}
	}
}

// LocalAddr returns the address of the UDP socket.
func (c *Conn) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(c.e.LocalAddr()) }

// RemoteAddr returns that of the peer's.
func (c *Conn) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(c.rdp.RemoteHost()) }

// SetDeadline bounds what reads and writes from now on. The zero time is none.
func (c *Conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.write = t, t
	return nil
}

// SetReadDeadline bounds what reads from now on.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = t
	return nil
}

// SetWriteDeadline bounds what writes from now on.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write = t
	return nil
}

func (c *Conn) deadlines() (read, write time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.write
}

// errLate is that of a deadline: a net.Error, and an os.ErrDeadlineExceeded.
var errLate = os.ErrDeadlineExceeded

// until returns a context that ends at a deadline, if there is one.
func until(deadline time.Time) (context.Context, context.CancelFunc) {
	if deadline.IsZero() {
		return context.WithCancel(context.Background())
	}
	return context.WithDeadline(context.Background(), deadline)
}

func past(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

// failed returns an error of RDP as a net.Conn has it.
func (c *Conn) failed(op string, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errLate
	case errors.Is(err, io.EOF), errors.Is(err, machine.ErrNotOpen) && c.rdp.Err() == nil: // this side has closed it
		err = net.ErrClosed
	case errors.Is(err, machine.ErrNotOpen):
		err = rdp.WithErrno(c.rdp.Err())
	default:
		err = rdp.WithErrno(err)
	}
	return &net.OpError{Op: op, Net: "rdp", Addr: c.RemoteAddr(), Err: err}
}

// ReadMessage returns the next message. Until the deadline, it waits for one. An error that wraps syscall.ECONNRESET says that
// the peer has closed the connection, which RST does not tell from a failure.
func (c *Conn) ReadMessage() ([]byte, error) {
	select {
	case m, ok := <-c.in:
		return c.taken(m, ok)
	default:
	}
	deadline, _ := c.deadlines()
	ctx, cancel := until(deadline)
	defer cancel()
	select {
	case m, ok := <-c.in:
		return c.taken(m, ok)
	case <-ctx.Done():
		return nil, c.failed("read", ctx.Err())
	}
}

func (c *Conn) taken(m []byte, ok bool) ([]byte, error) {
	if !ok {
		return nil, c.failed("read", c.err)
	}
	return m, nil
}

// Read reads one message, of which what does not fit is lost.
func (c *Conn) Read(b []byte) (int, error) {
	m, err := c.ReadMessage()
	return copy(b, m), err
}

// WriteMessages sends messages in turn, as many at once as the peer's window takes.
func (c *Conn) WriteMessages(messages ...[]byte) error {
	_, deadline := c.deadlines()
	ctx, cancel := until(deadline)
	defer cancel()
	if _, err := c.rdp.SendAll(ctx, messages...); err != nil {
		return c.failed("write", err)
	}
	return nil
}

// Write sends one message.
func (c *Conn) Write(b []byte) (int, error) {
	if err := c.WriteMessages(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Flush waits until the write deadline that the peer has acknowledged all that was sent.
func (c *Conn) Flush() error {
	_, deadline := c.deadlines()
	ctx, cancel := until(deadline)
	defer cancel()
	if err := c.rdp.Flush(ctx); err != nil {
		return c.failed("flush", err)
	}
	return nil
}

// Record has a recorder, which may be nil, told of the segments of the connection, those before the call included.
func (c *Conn) Record(r wire.SegmentRecorder) { c.e.tap.record(c.rdp.RemoteHost(), r) }

// Close ends the connection at once: the peer is told by RST, and what it has not acknowledged is lost.
func (c *Conn) Close() error {
	var err error
	c.once.Do(func() {
		err = c.rdp.Close()
		close(c.closing)
		c.taking.Wait()
		if errors.Is(err, machine.ErrNotOpen) || errors.Is(err, machine.ErrClosing) {
			err = nil // the peer was first
		}
		c.e.tap.forget(c.rdp.RemoteHost())
		err = errors.Join(err, c.e.leave())
	})
	return err
}
