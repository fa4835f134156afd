package sysfsdir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"urnic/internal/dropin/sysfs"
)

// Marker is the file by which a directory is known to be ours.
const Marker = ".urnic-sysfs"

// heading is the first line of a marker; it changes when the format does.
const heading = "urnic sysfs 1"

// A ForeignError says that something in a directory was changed after urnic wrote it.
type ForeignError struct {
	Path string
	Why  string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s: nothing was changed; remove it, or give another directory", e.Path, e.Why)
}

// manifest returns what the marker of a tree says.
func manifest(entries []sysfs.Entry) string {
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		switch {
		case e.Link != "":
			lines = append(lines, line(e.Name, "link", e.Link))
		case e.Counter:
			lines = append(lines, counterLine(e.Name))
		default:
			lines = append(lines, line(e.Name, "file", e.Data))
		}
	}
	slices.Sort(lines)
	return heading + "\n" + strings.Join(lines, "")
}

// line is a marker's line for a file or link. Programs may look for its parts; urnic compares it
// as a whole, and takes nothing out of it.
func line(name, kind, content string) string {
	sum := sha256.Sum256([]byte(content))
	return fmt.Sprintf("%s %s %s\n", hex.EncodeToString(sum[:16]), kind, name)
}

// counterLine is a marker's line for a counter, whose content changes.
func counterLine(name string) string { return line(name, "counter", "") }

// ours returns a nil error if a directory has nothing but what its marker names, and the
// marker itself. missing says that the directory is not there; empty, that nothing is in it.
func ours(dir string) (missing, empty bool, err error) {
	there, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, false, nil
	case err != nil:
		return false, false, err
	case len(there) == 0:
		return false, true, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, Marker))
	if errors.Is(err, fs.ErrNotExist) {
		return false, false, &ForeignError{dir, "was not written by urnic"}
	}
	if err != nil {
		return false, false, err
	}
	known := map[string]bool{}
	for l := range strings.Lines(string(text)) {
		known[l] = true
	}
	if !known[heading+"\n"] {
		return false, false, &ForeignError{dir, "was written by another version of urnic"}
	}
	return false, false, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == Marker {
			return err
		}
		l, err := lineOf(path, filepath.ToSlash(name), d)
		if err == nil && !known[l] && (!known[counterLine(filepath.ToSlash(name))] || !isCounter(path, d)) {
			err = &ForeignError{path, "was changed after urnic wrote it"}
		}
		return err
	})
}

// isCounter reports whether a file is a number.
func isCounter(path string, d fs.DirEntry) bool {
	if info, err := d.Info(); err != nil || !d.Type().IsRegular() || info.Size() > maxCounter {
		return false
	}
	b, err := os.ReadFile(path)
	_, is := parseCounter(b)
	return err == nil && is
}

// lineOf returns the line of what is there.
func lineOf(path, name string, d fs.DirEntry) (string, error) {
	if d.Type() == fs.ModeSymlink {
		to, err := os.Readlink(path)
		return line(name, "link", to), err
	}
	if d.Type().IsRegular() {
		const most = 1 << 16 // none of ours is that long
		if info, err := d.Info(); err != nil || info.Size() > most {
			return "", err
		}
		b, err := os.ReadFile(path)
		return line(name, "file", string(b)), err
	}
	return "", nil
}
