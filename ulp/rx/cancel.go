package rx

import (
	"context"
	"errors"
	"fmt"
)

// A CancelError is the error of a call that was aborted because its context has ended. It
// wraps the context's error and its cause.
type CancelError struct {
	err, cause error
}

func (e *CancelError) Error() string {
	return fmt.Sprintf("the call was aborted as its context has ended: %v", e.cause)
}

// Unwrap returns the context's error and its cause.
func (e *CancelError) Unwrap() []error { return []error{e.err, e.cause} }

// AbortCode is the code that the server gets.
func (*CancelError) AbortCode() int32 { return UserAbort }

// Cancelled returns a [*CancelError] for an error of a call that was aborted as ctx has ended,
// and any other error as it is. Transports use it for what calls return.
func Cancelled(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if a, ok := errors.AsType[Aborter](err); !ok || a.AbortCode() != UserAbort {
		return err
	}
	return &CancelError{ctx.Err(), context.Cause(ctx)}
}
