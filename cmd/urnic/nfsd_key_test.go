package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// The key of file handles is random, the same for the next server, and nobody else's.
func TestHandleKeyIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "urnic")
	keys := make([][]byte, 16)
	var wg sync.WaitGroup
	for i := range keys { // servers that start at the same time
		wg.Go(func() {
			var err error
			if keys[i], err = keptKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, key := range keys {
		if len(key) != handleKeySize || !bytes.Equal(key, keys[0]) {
			t.Fatalf("servers have the keys %x and %x", keys[0], key)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 || files[0].Name() != handleKeyFile {
		t.Errorf("the directory has %v, %v", files, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, handleKeyFile): 0o600} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	other, err := keptKey(filepath.Join(t.TempDir(), "other"))
	if err != nil || bytes.Equal(other, keys[0]) {
		t.Errorf("another directory has the same key, or none: %v", err)
	}
}

// A key that others may know, or may have made, is refused.
func TestHandleKeysThatAreNotSecretAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	cases := map[string]func(dir, key string) error{
		"readable by the group":  func(_, key string) error { return os.Chmod(key, 0o640) },
		"readable by others":     func(_, key string) error { return os.Chmod(key, 0o604) },
		"too short":              func(_, key string) error { return os.Truncate(key, 31) },
		"too long":               func(_, key string) error { return os.Truncate(key, 33) },
		"a directory":            func(_, key string) error { return errors.Join(os.Remove(key), os.Mkdir(key, 0o700)) },
		"in anybody's directory": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"in a sticky directory":  func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
	}
	if os.Geteuid() == 0 {
		cases["another user's"] = func(_, key string) error { return os.Chown(key, 65534, -1) }
		cases["in another user's directory"] = func(dir, _ string) error { return os.Chown(dir, 65534, -1) }
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if _, err := keptKey(dir); err != nil {
				t.Fatal(err)
			}
			if err := spoil(dir, filepath.Join(dir, handleKeyFile)); err != nil {
				t.Fatal(err)
			}
			if key, err := keptKey(dir); !errors.Is(err, errKeyUnsafe) {
				t.Errorf("%x, %v; want %v", key, err, errKeyUnsafe)
			}
			// Nor does a server take one of its own then, without a word.
			t.Setenv("STATE_DIRECTORY", dir)
			status, _, errOut := urnic(t, nil, "nfsd", t.TempDir(), "--tcp", "127.0.0.1:0", "--rdma", "off")
			wantError(t, nil, status, errOut, "not secret")
		})
	}
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, newKey(), 0o600), os.Symlink(secret, filepath.Join(dir, handleKeyFile))); err != nil {
		t.Fatal(err)
	}
	if key, err := keptKey(dir); err == nil {
		t.Errorf("a symbolic link leads to the key %x", key)
	}
}

// Where no key can be kept, the server says so and has one of its own, unless it was told
// where to keep it.
func TestHandleKeyWithoutAPlace(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "file", "state")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STATE_DIRECTORY", none+":"+dir)
	var keys [2][]byte
	for i := range keys {
		var warnings bytes.Buffer
		var err error
		o := nfsdOptions{trees: []nfsdTree{{"/d", "/srv/d"}}}
		if keys[i], err = o.handleKey(&warnings); err != nil || len(keys[i]) != handleKeySize {
			t.Errorf("%x, %v", keys[i], err)
		}
		if !strings.Contains(warnings.String(), "--state-dir") {
			t.Errorf("it warns %q", warnings.String())
		}
	}
	if bytes.Equal(keys[0], keys[1]) {
		t.Error("two servers that keep nothing have the same key")
	}
	status, _, errOut := urnic(t, nil, "nfsd", dir, "--state-dir", none, "--tcp", "127.0.0.1:0", "--rdma", "off")
	wantError(t, nil, status, errOut, "key of file handles")
	// Trees in memory need no place.
	var warnings bytes.Buffer
	o := nfsdOptions{trees: []nfsdTree{{"/m", ""}}, stateDir: none}
	if key, err := o.handleKey(&warnings); err != nil || len(key) != handleKeySize || warnings.Len() > 0 {
		t.Errorf("in memory: %x, %v, %q", key, err, warnings.String())
	}
}
