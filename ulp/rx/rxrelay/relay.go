package rxrelay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"urnic/ulp/rx"
)

// To returns a handler that makes each call again on a connection.
func To(conn rx.Conn) rx.Handler {
	return New(func(ctx context.Context, _ rx.ServerCall) (rx.Call, error) { return conn.Begin(ctx) })
}

const bufferLen = 32 << 10 // bytes of a call that are moved at once

// New returns a handler that makes each call again as the call that begin returns.
func New(begin func(ctx context.Context, c rx.ServerCall) (rx.Call, error)) rx.Handler {
	return rx.HandlerFunc(func(ctx context.Context, c rx.ServerCall) error {
		call, err := begin(ctx, c)
		if err != nil {
			return fmt.Errorf("rxrelay: service %d: %w", c.Service(), err)
		}
		if err := relay(c, call); err != nil {
			return errors.Join(err, call.Close())
		}
		return call.Close()
	})
}

// relay passes the request on, then the reply. Rx has one after the other: what is left of a
// request when the reply begins is of no use.
func relay(c rx.ServerCall, call rx.Call) error {
	buffer := make([]byte, bufferLen)
	for {
		n, err := c.Read(buffer)
		if n > 0 {
			if _, err := call.Write(buffer[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // the client has gone: tell the server why
			return errors.Join(err, call.Abort(rx.AbortCode(err)))
		}
	}
	if err := call.CloseWrite(); err != nil {
		return err
	}
	for {
		n, err := call.Read(buffer)
		if n > 0 {
			if _, err := c.Write(buffer[:n]); err != nil {
				return errors.Join(err, call.Abort(rx.AbortCode(err)))
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
