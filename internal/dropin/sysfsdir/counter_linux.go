package sysfsdir

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Add adds to a counter of a directory that [Write] or [Keep] has written. Other processes may add to it, too. The sum is modulo
// 2^64. If another process has the file at this moment, the error is [ErrBusy], and nothing is added.
func Add(dir, name string, n uint64) (err error) {
	f, err := os.OpenFile(filepath.Join(dir, filepath.FromSlash(name)), os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // that gives up the lock
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return ErrBusy
	}
	var b [maxCounter + 1]byte
	have, _ := f.ReadAt(b[:], 0) // it ends sooner
	was, is := parseCounter(b[:have])
	if !is {
		return &ForeignError{f.Name(), "is no counter"}
	}
	text := printCounter(was + n)
	if len(text) < have { // it begins again
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(text, 0)
	}
	return err
}
