//go:build !linux

package main

import (
	"errors"
	"runtime"

	"urnic/internal/dropin/sysfs"
)

// view says that there are no devices of the drop-in library.
func view([]string) ([]sysfs.Entry, error) {
	return nil, errors.New("the drop-in library is for Linux, and this is " + runtime.GOOS)
}
