//go:build !linux

package main

import (
	"context"
	"runtime"
)

func gainedRights() bool { return false }

// execute says that there is nothing to execute a program with.
func execute(args, _ []string, _ string) error {
	path, err := find(args[0])
	if err != nil {
		return err
	}
	return unfit("%s can't run on urnic: the library is for Linux, and this is %s", path, runtime.GOOS)
}

// recordTimeline says the same.
func recordTimeline(_ context.Context, _ string, args, env []string, library string) error {
	return execute(args, env, library)
}
