package mpa

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// A Recorder gets all that is sent and received, in order, one call for each
// frame or FPDU. It gets what is sent, and the end of this side's half, just
// before the stream does, so that an answer comes later; the stream may fail in
// the middle of it. It also gets what was received and not passed on, such as a
// piece of an FPDU or what is discarded, at the latest before the end that
// follows it.
//
// Close is called when one side, this one if byUs, has ended its half, and
// Reset when it has reset the connection. After a Reset, and after the end of
// its own half, a side may still try to send, without effect.
//
// A Recorder must be quick, must not keep the pieces, and must be safe for
// concurrent use.
type Recorder interface {
	Sent(pieces ...[]byte)
	Received(pieces ...[]byte)
	Close(byUs bool)
	Reset(byUs bool)
}

// A recording is what a Conn has passed to its Recorder. While a goroutine
// receives, this side's end of the connection waits for it: what has arrived
// comes first.
type recording struct {
	mu        sync.Mutex
	receiving bool
	astray    bool // the receiver can no longer find the boundaries of FPDUs
	peerEnded bool // its half's end, or its reset, is recorded
	peerReset bool // a write has found that the peer has reset the connection
	fin       bool // this side's half's end is recorded
	closed    bool // this side has closed the connection
	reset     bool // by a reset
	ended     bool // the end is completely recorded
}

// enter begins receiving.
func (c *Conn) enter() {
	if c.recorder != nil {
		c.rec.mu.Lock()
		c.rec.receiving = true
		c.rec.mu.Unlock()
	}
}

// leave ends it.
func (c *Conn) leave() {
	if c.recorder != nil {
		c.rec.mu.Lock()
		defer c.rec.mu.Unlock()
		c.rec.receiving = false
		c.recordEnding()
	}
}

// recordEnding records this side's end of the connection, when it is due. The
// caller holds mu.
func (c *Conn) recordEnding() {
	r := &c.rec
	if !r.closed || r.receiving || r.ended {
		return
	}
	c.recordRest()
	r.ended = true
	switch {
	case r.peerReset:
		c.recorder.Reset(false)
	case r.reset:
		c.recorder.Reset(true)
	case !r.fin:
		c.recorder.Close(true)
	}
}

// recordClosed records that this side has closed or reset the connection.
func (c *Conn) recordClosed(reset bool) {
	if c.recorder == nil {
		return
	}
	r := &c.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.reset = true, reset
	c.recordEnding()
}

// recordFin records the end of this side's half.
func (c *Conn) recordFin() {
	if c.recorder == nil {
		return
	}
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	if !c.rec.fin && !c.rec.ended {
		c.rec.fin = true
		c.recorder.Close(true)
	}
}

// recordReadEnd records the end of what there is to read: the receiver calls it.
func (c *Conn) recordReadEnd(err error) {
	if c.recorder == nil {
		return
	}
	r := &c.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended || r.peerEnded {
		return
	}
	c.recordRest()
	switch {
	case r.peerReset || isReset(err) && !c.isOver():
		r.peerEnded, r.ended = true, true
		c.recorder.Reset(false)
	case errors.Is(err, io.EOF):
		r.peerEnded = true
		c.recorder.Close(false)
	}
}

// recordWriteError records a reset that a write has found: at once, if the
// receiver has already found an end.
func (c *Conn) recordWriteError(err error) {
	if c.recorder == nil {
		return
	}
	r := &c.rec
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.isOver() || !isReset(err) && (r.fin || !errors.Is(err, syscall.EPIPE)) && !errors.Is(err, syscall.ENOTCONN) {
		return
	}
	r.peerReset = true
	if r.peerEnded && !r.ended {
		r.ended = true
		c.recorder.Reset(false)
	}
}

// recordRest records what is left in the buffer and was not passed on, and
// drops it.
func (c *Conn) recordRest() {
	b := c.in.stash
	switch {
	case c.in.kept != nil:
		b = c.in.rest
	case c.in.buf != nil:
		b = c.in.buf[:c.in.n]
	}
	if b = b[c.recordWhole(b):]; len(b) > 0 {
		c.recorder.Received(b)
	}
	c.in.drop()
}

// recordWhole records the whole FPDUs with which b begins, which are not passed
// on, and returns their length. Where their boundaries can't be found, it is
// all of b.
func (c *Conn) recordWhole(b []byte) (n int) {
	for len(b) > n {
		total := c.deframer.FPDULen(b[n:])
		if c.rec.astray {
			total = len(b) - n
		}
		if total == 0 || total > len(b)-n {
			break
		}
		c.recorder.Received(b[n : n+total])
		c.deframer.Skip(total)
		n += total
	}
	return n
}

// isOver reports whether this side has closed the connection or is about to: an
// error after that is not the peer's.
func (c *Conn) isOver() bool { return c.over.Load() }

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// recordRead records how reading has ended, in start-up.
func recordRead(r Recorder, err error) {
	switch {
	case r == nil:
	case isReset(err):
		r.Reset(false)
	case errors.Is(err, io.EOF):
		r.Close(false)
	}
}

// closeStream closes a stream that is in start-up.
func closeStream(conn net.Conn, r Recorder) error {
	if r != nil {
		r.Close(true)
	}
	return conn.Close()
}
