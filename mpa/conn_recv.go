package mpa

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// intakeSize is what one read takes: one long FPDU and what follows it.
const intakeSize = 128 << 10

var intakes = sync.Pool{New: func() any { return new([intakeSize]byte) }}

// An intake is the receiver's end of the stream. While there is nothing to
// read, it holds no buffer, only the beginning of an unfinished FPDU.
type intake struct {
	holding
	buf   *[intakeSize]byte // or nil
	n     int               // bytes in buf, an FPDU beginning at its front
	stash []byte            // takes their place while there is no buf

	fresh bool   // bytes have arrived that are not looked at yet, or a ULPDU is kept, see Await
	kept  []byte // the ULPDU that place returned an error for, or nil
	rest  []byte // what follows in buf, which must not change meanwhile
	order uint64 // of the next ULPDU
	err   error  // after which nothing more is passed on

	get   func() []byte // made once, so that nothing is allocated per read
	unget func()
}

func (in *intake) init() {
	in.get = func() []byte {
		if in.buf == nil {
			in.buf = intakes.Get().(*[intakeSize]byte)
			in.n = copy(in.buf[:], in.stash)
		}
		return in.buf[in.n:]
	}
	in.unget = in.park
}

// stashMost is how many bytes of an unfinished FPDU are put aside. With more,
// the intake keeps the buffer: it won't be for long, and they would be copied
// twice.
const stashMost = 4 << 10

// park puts the unfinished FPDU aside and releases the buffer.
func (in *intake) park() {
	if in.n <= stashMost {
		in.stash = append(in.stash[:0], in.buf[:in.n]...)
		in.release()
		return
	}
	in.keep()
}

// release gives the buffer back.
func (in *intake) release() {
	if in.buf != nil {
		intakes.Put(in.buf)
		in.buf = nil
		in.moves()
		in.hold(0)
	}
}

// drop forgets what has arrived, and releases the buffer.
func (in *intake) drop() {
	in.stash, in.kept, in.rest = nil, nil, nil
	in.release()
}

// ErrInterrupted says that Interrupt was called.
var ErrInterrupted = errors.New("mpa: the wait was interrupted")

// Receive waits until FPDUs have arrived and passes the ULPDU of each to place,
// with its number in the sender's order, counted from 0. place must not use the
// ULPDU after it has returned.
//
// If place returns an error, Receive stops and returns that error as it is. The
// ULPDU and all that follow stay where they are, so that TCP slows the peer down,
// and the next call of Receive or TryReceive passes the same ULPDU first.
//
// Otherwise it returns after at least one ULPDU, with ErrInterrupted after a call of
// Interrupt, or with another error, after which it never passes another ULPDU
// (RFC 5044 §8): an *Error with CodeCRC or CodeMarker, which leaves the
// connection open for a Terminate, or one with CodeConnectionLost. The latter
// wraps io.EOF if the peer has ended its half gracefully (§7.2).
func (c *Conn) Receive(place func(ulpdu []byte, order uint64) error) error {
	in := &c.in
	c.enter()
	defer c.leave()
	for in.err == nil {
		if !in.fresh {
			if err := c.fill(true); err != nil {
				return err
			}
		}
		some, err := c.pass(place)
		if in.kept != nil {
			in.keep()
		}
		if some || err != nil {
			return err
		}
	}
	return in.err
}

// TryReceive is like Receive, but does not wait: it reads at most once. It
// reports whether place has accepted a ULPDU.
func (c *Conn) TryReceive(place func(ulpdu []byte, order uint64) error) (bool, error) {
	in := &c.in
	c.enter()
	defer c.leave()
	if !in.fresh && in.err == nil {
		if err := c.fill(false); err != nil {
			return false, err
		}
	}
	if in.err != nil || !in.fresh {
		return false, in.err
	}
	some, err := c.pass(place)
	if in.kept != nil && !some {
		in.keep()
	}
	return some, err
}

// Await waits until there is something for Receive or TryReceive: a ULPDU, which may
// be one for which place has returned an error, a part of one, or an error. It
// returns ErrInterrupted after a call of Interrupt.
func (c *Conn) Await() error {
	in := &c.in
	c.enter()
	defer c.leave()
	if in.kept != nil {
		in.keep()
	}
	if in.fresh || in.err != nil {
		return nil
	}
	if err := c.fill(true); errors.Is(err, ErrInterrupted) {
		return err
	}
	return nil // the next call reports another error
}

// Polls reports whether TryReceive can find what has arrived. It can't on
// streams that can only wait.
func (c *Conn) Polls() bool { return c.stream.Polls() }

// Interrupt makes the Receive or Await that waits now return ErrInterrupted; if
// none waits, the next one that would wait. It may be called from any
// goroutine.
func (c *Conn) Interrupt() { _ = c.netConn.SetReadDeadline(longAgo) } // a closed connection waits for nothing

var longAgo = time.Unix(1, 0)

