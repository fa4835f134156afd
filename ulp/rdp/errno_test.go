package rdp

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"urnic/ulp/rdp/machine"
)

func TestWithErrno(t *testing.T) {
	for err, want := range map[error]syscall.Errno{
		machine.ErrRefused: syscall.ECONNREFUSED, machine.ErrReset: syscall.ECONNRESET,
		machine.ErrUnreachable: syscall.ETIMEDOUT, machine.ErrStalled: syscall.ETIMEDOUT,
	} {
		if got := WithErrno(fmt.Errorf("a connection: %w", err)); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	if other := errors.New("other"); WithErrno(other).Error() != "other" || WithErrno(nil) != nil {
		t.Error("another error is changed")
	}
}
