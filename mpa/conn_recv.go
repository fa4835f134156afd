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

// An intake is the receiver's end of the stream. While nothing is there to
// read it holds no buffer, only the beginning of an unfinished FPDU.
type intake struct {
	holding
	buf   *[intakeSize]byte // or nil
	n     int               // octets in buf, an FPDU beginning at its front
	stash []byte            // takes their place while there is no buf

	fresh bool                    // octets have come that nobody has looked at, see Await
	gate  func(ulpdu []byte) bool // or nil, see SetGate
	held  []byte                  // the ULPDU that it holds back, or nil
	rest  []byte                  // what follows in buf, which stays as it is meanwhile
	order uint64                  // of the next ULPDU
	err   error                   // after which nothing is passed on any more

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

// stashMost is how many octets of an unfinished FPDU are put aside. More of them
// keep the buffer: it is not for long, and they would be copied twice.
const stashMost = 4 << 10

// park puts the unfinished FPDU aside and gives the buffer back.
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

// drop forgets what has arrived, and gives the buffer back.
func (in *intake) drop() {
	in.stash, in.held, in.rest = nil, nil, nil
	in.release()
}

// ErrInterrupted says that Interrupt was called.
var ErrInterrupted = errors.New("mpa: the wait was interrupted")

// ErrHeld says that a ULPDU is held back: see SetGate.
var ErrHeld = errors.New("mpa: a ULPDU is held back")

// SetGate has the receiver ask gate before it passes a ULPDU on. If gate says no,
// the ULPDU and all that follow stay where they are, so that TCP slows the peer
// down, and the next call of Receive or TryReceive asks again. It is to be called
// before the first of these.
func (c *Conn) SetGate(gate func(ulpdu []byte) bool) { c.in.gate = gate }

// Receive waits until FPDUs have arrived and passes the ULPDU of each to place,
// with its number in the sender's order from 0. The ULPDU is place's only until
// place returns.
//
// It returns after at least one ULPDU, with ErrInterrupted after a call of
// Interrupt, with ErrHeld if a ULPDU is held back, or with another error, after which it never passes another one
// (RFC 5044 §8): an *Error with CodeCRC or CodeMarker, which leaves the
// connection open for a Terminate, or one with CodeConnectionLost. The latter
// wraps io.EOF if the peer has ended its half gracefully (§7.2).
func (c *Conn) Receive(place func(ulpdu []byte, order uint64)) error {
	in := &c.in
	c.enter()
	defer c.leave()
	for in.err == nil {
		if !in.fresh {
			if err := c.fill(true); err != nil {
				return err
			}
		}
		if c.pass(place) {
			return in.err
		}
		if in.held != nil {
			in.keep()
			return ErrHeld
		}
	}
	return in.err
}

// TryReceive is Receive that does not wait: it reads at most once, and reports
// whether it has passed a ULPDU.
func (c *Conn) TryReceive(place func(ulpdu []byte, order uint64)) (bool, error) {
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
	some := c.pass(place)
	if in.held != nil && !some {
		in.keep()
	}
	return some, in.err
}

// Await waits until something has come for Receive or TryReceive, if only an
// error. It returns ErrInterrupted after a call of Interrupt, and ErrHeld if a
// ULPDU is held back.
func (c *Conn) Await() error {
	in := &c.in
	c.enter()
	defer c.leave()
	if in.held != nil {
		in.keep()
		return ErrHeld
	}
	if in.fresh || in.err != nil {
		return nil
	}
	if err := c.fill(true); errors.Is(err, ErrInterrupted) {
		return err
	}
	return nil // of another error, the next call tells
}

// Polls reports whether TryReceive can tell what has come. Streams that can
// only wait have nothing for it.
func (c *Conn) Polls() bool { return c.stream.Polls() }

// Interrupt makes the Receive or Await that waits now return with
// ErrInterrupted, or if none does, the next one that would wait. It may be called
// from anywhere.
func (c *Conn) Interrupt() { _ = c.netConn.SetReadDeadline(longAgo) } // a closed connection waits for nothing

var longAgo = time.Unix(1, 0)

// pass passes on the whole FPDUs that are at hand, and reports whether there
// were any.
func (c *Conn) pass(place func(ulpdu []byte, order uint64)) bool {
	in := &c.in
	in.fresh = false
	before := in.order
	in.err = c.deframe(place)
	if in.order == before {
		return false
	}
	in.moves()
	return true
}

// fill reads once, and keeps an error: all but ErrInterrupted are for good.
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
		in.park() // who polls many connections has no buffer for each
	}
	return err
}

// deframe passes on the whole FPDUs in the buffer and moves the rest of it to
// the front. It stops when the connection is closed, even by place.
func (c *Conn) deframe(place func(ulpdu []byte, order uint64)) error {
	in := &c.in
	if in.buf == nil { // the recording of this side's end has taken what was at hand
		return c.failure(net.ErrClosed)
	}
	b, held := in.buf[:in.n], in.held
	if held != nil {
		b = in.rest
	}
	for {
		if c.over.Load() {
			in.held, in.rest = nil, nil
			c.stop(b, 0)
			return c.failure(net.ErrClosed)
		}
		if held != nil {
			if !in.gate(held) {
				in.fresh = true
				return nil
			}
			in.held, in.rest = nil, nil
			place(held, in.order)
			in.order++
			held = nil
			continue
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
		if in.gate != nil && !in.gate(ulpdu) {
			in.held, in.rest, in.fresh = ulpdu, b, true
			return nil
		}
		place(ulpdu, in.order)
		in.order++
	}
	if in.n = copy(in.buf[:], b); in.n == 0 {
		in.stash = in.stash[:0]
	}
	return nil
}

// stop ends the passing on of FPDUs in front of b. With a Recorder, what lies
// behind the first octets of it, an FPDU with an error, is still to be recorded.
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
// stream, which is no error. A connection that is closed while something is
// unread is reset by TCP, and a Terminate on its way to the peer is lost:
// discarding first keeps that from happening.
func (c *Conn) Discard() error {
	in := &c.in
	in.err, in.fresh = errDiscarding, false
	c.enter()
	defer c.leave()
	if in.held != nil { // it has been recorded
		in.n = copy(in.buf[:], in.rest)
		in.held, in.rest = nil, nil
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
