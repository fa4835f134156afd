//go:build unix

package capture

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestRecordingsAreTheOwnersOnly(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	name := filepath.Join(t.TempDir(), "file")
	for range 2 { // the second time it is there, and others may read it
		f, err := Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("what was sent"); err != nil {
			t.Error(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 || info.Size() != 13 {
			t.Errorf("mode %v, %d bytes", info.Mode(), info.Size())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Chmod(name, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A pipe, or a device such as /dev/null, keeps its mode.
func TestRecordingIntoAPipeKeepsItsMode(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode() != fs.ModeNamedPipe|0o644 {
		t.Errorf("mode %v: %v", info.Mode(), err)
	}
	if f, err := Create(t.TempDir()); err == nil {
		t.Errorf("a directory is taken: %v", f.Close())
	}
}
