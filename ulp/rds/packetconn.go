package rds

import (
	"errors"
	"io"
	"net"
	"time"
)

var _ net.PacketConn = (*Socket)(nil)

// ReadFrom receives a datagram, as net.PacketConn has it. The rest of one that is longer
// than b is lost.
func (s *Socket) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.RecvFrom(s.reading.context(), b)
	if err != nil && !errors.Is(err, io.ErrShortBuffer) {
		return 0, nil, s.opError("read", nil, err)
	}
	return n, from, nil
}

// WriteTo sends a datagram to an address of type Addr, as net.PacketConn has it.
func (s *Socket) WriteTo(b []byte, to net.Addr) (int, error) {
	a, ok := to.(Addr)
	if !ok {
		return 0, s.opError("write", to, errors.New("it is not of type rds.Addr"))
	}
	if err := s.SendTo(s.writing.context(), b, a); err != nil {
		return 0, s.opError("write", to, err)
	}
	return len(b), nil
}

// LocalAddr returns Addr.
func (s *Socket) LocalAddr() net.Addr { return s.Addr() }

// SetDeadline sets the deadlines of ReadFrom and WriteTo.
func (s *Socket) SetDeadline(t time.Time) error {
	return s.set(t, &s.reading, &s.writing)
}

// SetReadDeadline sets the deadline of ReadFrom.
func (s *Socket) SetReadDeadline(t time.Time) error {
	return s.set(t, &s.reading)
}

// SetWriteDeadline sets the deadline of WriteTo.
func (s *Socket) SetWriteDeadline(t time.Time) error {
	return s.set(t, &s.writing)
}

// opError wraps an error as package net does, so that what wants a net.Error finds one.
func (s *Socket) opError(op string, addr net.Addr, err error) error {
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrNodeClosed) {
		err = closedError{err}
	}
	return &net.OpError{Op: op, Net: "rds", Source: s.Addr(), Addr: addr, Err: err}
}

// A closedError is net.ErrClosed, too.
type closedError struct{ error }

func (e closedError) Unwrap() error { return e.error }

func (closedError) Is(target error) bool { return target == net.ErrClosed }

// set sets deadlines, as package net has it.
func (s *Socket) set(t time.Time, deadlines ...*deadline) error {
	for _, d := range deadlines {
		d.set(t)
	}
	if err := s.isOver(); err != nil {
		return s.opError("set deadline", nil, err)
	}
	return nil
}

// taken copies a message to b.
func taken(msg *Message, b []byte) (int, Addr, error) {
	n := copy(b, msg.Data)
	if n < len(msg.Data) {
		return n, msg.Addr, io.ErrShortBuffer
	}
	return n, msg.Addr, nil
}
