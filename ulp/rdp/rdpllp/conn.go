package rdpllp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"urnic/internal/host/crc32c"
	"urnic/internal/host/memfault"
	"urnic/mpa"
	"urnic/rnic"
	"urnic/ulp/rdp"
	"urnic/ulp/rdp/machine"
	"urnic/ulp/rdp/rdpllp/llpwire"
)

// What is posted and not flushed, and what is received at once.
const (
	postedMessages = 64
	postedBytes    = 256 << 10
	receivedAtOnce = 64
)

// A conn is a connection of DDP over RDP. It implements rnic.LLPConn.
type conn struct {
	rdp    *rdp.Conn
	shared *shared // what it is on
	params rnic.Params
	local  net.Addr
	remote net.Addr
	mulpdu int

	// Of whoever sends.
	arena    []byte
	pending  [][]byte // messages that were posted, in the arena
	next     uint32   // the number of the next segment
	posted   uint64   // segments
	accepted uint64
	ended    atomic.Bool // the end was posted

	// Of whoever receives.
	batch   []rdp.Message // that are not placed
	at      int           // of the batch: the first of these
	failure error         // what comes behind them
	early   []rdp.Message // that have come before the answer
	taken   taken         // segments that were placed
	total   uint64        // how many there are; once known
	known   bool

	interrupts chan struct{}
	ends       sync.Mutex     // while CloseWrite begins
	over       atomic.Bool    // it was closed
	closing    sync.WaitGroup // CloseWrite is in progress
}

var _ rnic.LLPConn = (*conn)(nil)

// minMULPDU is the least that DDP can do with (RFC 5041 §5.1).
const minMULPDU = 128

// roomy returns an error if segments of DDP don't fit the connection.
func roomy(c *rdp.Conn) error {
	if n := c.Status().Room - llpwire.Overhead; n < minMULPDU {
		return &mpa.ConfigError{Reason: fmt.Sprintf("segments of RDP have room for %d bytes of DDP's; at least %d are needed: raise MaxSegment on both sides", n, minMULPDU)}
	}
	return nil
}

func newConn(c *rdp.Conn, s *shared, p rnic.Params) *conn {
	return &conn{
		rdp: c, shared: s, params: p, local: s.addr(), remote: net.UDPAddrFromAddrPort(c.RemoteHost()),
		mulpdu: c.Status().Room - llpwire.Overhead, interrupts: make(chan struct{}, 1),
	}
}

// Params implements rnic.LLPConn.
func (c *conn) Params() rnic.Params { return c.params }

// LocalAddr implements rnic.LLPConn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements rnic.LLPConn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// MULPDU implements ddp.LLP.
func (c *conn) MULPDU() int { return c.mulpdu }

// Post implements ddp.LLP. All is copied, as it may have to be sent again.
func (c *conn) Post(header []byte, payload [][]byte, _ bool) (bool, error) {
	n := llpwire.Overhead + len(header)
	for _, p := range payload {
		n += len(p)
	}
	if len(c.pending) == postedMessages || len(c.arena) > 0 && len(c.arena)+n > postedBytes {
		return false, nil
	}
	b := c.begin(n, llpwire.Segment, c.next)
	b = append(b, header...)
	crc := crc32c.Update(0, b)
	gather := func() {
		for _, p := range payload {
			at := len(b)
			b = b[:at+len(p)]
			crc = crc32c.Copy(b[at:], p, crc)
		}
	}
	if memfault.Guarded() {
		if err := memfault.Do(gather); err != nil {
			return false, err // payload is gone; nothing was taken
		}
	} else {
		gather()
	}
	c.finish(b, crc)
	c.next++
	c.posted++
	return true, nil
}

// begin returns memory for a message of n bytes, with its header.
func (c *conn) begin(n int, k llpwire.Kind, number uint32) []byte {
	if cap(c.arena) == 0 {
		c.arena = make([]byte, 0, postedBytes)
	}
	at := len(c.arena)
	if cap(c.arena)-at < n { // the first message is larger than the arena
		c.arena, at = make([]byte, 0, n), 0
	}
	b := c.arena[at : at+llpwire.HeaderLen : at+n]
	llpwire.PutHeader(b, k, number)
	return b
}

// finish puts the checksum behind a message, and has it sent with the next Flush.
func (c *conn) finish(b []byte, crc uint32) {
	b = append(b, byte(crc), byte(crc>>8), byte(crc>>16), byte(crc>>24))
	c.pending = append(c.pending, b)
	c.arena = c.arena[:len(c.arena)+len(b)]
}

