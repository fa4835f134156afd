//go:build !unix

package perf

import (
	"context"
	"errors"
	"net"
)

func spinning(context.Context, *net.TCPConn, func(write, read func([]byte) error) error) error {
	return errors.New("this system has no baseline that polls: leave out --baseline, or give --poll event")
}
