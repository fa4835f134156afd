package rping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// A MismatchError says that what came back is not what was sent.
type MismatchError struct {
	Round, Offset int
	Sent, Got     byte
}

// Error says where the two differ first.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("rping: round %d: byte %d was sent as 0x%02x and came back as 0x%02x", e.Round, e.Offset, e.Sent, e.Got)
}

// grace is how long a round may continue when the context has ended.
const grace = time.Second

// Client runs the client's rounds on a connected queue pair. It returns a
// *MismatchError if data came back changed, and otherwise what ended the rounds
// early: an error of the verbs, or the context's. When the context ends, the
// round in progress is finished, if the server lets it: one that disconnects in
// the middle of a round breaks the server's.
func (e *End) Client(ctx context.Context) error {
	rounds, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		t := time.AfterFunc(grace, cancel)
		context.AfterFunc(rounds, func() { t.Stop() })
	})()
	for n := 0; e.options.Count == 0 || n < e.options.Count; n++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("before round %d: %w", n, err)
		}
		if err := e.round(rounds, n); err != nil {
			return fmt.Errorf("round %d: %w", n, e.why(err))
		}
	}
	return nil
}

func (e *End) round(ctx context.Context, n int) error {
	fill(e.ping, n)
	clear(e.sink)
	if err := e.send(ctx, e.pingMR, len(e.ping)); err != nil {
		return err
	}
	if _, err := e.recv(ctx); err != nil {
		return err
	}
	if err := e.send(ctx, e.sinkMR, len(e.sink)); err != nil {
		return err
	}
	if _, err := e.recv(ctx); err != nil {
		return err
	}
	if e.options.Validate && !bytes.Equal(e.ping, e.sink) {
		for i := range e.ping {
			if e.ping[i] != e.sink[i] {
				return &MismatchError{Round: n, Offset: i, Sent: e.ping[i], Got: e.sink[i]}
			}
		}
	}
	if e.options.Show != nil {
		e.options.Show("ping data: " + text(e.sink))
	}
	if e.options.Round != nil {
		e.options.Round(n, len(e.ping))
	}
	return nil
}

// why prefers the reason for which the stream has ended to the flushed request
// that reports it.
func (e *End) why(err error) error {
	if cause := e.QP.Err(); cause != nil && !errors.Is(err, cause) {
		return &endedError{cause, err}
	}
	return err
}

// An endedError says why the stream has ended, and wraps the error of a request that came of
// it.
type endedError struct{ cause, request error }

func (e *endedError) Error() string { return e.cause.Error() }

func (e *endedError) Unwrap() []error { return []error{e.cause, e.request} }
