//go:build race

package sockio

import (
	"errors"

	"golang.org/x/sys/unix"
)

// The functions of package unix tell the race detector that what happened before
// a write happens before the read of it.

type iov struct{}

func (*iov) writev(fd int, pieces [][]byte) (int, unix.Errno) {
	return result(unix.Writev(fd, pieces))
}

func recv(fd int, p []byte) (int, unix.Errno) { return result(unix.Read(fd, p)) }

func result(n int, err error) (int, unix.Errno) {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return 0, errno
	}
	return n, 0
}
