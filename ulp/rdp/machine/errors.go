package machine

import (
	"errors"
	"fmt"
)

// Why calls are refused.
var (
	// ErrWouldBlock says that there is no data to receive, or no space to send ("no data" and
	// "insufficient resources to send data", RFC 908 p.23). An Event reports when that
	// changes.
	ErrWouldBlock = errors.New("rdp: nothing to receive, or no room to send, yet")

	ErrNotOpen     = errors.New("rdp: connection not open")
	ErrClosing     = errors.New("rdp: connection closing")
	ErrAlreadyOpen = errors.New("rdp: connection already open: choose another local port, or wait until CLOSE-WAIT is over")
	ErrPortInUse   = errors.New("rdp: there is a listener on the port already")
	ErrNoPort      = errors.New("rdp: local port not specified")
	ErrNoRemote    = errors.New("rdp: remote port or host not specified")
	ErrPort        = errors.New("rdp: no such port: version 1 has 1 to 255")
	ErrVersion     = errors.New("rdp: the version is not enabled, or there is none of that number")
	ErrResources   = errors.New("rdp: insufficient resources: the endpoint has as many connections as it may, or all local ports are in use")
	ErrEmpty       = errors.New("rdp: a message has one byte at least: RDP can't send an empty one")
	ErrTooLong     = errors.New("rdp: the message is larger than a segment that the peer or the path takes: see Status for how much fits")
)

// Why connections end. A [*ConnError] wraps them.
var (
	ErrRefused     = errors.New("connection refused: nobody listens on the peer's port, or the listener is full")
	ErrReset       = errors.New("connection reset: the peer has closed or restarted it")
	ErrUnreachable = errors.New("no answer: the peer is down, or the path does not carry RDP")
	ErrStalled     = errors.New("no progress: the peer answers and accepts nothing")
	ErrBadLimits   = errors.New("the peer's limits leave no room for a segment with data")
	ErrOversized   = errors.New("the peer has sent more data than the maximum segment size allows")
	ErrHalfOpen    = errors.New("the peer goes on with an earlier connection of the same ports")
	ErrListener    = errors.New("the listener was closed before the connection was accepted")
)

func configError(format string, args ...any) error {
	return fmt.Errorf("rdp: configuration: "+format, args...)
}

// A ConnError reports why a connection has ended.
type ConnError struct {
	Name Name
	Err  error // one of those above
}

func (e *ConnError) Error() string { return fmt.Sprintf("rdp: %v: %v", e.Name, e.Err) }

// Unwrap returns the reason.
func (e *ConnError) Unwrap() error { return e.Err }

// A SizeError reports that a message is too long. It wraps ErrTooLong.
type SizeError struct{ Len, Max int } // in bytes

func (e *SizeError) Error() string {
	return fmt.Sprintf("rdp: a message of %d bytes; a segment has room for %d on this connection", e.Len, e.Max)
}

// Unwrap returns ErrTooLong.
func (e *SizeError) Unwrap() error { return ErrTooLong }
