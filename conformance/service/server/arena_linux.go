package server

import (
	"os"

	"golang.org/x/sys/unix"
)

// anonymous returns a file in memory.
func anonymous() (*os.File, error) {
	fd, err := unix.MemfdCreate("urnic-conformance", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "memory of a conformance session"), nil
}
