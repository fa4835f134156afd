package mpa

import (
	"errors"
	"io"
	"net"
	"sync"
)

// intakeSize is what one read takes: one long FPDU and what follows it.
const intakeSize = 128 << 10

var intakes = sync.Pool{New: func() any { return new([intakeSize]byte) }}

// An intake is the receiver's end of the stream. While nothing is there to
// read it holds no buffer, only what there is of an unfinished FPDU.
type intake struct {
	buf   *[intakeSize]byte // or nil
	n     int               // octets in buf, an FPDU beginning at its front
	stash []byte            // takes their place while there is no buf

	order uint64 // of the next ULPDU
	err   error  // after which nothing is passed on any more

	get   func() []byte // made once, so that nothing is allocated per read
	unget func()
}

func (in *intake) init() {
	in.get = func() []byte {
		in.buf = intakes.Get().(*[intakeSize]byte)
		in.n = copy(in.buf[:], in.stash)
		return in.buf[in.n:]
	}
	in.unget = func() {
		intakes.Put(in.buf)
		in.buf = nil
	}
}

// park puts the unfinished FPDU aside and gives the buffer back.
func (in *intake) park() {
	const keep = 4 << 10
	if cap(in.stash) > keep && in.n <= keep {
		in.stash = nil
	}
	in.stash = append(in.stash[:0], in.buf[:in.n]...)
	in.unget()
}

// drop forgets what has arrived, and gives the buffer back.
func (in *intake) drop() {
	in.stash = nil
	if in.buf != nil {
		in.unget()
	}
}

// Receive waits until FPDUs have arrived and passes the ULPDU of each to place,
// with its number in the sender's order from 0. The ULPDU is place's only until
// place returns.
//
// It returns after at least one ULPDU, or with an error, after which it never
// passes another one (RFC 5044 §8): an *Error with CodeCRC or CodeMarker, which
// leaves the connection open for a Terminate, or one with CodeConnectionLost.
// The latter wraps io.EOF if the peer has ended its half gracefully (§7.2).
func (c *Conn) Receive(place func(ulpdu []byte, order uint64)) error {
	in := &c.in
	c.enter()
	defer c.leave()
	for in.err == nil {
		if in.err = c.fill(); in.err != nil {
			break
		}
		before := in.order
		if in.err = c.deframe(place); in.order > before {
			return in.err
		}
	}
	return in.err
}

// fill reads once, waiting if need be.
func (c *Conn) fill() error {
	in := &c.in
	err := c.read()
	if err == nil {
		return nil
	}
	partial := in.n > 0 && in.buf != nil || in.buf == nil && len(in.stash) > 0
	c.recordReadEnd(err)
	if in.buf != nil {
		in.unget()
	}
	if errors.Is(err, io.EOF) && partial {
		return &Error{
			Code: CodeConnectionLost, Clause: "RFC 5044 §8", Err: io.ErrUnexpectedEOF,
			Reason: "the stream ended inside an FPDU",
		}
	}
	return c.failure(err)
}

// read reads once behind what is there, waiting if need be. After an error, the
// buffer may be held.
func (c *Conn) read() error {
	in := &c.in
	var n int
	var err error
	if in.buf != nil {
		if n, err = c.stream.TryRead(in.buf[in.n:]); n == 0 && err == nil {
			in.park()
		}
	}
	if in.buf == nil && err == nil {
		n, err = c.stream.ReadInto(in.get, in.unget)
	}
	if n > 0 {
		in.n += n
		return nil
	}
	return err
}

// deframe passes on the whole FPDUs in the buffer and moves the rest of it to
// the front. It stops when the connection is closed, even by place.
func (c *Conn) deframe(place func(ulpdu []byte, order uint64)) error {
	in := &c.in
	b := in.buf[:in.n]
	for {
		select {
		case <-c.done:
			c.stop(b, 0)
			return c.failure(net.ErrClosed)
		default:
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
		in.unget()
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
	in.err = errDiscarding
	c.enter()
	defer c.leave()
	for {
		switch {
		case c.recorder == nil:
			in.drop()
		case in.buf != nil:
			n := c.recordWhole(in.buf[:in.n])
			in.n = copy(in.buf[:], in.buf[n:in.n])
		}
		if err := c.read(); err != nil {
			c.recordReadEnd(err)
			if in.buf != nil {
				in.unget()
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return c.failure(err)
		}
	}
}

var errDiscarding = &Error{Code: CodeConnectionLost, Clause: "RFC 5044 §8", Reason: "the receiver discards what comes"}
