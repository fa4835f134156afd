package sysfsdir

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// exchange gives two directories each other's name, at once.
func exchange(a, b string) error {
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}

// private makes a directory that only this user can change, or checks that one is so: below a
// directory that is everybody's, somebody else could have made it.
func private(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if s, is := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm()&0o022 != 0 || !is || int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is no directory that only this user can change: remove it: %w", dir, fs.ErrPermission)
	}
	return nil
}
