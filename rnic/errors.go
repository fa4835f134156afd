package rnic

import (
	"errors"
	"fmt"
)

// Causes that errors of this package wrap.
var (
	ErrClosed     = errors.New("it is closed")
	ErrQueueFull  = errors.New("the queue is full: poll completions, or create it larger")
	ErrNotIdle    = errors.New("the queue pair is not idle: it has or had a connection; Reset makes it idle again")
	ErrNoStream   = errors.New("the queue pair has no connection")
	ErrAborted    = errors.New("this side has aborted the connection")
	ErrForeign    = errors.New("it belongs to another device")
	ErrUsesSRQ    = errors.New("the queue pair takes its receives from a shared receive queue: post there")
	ErrBusy       = errors.New("it is in use")
	ErrOverflow   = errors.New("the completion queue has overflowed: create it larger")
	ErrNotMade    = errors.New("it was not made by its device: get one from Open, AllocPD, CreateQP and the like")
	ErrNoContext  = errors.New("no context is given: say context.Background() if nothing bounds it")
	ErrStalled    = errors.New("the stream was ended, as buffers were short and its peer had gone on with nothing for longest")
	errDraining   = errors.New("it is being disconnected, and takes no more requests")
	errNoDeadline = errors.New("the connection did not end in time")
)

// An OpError reports which operation on which object failed. Err is the cause.
type OpError struct {
	Op     string // the verb: "post send", "connect"
	Object string // the object: "QP 7", "device"
	Err    error
}

// notMade returns the error of a verb on a nil or zero object.
func notMade(op, object string) error { return &OpError{Op: op, Object: object, Err: ErrNotMade} }

// Error names operation and object.
func (e *OpError) Error() string {
	return fmt.Sprintf("rnic: %s: %s: %v", e.Object, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }
