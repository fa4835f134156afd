package rpc

import (
	"context"
	"io"
	"net/netip"

	"urnic/ulp/rx/secure"
)

// A Call is one call of Rx, on the client's side.
type Call interface {
	// Read reads the reply. It returns io.EOF after the server's last packet. The error of
	// a call that was aborted has a method AbortCode() int32.
	io.Reader

	// Write sends a part of the request.
	io.Writer

	// CloseWrite ends the request.
	CloseWrite() error

	// Abort ends the call with a code for the server.
	Abort(code int32) error

	// Close ends the call, which is aborted unless the reply was read to its end.
	Close() error
}

// Over returns a function for [Client.Begin] from a method that begins calls of a type of
// its own.
func Over[C Call](begin func(context.Context) (C, error)) func(context.Context) (Call, error) {
	return func(ctx context.Context) (Call, error) {
		c, err := begin(ctx)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// A Client makes calls of one interface of one server. Its methods may be called at the same
// time.
type Client struct {
	// Begin begins a call. The call ends when the context does.
	Begin func(context.Context) (Call, error)

	// Codes names the interface's abort codes in errors. It may be nil.
	Codes *Codes
}

type (
	callerKey struct{}
	peerKey   struct{}
)

// WithCaller returns a context that tells handlers who calls.
func WithCaller(ctx context.Context, c secure.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Caller returns who makes the call that a handler serves. It is the zero Caller unless the
// call's security class knows better.
func Caller(ctx context.Context) secure.Caller {
	c, _ := ctx.Value(callerKey{}).(secure.Caller)
	return c
}

// Peer returns the address of the client whose call a handler serves. It is the zero AddrPort
// if the call does not tell it.
func Peer(ctx context.Context) netip.AddrPort {
	a, _ := ctx.Value(peerKey{}).(netip.AddrPort)
	return a
}