// Flush implements ddp.LLP. Who has nothing to send does not mind that the peer has closed.
func (c *conn) Flush(wait bool) (bool, error) {
	for len(c.pending) > 0 {
		n, err := c.rdp.TrySendAll(c.pending...)
		c.accepted += uint64(n)
		c.pending = c.pending[n:]
		switch {
		case err == nil:
		case !errors.Is(err, machine.ErrWouldBlock):
			return false, lost(err)
		case n > 0 || !wait:
			return false, nil
		default:
			if err := c.rdp.AwaitRoom(context.Background()); err != nil {
				return false, lost(err)
			}
		}
	}
	c.pending, c.arena = c.pending[:0], c.arena[:0]
	return true, nil
}

// lost says that the connection is, and why.
func lost(err error) error { return &mpa.Error{Code: mpa.CodeConnectionLost, Err: rdp.WithErrno(err)} }

// Posted implements ddp.LLP.
func (c *conn) Posted() uint64 { return c.posted }

// Accepted implements ddp.LLP: RDP delivers what it has taken, or the connection fails.
func (c *conn) Accepted() uint64 { return min(c.accepted, c.posted) }

// Polls implements rnic.LLPConn.
func (c *conn) Polls() bool { return true }

// Receive implements ddp.LLP.
func (c *conn) Receive(place func(segment []byte, order uint64) error) error {
	for {
		taken, err := c.take(place)
		if taken || err != nil {
			return err
		}
		if err := c.Await(); err != nil {
			return err
		}
	}
}

// TryReceive implements ddp.LLP.
func (c *conn) TryReceive(place func(segment []byte, order uint64) error) (bool, error) {
	return c.take(place)
}

// take passes on what there is. It reports whether that was a segment.
func (c *conn) take(place func(segment []byte, order uint64) error) (taken bool, err error) {
	if !c.fill() {
		return false, nil
	}
	first := c.at
	defer func() { c.rdp.Free(c.batch[first:c.at]...) }()
	for ; c.at < len(c.batch); c.at++ {
		k, number, body, err := llpwire.Parse(c.batch[c.at].Data)
		if err != nil {
			return taken, err
		}
		switch k {
		case llpwire.Segment:
			order, ok := c.taken.order(number)
			if !ok {
				return taken, malformed("segment %d comes again, or is further ahead than the window", number)
			}
			if err := place(body, order); err != nil {
				return taken, err
			}
			c.taken.add(order)
			taken = true
		case llpwire.End:
			if c.known {
				return taken, malformed("the end comes twice")
			}
			c.known, c.total = true, c.taken.near(number)
		default:
			return taken, malformed("a message of start-up comes in a connection that is set up")
		}
	}
	switch {
	case taken:
		return true, nil
	case c.known && c.taken.all(c.total):
		return false, c.peersEnd()
	}
	return false, c.failure
}

// peersEnd returns io.EOF, behind all that the peer has sent. But a peer that closes before this side has told its own end
// does not end gracefully.
func (c *conn) peersEnd() error {
	if err := c.rdp.Err(); err != nil && !c.ended.Load() {
		return lost(err)
	}
	return io.EOF
}

// fill sees to it that there is a message, or why there is none; it reports false if neither has come.
func (c *conn) fill() bool {
	if c.at < len(c.batch) || c.known && c.taken.all(c.total) || c.failure != nil {
		return true
	}
	c.at, c.batch = 0, c.batch[:0]
	if len(c.early) > 0 {
		c.batch, c.early = c.early, nil
		return true
	}
	if cap(c.batch) < receivedAtOnce {
		c.batch = make([]rdp.Message, 0, receivedAtOnce)
	}
	var err error
	if c.batch, err = c.rdp.TryReceiveAll(c.batch); err != nil && !errors.Is(err, machine.ErrWouldBlock) {
		c.failure = lost(err)
	}
	return len(c.batch) > 0 || c.failure != nil
}

// Await implements rnic.LLPConn.
func (c *conn) Await() error {
	for !c.fill() {
		if err := c.rdp.AwaitMessage(interrupt{context.Background(), c.interrupts}); err != nil {
			return err
		}
	}
	return nil
}

// Interrupt implements rnic.LLPConn.
func (c *conn) Interrupt() {
	select {
	case c.interrupts <- struct{}{}:
	default:
	}
}

// interrupt is a context that ends one wait for each element of a channel.
type interrupt struct {
	context.Context
	c <-chan struct{}
}

func (i interrupt) Done() <-chan struct{} { return i.c }

func (interrupt) Err() error { return rnic.ErrInterrupted }

// SetKeeper implements rnic.LLPConn: what RDP keeps is bounded by its window.
func (c *conn) SetKeeper(func(octets int)) {}

// Stalled implements rnic.LLPConn: RDP ends connections that make no progress.
func (c *conn) Stalled() time.Time { return time.Time{} }
