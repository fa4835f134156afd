package main

import (
	"context"
	"errors"
	"io"
)

// A toldError is told even if the command was interrupted. The end of a context makes errors of
// many kinds, such as a connection that is reset because this side has closed it, and they can't
// be told from others by what they say. So of a command that was interrupted, errors are told
// only if they are marked: what was lost, what is left behind, and what failed earlier.
type toldError struct{ error }

func (e *toldError) Unwrap() error { return e.error }

// alwaysTell marks an error as one to be told even if the command was interrupted.
func alwaysTell(err error) error {
	if err == nil {
		return nil
	}
	return &toldError{err}
}

// unlessEnded marks an error that came before the context ended, and so for another reason.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return alwaysTell(err)
	}
	return err
}

// toTell returns what is to be told of an error: all of it, or if the context has ended, those
// parts that are marked, and verdicts with an exit status of their own.
func toTell(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	told, _ := marked(ctx, err)
	return errors.Join(told...)
}

// marked returns the marked parts of an error, with what is said around each of them, and whether
// they are all of it.
func marked(ctx context.Context, err error) (parts []error, all bool) {
	switch e := err.(type) { //nolint:errorlint // each link of the chain has its turn
	case *toldError:
		return []error{err}, true
	case *statusError:
		if !interrupted(ctx, e.error) {
			return []error{err}, true
		}
	}
	inner := causes(err)
	all = len(inner) > 0
	for _, e := range inner {
		own, whole := marked(ctx, e)
		parts, all = append(parts, own...), all && whole
	}
	if all {
		parts = []error{err}
	}
	return parts, all
}

// reason is what the user of a command is told of its error, in one line.
func reason(ctx context.Context, err error) string {
	told := toTell(ctx, err)
	_, verdict := errors.AsType[*statusError](told)
	switch {
	case err == nil || ctx.Err() == nil || verdict:
		return text(told)
	case told == nil:
		return "interrupted"
	}
	return "interrupted: " + text(told)
}

// served returns the error with which a server ends that serves until the context ends: none
// if it did just that, else one with the status of a failure.
func served(ctx context.Context, err error) error {
	told := toTell(ctx, err)
	if told == nil {
		return nil
	}
	return &statusError{told, statusFailed} // also if the context ends now
}

// interrupted reports whether err says that the user has ended the command.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// An interruptibleReader is a reader whose Read returns when a context ends, although what it
// reads from waits, such as a pipe that nobody writes to.
type interruptibleReader struct {
	ctx context.Context
	r   io.Reader
	buf []byte // belongs to the Read that is in progress
}

type read struct {
	n   int
	err error
}

// Read implements io.Reader. Its error is the context's cause once that has ended.
func (r *interruptibleReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if len(r.buf) < len(p) {
		r.buf = make([]byte, len(p))
	}
	buf := r.buf[:len(p)]
	done := make(chan read, 1)
	go func() {
		n, err := r.r.Read(buf)
		done <- read{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buf[:got.n]), got.err
	case <-r.ctx.Done():
		r.buf = nil // the goroutine may still write to it
		return 0, context.Cause(r.ctx)
	}
}
