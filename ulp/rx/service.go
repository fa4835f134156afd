package rx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"urnic/ulp/rx/secure"
)

// A Service is what clients may call.
type Service struct {
	// ID is the service ID, which is not 0.
	ID uint16

	// Handler serves the calls.
	Handler Handler

	// Workers is how many calls the handler serves at the same time: 16 if it is 0.
	Workers int

	// Queue is how many more wait for a worker: 1,024 if it is 0, none if it is negative. One
	// more is aborted with Busy.
	Queue int

	// Busy is the code for calls that find the queue full: -100 (try again later) if it is 0.
	Busy int32

	// Upgrade is the ID of another service of the endpoint that takes the connections of
	// clients which ask for an upgrade, or 0.
	Upgrade uint16

	// Security are the security classes that callers may use.
	Security []secure.Server

	// NoNull refuses callers without a security class.
	NoNull bool

	// Reach has clients asked for a sign of life before their first call is served, and after
	// a minute without a call: a forged address has no work done.
	Reach bool

	// DeadTime is how long a client may be silent before its calls fail with -1: 12 s if it
	// is 0.
	DeadTime time.Duration

	// IdleDead fails a call with -3 when nothing has moved for so long; 0 never does.
	IdleDead time.Duration

	// HardDead fails a call with -3 when it has lasted for so long; 0 never does.
	HardDead time.Duration
}

// Defaults of a Service.
const (
	DefaultWorkers = 16
	DefaultQueue   = 1024
	busyCode       = -100
)

// WithDefaults returns s with its defaults filled in, or an error if it can't be served.
func (s Service) WithDefaults() (Service, error) {
	switch {
	case s.ID == 0:
		return s, errors.New("rx: a service needs an ID other than 0")
	case s.Handler == nil:
		return s, fmt.Errorf("rx: service %d has no handler", s.ID)
	case s.Workers < 0:
		return s, fmt.Errorf("rx: service %d: %d workers", s.ID, s.Workers)
	}
	if s.Workers == 0 {
		s.Workers = DefaultWorkers
	}
	if s.Queue == 0 {
		s.Queue = DefaultQueue
	}
	s.Queue = max(s.Queue, 0)
	if s.Busy == 0 {
		s.Busy = busyCode
	}
	return s, nil
}

// CheckServices returns services with their defaults, or an error if two have one ID or an
// upgrade leads nowhere.
func CheckServices(services []Service) ([]Service, error) {
	all := make([]Service, len(services))
	seen := make(map[uint16]bool)
	for i, s := range services {
		var err error
		if all[i], err = s.WithDefaults(); err != nil {
			return nil, err
		}
		if seen[s.ID] {
			return nil, fmt.Errorf("rx: there are two services with ID %d", s.ID)
		}
		seen[s.ID] = true
	}
	for _, s := range all {
		if s.Upgrade != 0 && !seen[s.Upgrade] {
			return nil, fmt.Errorf("rx: service %d upgrades to %d, which is not served", s.ID, s.Upgrade)
		}
	}
	return all, nil
}

// A Handler serves calls.
type Handler interface {
	// Serve reads the request and writes the reply. When it returns nil, the reply is ended.
	// An error aborts the call, with the code that the error or one that it wraps has by a
	// method AbortCode() int32, or with -6. The context ends when the call has failed: its
	// client has gone or aborted it. A handler that panics aborts its call only.
	Serve(ctx context.Context, c ServerCall) error
}

// A HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, c ServerCall) error

// Serve calls f.
func (f HandlerFunc) Serve(ctx context.Context, c ServerCall) error { return f(ctx, c) }

// Stream returns a Handler from a function that needs of a call only its data, such as
// the method Serve of an rpc.Mux.
func Stream(serve func(ctx context.Context, c io.ReadWriter) error) Handler {
	return HandlerFunc(func(ctx context.Context, c ServerCall) error { return serve(ctx, c) })
}

// A ServerCall is a call as its handler sees it. It is valid until the handler returns.
type ServerCall interface {
	// Read reads the request. It returns io.EOF after the last byte.
	io.Reader

	// Write sends a part of the reply. It may be called once the request was read, or enough
	// of it: what is left is dropped. It waits while the client takes no more.
	io.Writer

	// Caller is who makes the call.
	Caller() secure.Caller

	// Peer is the client's address.
	Peer() netip.AddrPort

	// Service is the ID of the service that is called.
	Service() uint16
}

// An Aborter is an error with the code of an abort.
type Aborter interface {
	error
	AbortCode() int32
}

// UserAbort is the code of a call that a side ends without another reason.
const UserAbort = -6

// AbortCode returns the code that a call is aborted with for an error of its handler.
func AbortCode(err error) int32 {
	if a, ok := errors.AsType[Aborter](err); ok {
		return a.AbortCode()
	}
	return UserAbort
}
