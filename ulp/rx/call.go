package rx

import (
	"context"
	"io"
	"net/netip"
	"time"

	"urnic/ulp/rx/secure"
)

// An Endpoint makes connections, and serves those of clients. Its methods may be called at
// the same time.
type Endpoint interface {
	// Addr is the address at which clients find the endpoint's services.
	Addr() netip.AddrPort

	// Dial makes a connection to a service. Over UDP nothing is sent before the first call.
	Dial(ctx context.Context, addr netip.AddrPort, service uint16, cfg DialConfig) (Conn, error)

	// Shutdown accepts no more calls, waits until those that handlers serve have ended, and
	// closes the endpoint. If the context ends first, it closes at once and returns the
	// context's error.
	Shutdown(ctx context.Context) error

	// Close ends all connections and calls, and waits for the handlers.
	Close() error
}

// DialConfig says what a connection is to be like. The zero DialConfig is of null security.
type DialConfig struct {
	// Security is how the caller proves who it is, and how data is protected.
	Security secure.Client

	// Upgrade asks the server for a better service of the same kind, see Conn.Service.
	Upgrade bool

	// DeadTime is how long the server may be silent before calls fail with -1: 12 s if it
	// is 0.
	DeadTime time.Duration

	// IdleDead fails a call with -3 when nothing has moved for so long; 0 never does.
	IdleDead time.Duration

	// HardDead fails a call with -3 when it has lasted for so long; 0 never does.
	HardDead time.Duration
}

// A Conn is a client's connection to a service. Its methods may be called at the same time.
type Conn interface {
	// Begin begins a call. While all four channels have calls, it waits for one to end. The
	// call is aborted with -6 when the context ends, and then its error is a *CancelError.
	Begin(ctx context.Context) (Call, error)

	// Service is the service ID, which differs from the one that was dialed if the server
	// has granted an upgrade.
	Service() uint16

	// Peer is the server's address.
	Peer() netip.AddrPort

	// Close ends the connection. Calls that have not ended are aborted.
	Close() error
}

// A Call is a client's call. One goroutine may write while another one reads; Abort and
// Close may be called at any time. The error of a call that was aborted has a method
// AbortCode() int32.
type Call interface {
	// Read reads the reply. It returns io.EOF after the last byte. It may be called after
	// CloseWrite.
	io.Reader

	// Write sends a part of the request. It waits while the server takes no more.
	io.Writer

	// CloseWrite ends the request.
	CloseWrite() error

	// Abort ends the call with a code for the server. One that has ended stays as it is.
	Abort(code int32) error

	// Close ends the call. One whose reply was not read to its end is aborted with -6.
	Close() error
}
