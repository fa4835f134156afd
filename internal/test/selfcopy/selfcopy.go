// Package selfcopy puts a test's own program where other users can run it, for tests
// that need several users.
package selfcopy

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Dir returns a directory that every user can enter, and a copy of the running program in
// it. They go when the test ends. testing.TB.TempDir does not do: others can't enter what
// is above it.
func Dir(t testing.TB) (dir, program string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "urnic-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program = filepath.Join(dir, "program")
	if err := errors.Join(copyTo(program), os.Chmod(program, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir, program
}

func copyTo(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	to, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
