package infosock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Dir returns the directory of this user's sockets. It need not exist.
func Dir() string {
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		return filepath.Join(runtime, "urnic")
	}
	return filepath.Join(os.TempDir(), "urnic-"+strconv.Itoa(os.Getuid()))
}

// List returns the paths of the sockets of a kind in a directory, "" for Dir, in order. There are none if there is no
// such directory. The processes may be gone.
func List(dir, kind string) ([]string, error) {
	if dir == "" {
		dir = Dir()
	}
	paths, err := filepath.Glob(filepath.Join(escape(dir), kind+"-*.sock"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		if _, err := os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		return nil, nil
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	slices.Sort(paths)
	return paths, nil
}

// escape makes a pattern of a path that only the path matches.
func escape(path string) string {
	var b []byte
	for i := range len(path) {
		if c := path[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}

// private returns an error unless a directory is this user's, and nobody else's.
func private(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory: remove it", dir)
	case !own(info) || info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others than this user may write to %s, or own it: it must be this user's with mode 0700, so that nobody else can serve a socket there", dir)
	}
	return nil
}
