package rnicinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"urnic/internal/host/infosock"
)

// Bounds of what a reader takes of others.
const (
	mostProcesses = 256     // sockets that are asked
	mostAtOnce    = 64      // at a time
	mostBytes     = 1 << 20 // of a report: what it takes in memory is a multiple
	youngest      = 2 * time.Second
)

// An Answer is what came of asking at a socket: either Report or Err is nil.
type Answer struct {
	Path   string
	Report *Report
	Err    error
}

// Gather asks all processes that serve a device in a directory, "" for the user's own, at once, each
// for at most so long, and returns their answers in the order of the sockets. It removes
// sockets whose processes are gone. skipped is how many sockets more there are than are asked.
func Gather(ctx context.Context, dir string, patience time.Duration) (answers []Answer, skipped int, err error) {
	paths, err := infosock.List(dir, kind)
	if err != nil {
		return nil, 0, fmt.Errorf("rnicinfo: %w", err)
	}
	if len(paths) > mostProcesses {
		paths, skipped = paths[:mostProcesses], len(paths)-mostProcesses
	}
	all := make([]Answer, len(paths))
	slots := make(chan struct{}, mostAtOnce)
	var asking sync.WaitGroup
	for i, path := range paths {
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r, err := Ask(ctx, path, patience)
			all[i] = Answer{Path: path, Report: r, Err: err}
		})
	}
	asking.Wait()
	for _, a := range all {
		if !errors.Is(a.Err, infosock.ErrGone) && !errors.Is(a.Err, fs.ErrNotExist) {
			answers = append(answers, a)
		}
	}
	return answers, skipped, nil
}

// Ask asks the process that serves a socket what its device has. If the process is gone, Ask
// removes the socket, and the error is infosock's ErrGone.
func Ask(ctx context.Context, path string, patience time.Duration) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	var r bounded
	err = infosock.Ask(ctx, path, &r)
	switch {
	case errors.Is(err, infosock.ErrGone):
		remove(path, before)
		return nil, err
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no answer within %v: the process may be stopped: %w", patience, context.DeadlineExceeded)
	case err != nil:
		return nil, err
	case r.Version != Version:
		return nil, fmt.Errorf("%s: the report has format %d, and not %d: the process runs another version of urnic", filepath.Base(path), r.Version, Version)
	}
	return (*Report)(&r), nil
}

// A bounded is a Report that is not too long.
type bounded Report

// UnmarshalJSON decodes a report.
func (b *bounded) UnmarshalJSON(text []byte) error {
	if len(text) > mostBytes {
		return fmt.Errorf("the report is longer than %d bytes", mostBytes)
	}
	if err := json.Unmarshal(text, (*Report)(b)); err != nil {
		return err
	}
	b.Device.Sort()
	b.Device.Messages = b.Device.Messages[:min(len(b.Device.Messages), MostListed)]
	return nil
}

// remove removes a socket that nobody listens at, as it was seen before it was asked. A young one stays:
// its process may be between making it and listening at it.
func remove(path string, before fs.FileInfo) {
	now, err := os.Lstat(path)
	if err == nil && os.SameFile(before, now) && time.Since(now.ModTime()) > youngest {
		_ = os.Remove(path) // another process may have removed it
	}
}
