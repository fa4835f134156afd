package rdp

import (
	"errors"
	"fmt"
	"syscall"

	"urnic/ulp/rdp/machine"
)

// WithErrno returns an error of a connection that wraps, in addition, the syscall.Errno that TCP would have for it, for programs that
// look for that: ECONNREFUSED, ECONNRESET or ETIMEDOUT. Another error is returned as it is.
func WithErrno(err error) error {
	for of, errno := range map[error]syscall.Errno{
		machine.ErrRefused: syscall.ECONNREFUSED, machine.ErrReset: syscall.ECONNRESET,
		machine.ErrUnreachable: syscall.ETIMEDOUT, machine.ErrStalled: syscall.ETIMEDOUT,
	} {
		if errors.Is(err, of) {
			return fmt.Errorf("%w (%w)", err, errno)
		}
	}
	return err
}
