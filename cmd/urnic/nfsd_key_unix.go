//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// openKey follows no symbolic link and waits for no FIFO.
func openKey(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// ownFile reports whether a file belongs to this user.
func ownFile(i fs.FileInfo) bool {
	st, ok := i.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func readByOthers(i fs.FileInfo) bool { return i.Mode().Perm()&0o077 != 0 }

// ownDirectory reports whether none but this user and root can change a directory.
func ownDirectory(i fs.FileInfo) bool {
	st, ok := i.Sys().(*syscall.Stat_t)
	return ok && (st.Uid == 0 || int(st.Uid) == os.Geteuid()) && i.Mode().Perm()&0o022 == 0
}
