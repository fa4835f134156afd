//go:build linux

package dropin

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"urnic/pd"
	"urnic/rnic"
)

// An Errno is what a call returns to C; 0 is success.
type Errno = syscall.Errno

const ok Errno = 0

// errno returns what C gets of an error of package rnic.
func errno(err error) Errno {
	var limit *pd.LimitError
	var number Errno
	switch {
	case err == nil:
		return ok
	case errors.As(err, &limit), errors.Is(err, rnic.ErrQueueFull):
		return syscall.ENOMEM
	case errors.Is(err, rnic.ErrBusy):
		return syscall.EBUSY
	case errors.As(err, &number):
		return number
	}
	return syscall.EINVAL
}

// fail logs why a call fails, and returns what C gets.
func (e *Engine) fail(err error) Errno {
	if err != nil {
		e.log.printf(logInfo, "%v", err)
	}
	return errno(err)
}

// refuse logs why a call is refused, and returns what C gets. What is not supported is told
// at every level, but once of each kind: many programs print no more than that a call has
// failed.
func (e *Engine) refuse(number Errno, format string, args ...any) Errno {
	if number != syscall.EOPNOTSUPP {
		e.log.printf(logInfo, format, args...)
		return number
	}
	kind := []string{format}
	for _, a := range args {
		if err, is := a.(error); is { // the other arguments tell requests apart
			kind = append(kind, err.Error())
		}
	}
	e.log.once(logError, strings.Join(kind, ": "), fmt.Sprintf(format, args...))
	return number
}