// pass passes on the whole FPDUs in the buffer, and reports whether place has accepted
// any. The error is that of place, or one after which nothing is passed on.
func (c *Conn) pass(place func(ulpdu []byte, order uint64) error) (some bool, err error) {
	in := &c.in
	in.fresh = false
	before := in.order
	err = c.deframe(place)
	if some = in.order != before; some {
		in.moves()
	}
	if in.kept == nil {
		in.err = err
	}
	return some, err
}

// fill reads once, and keeps an error: all but ErrInterrupted are final.
func (c *Conn) fill(wait bool) error {
	in := &c.in
	err := c.read(wait)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		_ = c.netConn.SetReadDeadline(time.Time{}) // as above
		return ErrInterrupted
	}
	partial := in.n > 0 && in.buf != nil || in.buf == nil && len(in.stash) > 0
	c.recordReadEnd(err)
	in.release()
	in.err = c.failure(err)
	if errors.Is(err, io.EOF) && partial {
		in.err = &Error{
			Code: CodeConnectionLost, Clause: "RFC 5044 §8", Err: io.ErrUnexpectedEOF,
			Reason: "the stream ended inside an FPDU",
		}
	}
	return in.err
}

// read reads once behind what is there. After an error, the buffer may be held.
func (c *Conn) read(wait bool) error {
	in := &c.in
	var n int
	var err error
	if wait {
		n, err = c.stream.ReadInto(in.get, in.unget)
	} else {
		n, err = c.stream.TryRead(in.get())
	}
	switch {
	case n > 0:
		in.n += n
		in.fresh = true
		return nil
	case err == nil && !wait:
		in.park() // a program that polls many connections has no buffer for each
	}
	return err
}

// deframe passes on the whole FPDUs in the buffer and moves the rest of it to
// the front. It stops when the connection is closed, even by place, and when place
// returns an error: then the ULPDU is kept.
func (c *Conn) deframe(place func(ulpdu []byte, order uint64) error) error {
	in := &c.in
	if in.buf == nil { // the recording of this side's end has taken what was at hand
		return c.failure(net.ErrClosed)
	}
	b := in.buf[:in.n]
	if kept := in.kept; kept != nil {
		b = in.rest
		in.kept, in.rest = nil, nil
		if !c.over.Load() {
			if err := in.hand(place, kept, b); err != nil {
				return err
			}
		}
	}
	for {
		if c.over.Load() {
			c.stop(b, 0)
			return c.failure(net.ErrClosed)
		}
		total := 0
		if c.recorder != nil {
			if total = c.deframer.FPDULen(b); total > 0 && total <= len(b) {
				c.recorder.Received(b[:total])
			}
		}
		ulpdu, n, err := c.deframer.Next(b)
		if err != nil {
			c.stop(b, total)
			return err
		}
		if n == 0 {
			break
		}
		b = b[n:]
		c.open()
		if err := in.hand(place, ulpdu, b); err != nil {
			return err
		}
	}
	if in.n = copy(in.buf[:], b); in.n == 0 {
		in.stash = in.stash[:0]
	}
	return nil
}

// hand passes a ULPDU to place, and keeps it, with the rest of the buffer, if place
// returns an error.
func (in *intake) hand(place func(ulpdu []byte, order uint64) error, ulpdu, rest []byte) error {
	if err := place(ulpdu, in.order); err != nil {
		in.kept, in.rest, in.fresh = ulpdu, rest, true
		return err
	}
	in.order++
	return nil
}

// stop stops passing FPDUs on in front of b, which begins with an FPDU with an
// error. A Recorder must still record what follows it.
func (c *Conn) stop(b []byte, bad int) {
	in := &c.in
	if c.recorder == nil {
		in.release()
		return
	}
	c.deframer.Skip(bad)
	c.rec.astray = bad > 0 && c.deframer.Markers // one of the two is wrong
	in.n = copy(in.buf[:], b[bad:])
}

// Discard reads and drops what the peer still sends, until the end of the
// stream, which is no error. TCP resets a connection that is closed while
// something is unread, and a Terminate in transit to the peer is lost.
// Discarding first prevents that.
func (c *Conn) Discard() error {
	in := &c.in
	in.err, in.fresh = errDiscarding, false
	c.enter()
	defer c.leave()
	if in.kept != nil { // it has been recorded
		in.n = copy(in.buf[:], in.rest)
		in.kept, in.rest = nil, nil
	}
	for {
		switch {
		case c.recorder == nil:
			in.drop()
		case in.buf != nil:
			n := c.recordWhole(in.buf[:in.n])
			in.n = copy(in.buf[:], in.buf[n:in.n])
		}
		err := c.read(true)
		switch {
		case err == nil:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = c.netConn.SetReadDeadline(time.Time{}) // as above
			continue
		}
		c.recordReadEnd(err)
		in.release()
		if errors.Is(err, io.EOF) {
			return nil
		}
		return c.failure(err)
	}
}

var errDiscarding = &Error{Code: CodeConnectionLost, Clause: "RFC 5044 §8", Reason: "the receiver discards what comes"}
