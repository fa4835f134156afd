package rpctest

import (
	"context"
	"fmt"
	"io"

	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/secure"
)

// An AbortError is the error of a call that was aborted.
type AbortError struct{ Code int32 }

func (e *AbortError) Error() string { return fmt.Sprintf("the call was aborted with code %d", e.Code) }

// AbortCode returns the code.
func (e *AbortError) AbortCode() int32 { return e.Code }

const userAbort = -6 // the code of a call that a side ends without another reason

// A Call is one side of a call in memory.
type Call struct {
	in, out *pipe
	caller  secure.Caller
}

// Pair returns the client's and the server's side of a call.
func Pair() (client, server *Call) {
	request, reply := newPipe(), newPipe()
	return &Call{in: reply, out: request}, &Call{in: request, out: reply}
}

// Chunks makes Read return at most n bytes at once, and returns c.
func (c *Call) Chunks(n int) *Call {
	c.in.maxChunk = n
	return c
}

// Read reads what the other side has written.
func (c *Call) Read(p []byte) (int, error) { return c.in.Read(p) }

// Write writes to the other side. It waits while much is unread.
func (c *Call) Write(p []byte) (int, error) { return c.out.Write(p) }

// CloseWrite ends what is written.
func (c *Call) CloseWrite() error {
	c.out.change(func() { c.out.ended = true })
	return nil
}

// Abort ends the call with a code, unless it has ended.
func (c *Call) Abort(code int32) error {
	c.end(&AbortError{code})
	return nil
}

// end ends both directions.
func (c *Call) end(err error) {
	for _, p := range []*pipe{c.in, c.out} {
		p.change(func() {
			if p.err == nil {
				p.err = err
			}
		})
	}
}

// Close ends the call.
func (c *Call) Close() error {
	c.in.mu.Lock()
	whole := c.in.ended && len(c.in.data) == 0
	c.in.mu.Unlock()
	if !whole {
		return c.Abort(userAbort)
	}
	return nil
}

// Caller returns who calls: see [As].
func (c *Call) Caller() secure.Caller { return c.caller }

// Serve returns a function for rpc.Client.Begin, whose calls m serves, each in a goroutine of
// its own.
func Serve(m *rpc.Mux) func(context.Context) (rpc.Call, error) { return As(m, secure.Caller{}) }

// As is Serve for calls of this caller.
func As(m *rpc.Mux, caller secure.Caller) func(context.Context) (rpc.Call, error) {
	return func(ctx context.Context) (rpc.Call, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		client, server := Pair()
		server.caller = caller
		stop := context.AfterFunc(ctx, func() { client.end(ctx.Err()) })
		go func() {
			defer stop()
			Carry(context.WithoutCancel(ctx), m.Serve, server)
		}()
		return client, nil
	}
}

// Carry serves one call as an endpoint does: it completes the reply if serve returns nil, and
// aborts the call with the error's code otherwise.
func Carry(ctx context.Context, serve func(context.Context, io.ReadWriter) error, server *Call) {
	if err := serve(ctx, server); err != nil {
		code, ok := rpc.AbortCode(err)
		if !ok {
			code = userAbort
		}
		server.Abort(code) //nolint:errcheck // Abort always returns nil
		return
	}
	server.in.change(func() { server.in.ignored = true })
	server.CloseWrite() //nolint:errcheck // CloseWrite always returns nil
}
