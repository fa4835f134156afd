package sockio

import (
	"errors"
	"net"
)

// A Stream is a byte stream that can be used without waiting. One goroutine may
// read while another one writes; Close and Abort may come from anywhere.
type Stream interface {
	// Writev writes pieces in their order. It returns how many octets the
	// stream took: with wait, at least one unless there is an error or nothing
	// to write; without, possibly none. A *memfault.Error says that a piece can't
	// be read. The stream can go on then; pieces before it may not be taken.
	Writev(pieces [][]byte, wait bool) (int, error)

	// TryRead reads what is there into p: nothing, if n and err are zero. At
	// the end of the stream it returns io.EOF. Polls reports whether it can tell
	// at all.
	TryRead(p []byte) (int, error)
	Polls() bool

	// ReadInto waits until there is something to read and reads it into the
	// buffer that get returns. It may call get before it knows; then it calls
	// unget to take that back, except before it returns an error. At the end of
	// the stream it returns io.EOF. A read deadline in the past ends the wait.
	ReadInto(get func() []byte, unget func()) (int, error)

	// MSS returns the largest TCP payload of one segment in octets, or 0 if the
	// stream can't tell.
	MSS() int

	// CloseWrite ends our half, once all that was taken is out.
	CloseWrite() error

	// Close closes. Where a goroutine writes for the stream, what that has not
	// written is lost, unless CloseWrite came first.
	Close() error

	// Abort closes with a reset, if the stream knows such a thing.
	Abort() error
}

// ErrNoHalfClose says that a stream can't end one of its halves alone.
var ErrNoHalfClose = errors.New("sockio: the stream can't be half closed")

// New returns the Stream over c: c itself if it is one.
func New(c net.Conn) Stream {
	if s, ok := c.(Stream); ok {
		return s
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		if s, err := newTCP(tcp); err == nil {
			return s
		}
	}
	return newBuffered(c)
}

// TryRead reads what is there into p, if c can tell: nothing, if n and err are zero.
func TryRead(c net.Conn, p []byte) (int, error) {
	switch c := c.(type) {
	case Stream:
		return c.TryRead(p)
	case *net.TCPConn:
		return tryTCP(c, p)
	}
	return 0, nil
}

// abort closes c in a way that resets a TCP connection.
func abort(c net.Conn) error {
	if l, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = l.SetLinger(0) // at worst the connection ends with a FIN
	}
	return c.Close()
}

func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return ErrNoHalfClose
}
