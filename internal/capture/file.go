package capture

import (
	"errors"
	"os"
)

// Create opens a file for a recording, which it creates or empties. The mode of the
// file is 0600, that of one that was there too: a recording holds all that was sent,
// such as the contents of files, which others may not read. What is no regular file,
// such as a pipe, stays as it is.
func Create(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := prepare(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func prepare(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Mode().Perm() != 0o600 {
		if err := f.Chmod(0o600); err != nil {
			return err // it is somebody else's
		}
	}
	return f.Truncate(0)
}
