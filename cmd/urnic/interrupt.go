package main

import (
	"context"
	"io"
)

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
