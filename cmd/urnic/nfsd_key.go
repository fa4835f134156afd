package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	handleKeyFile = "nfsd-handles.key"
	handleKeySize = 32 // bytes
)

// errKeyUnsafe says that there is a key of file handles that others may know.
var errKeyUnsafe = errors.New("the key of file handles is not secret")

// handleKey returns the key that signs file handles. It is kept, so that the handles which
// clients hold are good for the next server too. Where it can't be kept, it is made anew,
// and warnings tell so.
func (o *nfsdOptions) handleKey(warnings io.Writer) ([]byte, error) {
	kept := false // trees in memory end with the server, and so do their handles
	for _, t := range o.trees {
		kept = kept || t.dir != ""
	}
	if !kept {
		return newKey(), nil
	}
	dir, err := o.stateDirectory()
	if err == nil {
		var key []byte
		if key, err = keptKey(dir); err == nil {
			return key, nil
		}
	}
	if o.stateDir != "" || errors.Is(err, errKeyUnsafe) {
		return nil, err
	}
	_, err = fmt.Fprintf(warnings, "warning: no key of file handles can be kept, so clients must mount again after this server has ended: "+
		"give a directory for it with --state-dir (%v)\n", err)
	return newKey(), err
}

// stateDirectory returns where state is kept from one run to the next.
func (o *nfsdOptions) stateDirectory() (string, error) {
	if o.stateDir != "" {
		return o.stateDir, nil
	}
	// systemd makes it, as StateDirectory= says; there may be several.
	if dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/lib/urnic", nil
	}
	if runtime.GOOS == "windows" {
		dir, err := os.UserConfigDir()
		return filepath.Join(dir, "urnic"), err
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "urnic"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "urnic"), err
}

func newKey() []byte {
	key := make([]byte, handleKeySize)
	_, _ = rand.Read(key) // never fails
	return key
}

// keptKey returns the key in a directory, and makes both if they are not there. Servers that
// do so at the same time get the same.
func keptKey(dir string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("can't make the directory for the key of file handles: %w", err)
	}
	if err := checkStateDirectory(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, handleKeyFile)
	key, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := writeKey(dir, path); err != nil {
		return nil, fmt.Errorf("can't keep a key of file handles: %w", err)
	}
	return readKey(path)
}

// writeKey makes a key, unless somebody else does so first. It is whole as soon as it has its
// name.
func writeKey(dir, path string) (err error) {
	f, err := os.CreateTemp(dir, handleKeyFile+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(newKey())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// readKey reads a key that nobody else can have read or made.
func readKey(path string) ([]byte, error) {
	f, err := openKey(path)
	if err != nil {
		return nil, fmt.Errorf("can't read the key of file handles: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("can't read the key of file handles: %w", err)
	}
	const advice = "remove it, and the server makes another; clients must mount again then"
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is no regular file: %s", errKeyUnsafe, path, advice)
	case !ownFile(info):
		return nil, fmt.Errorf("%w: %s belongs to another user: %s", errKeyUnsafe, path, advice)
	case readByOthers(info):
		return nil, fmt.Errorf("%w: others may read or write %s (its mode is %#o, and must be 0600): %s", errKeyUnsafe, path, info.Mode().Perm(), advice)
	case info.Size() != handleKeySize:
		return nil, fmt.Errorf("%w: %s has %d bytes instead of %d: %s", errKeyUnsafe, path, info.Size(), handleKeySize, advice)
	}
	key := make([]byte, handleKeySize)
	if _, err := io.ReadFull(f, key); err != nil {
		return nil, fmt.Errorf("can't read the key of file handles: %w", err)
	}
	return key, nil
}

// checkStateDirectory refuses a directory in which others could put a key of theirs.
func checkStateDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("can't use the directory for the key of file handles: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is no directory: give one with --state-dir", dir)
	case !ownDirectory(info):
		return fmt.Errorf("%w: %s, where it is to be kept, can be changed by other users: give another with --state-dir, or take their right to write it (chmod go-w)", errKeyUnsafe, dir)
	}
	return nil
}
