//go:build !linux

package rds

import "net"

func newPeeker(c net.Conn) peeker { return &aheadPeeker{Conn: c} }
