package oncrpc

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A TCPConfig says how a connection is used. Its zero value is ready for use.
type TCPConfig struct {
	// Dialer makes the connection; nil stands for its zero value.
	Dialer *net.Dialer

	// Limit is how many calls may be in flight; 0 stands for 128.
	Limit int

	// RecordMost is the length of the longest reply, in bytes; 0 stands for
	// DefaultRecordMost. A longer one ends the connection.
	RecordMost int

	// Stall is how long the server may take nothing of a call before that ends the
	// connection, which may take twice as long to be noticed; 0 stands for a minute.
	Stall time.Duration
}

const (
	defaultLimit = 128
	defaultStall = time.Minute
	readAhead    = 16 << 10 // bytes: several short messages in one read
)

// What is wrong with a reply.
var (
	// ErrReplyLong says that a reply is longer than its request allows.
	ErrReplyLong = errors.New("oncrpc: the reply is longer than it may be")
	// ErrXIDInUse says that a call with that XID is in flight.
	ErrXIDInUse = errors.New("oncrpc: a call with that XID is in flight")
	// ErrClosed says that the client, the connection or the server was closed.
	ErrClosed = errors.New("oncrpc: closed")
)

// A TCPConn is a connection over TCP, or another byte stream (RFC 5531 §11).
type TCPConn struct {
	conn  net.Conn
	in    recordSource
	out   *recordWriter
	slots chan struct{} // holds one for each call in flight

	mu     sync.Mutex
	err    error // why it ended
	flying map[uint32]*flight
	spare  []*flight // as many as slots, at most

	done, read chan struct{} // the reader has ended
	strays     atomic.Uint64
}

// A flight waits for a reply. It gets one, or nil if the connection ends: just once, from
// whoever removes it from the connection's table.
type flight struct{ reply chan *Message }

// DialTCP connects to a server at host:port.
func DialTCP(ctx context.Context, addr string, cfg TCPConfig) (*TCPConn, error) {
	d := cfg.Dialer
	if d == nil {
		d = new(net.Dialer)
	}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("oncrpc: %w", err)
	}
	return NewTCPConn(conn, cfg), nil
}

// OverTCP returns what a Client connects by: DialTCP with these arguments.
func OverTCP(addr string, cfg TCPConfig) Dial {
	return func(ctx context.Context) (Conn, error) {
		c, err := DialTCP(ctx, addr, cfg)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// NewTCPConn makes calls over a byte stream that there is already, which is its own from
// now on.
func NewTCPConn(conn net.Conn, cfg TCPConfig) *TCPConn {
	c := &TCPConn{
		conn:   conn,
		out:    newRecordWriter(conn, cmp.Or(max(0, cfg.Stall), defaultStall)),
		slots:  make(chan struct{}, cmp.Or(max(0, cfg.Limit), defaultLimit)),
		flying: make(map[uint32]*flight),
		done:   make(chan struct{}),
		read:   make(chan struct{}),
	}
	c.in.init(bufio.NewReaderSize(conn, readAhead), cmp.Or(max(0, cfg.RecordMost), DefaultRecordMost))
	go c.replies()
	return c
}

// Limit implements Conn.
func (c *TCPConn) Limit() int { return cap(c.slots) }

// Done implements Conn.
func (c *TCPConn) Done() <-chan struct{} { return c.done }

// Strays returns how many messages were dropped that are no reply to a call in flight.
func (c *TCPConn) Strays() uint64 { return c.strays.Load() }

// Close implements Conn. It waits until nothing of the connection continues.
func (c *TCPConn) Close() error {
	c.end(ErrClosed)
	<-c.read
	c.out.end()
	return nil
}

// end ends the connection, and what is in flight.
func (c *TCPConn) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	close(c.done)
	_ = c.conn.Close() // there is no use for it any more
	for xid, f := range c.flying {
		delete(c.flying, xid)
		f.reply <- nil
	}
}

// Do implements Conn.
func (c *TCPConn) Do(ctx context.Context, r *Request) (*Message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
	default:
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, c.lost()
		}
	}
	defer func() { <-c.slots }()
	f, err := c.start(r.XID)
	if err != nil {
		return nil, err
	}
	defer c.landed(f)
	switch err := c.out.write(ctx, r.Call); {
	case err == nil:
	case errors.Is(err, errLong):
		return c.giveUp(r, f, err)
	case errors.Is(err, errGivenUp):
		return c.giveUp(r, f, ctx.Err())
	default:
		c.end(err)
	}
	select {
	case m := <-f.reply:
		return c.reply(r, m)
	case <-ctx.Done():
		return c.giveUp(r, f, ctx.Err())
	}
}

// start notes that a call is in flight.
func (c *TCPConn) start(xid uint32) (*flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, &LostError{c.err}
	}
	if c.flying[xid] != nil {
		return nil, ErrXIDInUse
	}
	var f *flight
	if n := len(c.spare); n > 0 {
		f, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		f = &flight{make(chan *Message, 1)}
	}
	c.flying[xid] = f
	return f, nil
}

// landed takes a flight back that is in the table no longer and got what it gets.
func (c *TCPConn) landed(f *flight) {
	c.mu.Lock()
	c.spare = append(c.spare, f)
	c.mu.Unlock()
}

// giveUp ends a call with err, unless its reply is there.
func (c *TCPConn) giveUp(r *Request, f *flight, err error) (*Message, error) {
	c.mu.Lock()
	there := c.flying[r.XID] != f
	if !there {
		delete(c.flying, r.XID)
	}
	c.mu.Unlock()
	if there {
		return c.reply(r, <-f.reply)
	}
	return nil, err
}

// reply returns the reply that has come, or why there is none.
func (c *TCPConn) reply(r *Request, m *Message) (*Message, error) {
	if m == nil {
		return nil, c.lost()
	}
	most := r.ReplyMost
	for _, s := range r.Sinks { // they are in the stream
		most += len(s) + -len(s)&3
	}
	if len(m.Stream) > most {
		n := len(m.Stream)
		m.Release()
		return nil, fmt.Errorf("%w: %d octets, of %d", ErrReplyLong, n, most)
	}
	return m, nil
}

func (c *TCPConn) lost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &LostError{c.err}
}

// replies reads replies and hands them to those who wait for them.
func (c *TCPConn) replies() {
	defer close(c.read)
	for {
		m, err := c.in.next()
		if err != nil {
			c.end(err)
			return
		}
		xid, t, err := Peek(m.Stream)
		if err != nil || t != TypeReply {
			c.strays.Add(1)
			m.Release()
			continue
		}
		c.mu.Lock()
		f := c.flying[xid]
		delete(c.flying, xid)
		c.mu.Unlock()
		if f == nil {
			c.strays.Add(1)
			m.Release()
			continue
		}
		f.reply <- m
	}
}

// A recordSource reads records into buffers of the pools.
type recordSource struct {
	r RecordReader
	m *received
}

func (s *recordSource) init(r *bufio.Reader, most int) {
	s.r = RecordReader{r: r, most: most, room: func(p []byte, n int) []byte { return s.m.room(p, n) }}
}

// next returns the next record, or what RecordReader.Next does.
func (s *recordSource) next() (*Message, error) {
	s.m = newReceived()
	m := s.m
	p, err := s.r.Next(nil)
	s.m = nil
	if err != nil {
		m.Release()
		return nil, err
	}
	m.Stream = p
	return &m.Message, nil
}
