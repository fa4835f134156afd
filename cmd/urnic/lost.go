package main

import (
	"fmt"
	"io"
	"sync"
)

// A kept is standard output or standard error of a command. It keeps the first error of
// writing, so that run can report that output was lost: most of what commands print goes
// through functions that return no errors.
type kept struct {
	io.Writer
	name string

	mu     sync.Mutex
	failed error
}

func (k *kept) Write(b []byte) (int, error) {
	n, err := k.Writer.Write(b)
	if err != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.failed == nil {
			k.failed = err
		}
	}
	return n, err
}

// lost returns an error if something could not be written.
func (k *kept) lost() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failed == nil {
		return nil
	}
	return fmt.Errorf("part of %s was lost: %w", k.name, k.failed)
}

// plainWriter returns what is behind a kept writer: a terminal is known by its file, and
// nobody misses a progress that can't be shown.
func plainWriter(w io.Writer) io.Writer {
	if k, is := w.(*kept); is {
		return k.Writer
	}
	return w
}
