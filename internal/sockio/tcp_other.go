//go:build !linux

package sockio

import (
	"errors"
	"net"
)

func newTCP(*net.TCPConn) (Stream, error) {
	return nil, errors.ErrUnsupported
}
