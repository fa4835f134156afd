package main

import (
	"fmt"
	"io"
	"os"
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

// An outputFile is a file that a command writes because a user wants it. Of what is lost of it, the
// user is told even if the command was interrupted.
type outputFile struct{ f *os.File }

func (o *outputFile) Write(b []byte) (int, error) {
	n, err := o.f.Write(b)
	return n, alwaysTell(err)
}

func (o *outputFile) WriteAt(b []byte, at int64) (int, error) {
	n, err := o.f.WriteAt(b, at)
	return n, alwaysTell(err)
}

func (o *outputFile) Close() error { return alwaysTell(o.f.Close()) }
