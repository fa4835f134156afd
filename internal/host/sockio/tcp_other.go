//go:build !linux

package sockio

import (
	"errors"
	"net"
)

func tryTCP(*net.TCPConn, []byte) (int, error) { return 0, nil }

func newTCP(*net.TCPConn) (Stream, error) {
	return nil, errors.ErrUnsupported
}
