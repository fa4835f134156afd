//go:build !linux

package profile

import (
	"errors"
	"syscall"
)

// segmentSize returns what has a socket tell its peer how large TCP segments it
// takes, or nil if that is left to TCP.
func segmentSize(n int) func(network, address string, c syscall.RawConn) error {
	if n == 0 {
		return nil
	}
	return func(string, string, syscall.RawConn) error {
		return errors.New("the segment size can't be set on this system")
	}
}
