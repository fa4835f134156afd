package rnic

import (
	"errors"
	"fmt"

	"urnic/stag"
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

// An OpError says which operation on which object failed. Err says why.
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

// A WRError says which work request of a list was refused. Those before it are
// posted; it and those behind it are not.
type WRError struct {
	Index int    // in the list
	ID    uint64 // of the request
	Op    Opcode // of the request; OpRecv for a receive
	Err   error  // the rule that it breaks
}

// Error names the request and the rule.
func (e *WRError) Error() string {
	return fmt.Sprintf("work request %d (ID %d): %v: %v", e.Index, e.ID, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *WRError) Unwrap() error { return e.Err }

// A StateError says that a queue pair is in the wrong state for a verb.
type StateError struct {
	State State
	Err   error // why the stream has ended, if it has
}

// Error names the state.
func (e *StateError) Error() string {
	s := fmt.Sprintf("the queue pair is in state %v", e.State)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns why the stream has ended.
func (e *StateError) Unwrap() error { return e.Err }

// A CompletionError is a completion that did not succeed.
type CompletionError struct{ WC WC }

// Error names the request and its status.
func (e *CompletionError) Error() string {
	s := fmt.Sprintf("rnic: QP %d: %v (ID %d): %v", e.WC.QPN, e.WC.Op, e.WC.ID, e.WC.Status)
	access, ok := e.WC.Cause.(*stag.AccessError) //nolint:errorlint // others have words of their own
	switch {
	case e.WC.Cause == nil:
	case ok && access.Violation == stag.InvalidSTag && e.WC.Status == StatusBadSTag:
		s += ": " + access.Detail()
	default:
		s += ": " + e.WC.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *CompletionError) Unwrap() error { return e.WC.Cause }
