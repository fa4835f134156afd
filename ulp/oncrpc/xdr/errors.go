package xdr

import (
	"errors"
	"fmt"
)

// What can be wrong with a stream.
var (
	ErrShort   = errors.New("the stream ends too early")
	ErrLong    = errors.New("longer than allowed")
	ErrValue   = errors.New("no value of its type")
	ErrTrailer = errors.New("octets are left over")
	ErrMoved   = errors.New("data was moved that may not be, or not whole")
	ErrUnmoved = errors.New("data was not moved to the place that there was for it (RFC 8166 §6.1): reach the other side over TCP")
)

// An Error says where a stream can't be decoded.
type Error struct {
	At   int    // the position in the stream, in bytes
	What string // what was to be read there
	Err  error  // one of the Err values
}

func (e *Error) Error() string { return fmt.Sprintf("xdr: %s at octet %d: %v", e.What, e.At, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
