//go:build !linux

package rendezvous

import "syscall"

// bindLate does nothing where a socket can't be bound to an address alone.
func bindLate(_, _ string, _ syscall.RawConn) error { return nil }
