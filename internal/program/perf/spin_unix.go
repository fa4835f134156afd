//go:build unix

package perf

import (
	"context"
	"errors"
	"io"
	"net"

	"golang.org/x/sys/unix"
)

// spinning runs f with calls that write and read whole messages by system calls
// on the descriptor, over and over, without ever sleeping.
func spinning(ctx context.Context, c *net.TCPConn, f func(write, read func([]byte) error) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	spin := newSpinner()
	var failed error
	err = raw.Control(func(fd uintptr) {
		all := func(b []byte, call func(int, []byte) (int, error)) error {
			for len(b) > 0 {
				n, err := call(int(fd), b)
				switch {
				case n > 0:
					b = b[n:]
				case errors.Is(err, unix.EAGAIN):
					if err := spin.pause(ctx); err != nil {
						return err
					}
				case errors.Is(err, unix.EINTR):
				case err != nil:
					return err
				default:
					return io.EOF
				}
			}
			return nil
		}
		failed = f(
			func(b []byte) error { return all(b, unix.Write) },
			func(b []byte) error { return all(b, unix.Read) },
		)
	})
	return errors.Join(err, failed)
}
