package sysfsdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"urnic/internal/dropin/sysfs"
)

var (
	one = []sysfs.Entry{{Name: "class/a/x", Data: "1\n"}, {Name: "class/a/link", Link: "x"}}
	two = []sysfs.Entry{{Name: "class/b/y", Data: "2\n"}}
)

// files returns what is below a directory, but for the marker: names and contents.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || d.IsDir() || name == Marker:
			return err
		case d.Type() == fs.ModeSymlink:
			all[name], err = os.Readlink(path)
		default:
			var b []byte
			b, err = os.ReadFile(path)
			all[name] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// has wants a directory to hold just a tree, and nothing to be left beside it.
func has(t *testing.T, dir string, entries []sysfs.Entry) {
	t.Helper()
	got := files(t, dir)
	for _, e := range entries {
		if got[e.Name] != e.Data+e.Link {
			t.Errorf("%s is %q; want %q", e.Name, got[e.Name], e.Data+e.Link)
		}
	}
	if len(got) != len(entries) {
		t.Errorf("%d files; want %d: %q", len(got), len(entries), got)
	}
	alone(t, dir)
}

func alone(t *testing.T, dir string) {
	t.Helper()
	beside, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range beside {
		if d.Name() != filepath.Base(dir) {
			t.Errorf("%s was left", d.Name())
		}
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	if err := Write(dir+"/", one); err != nil { // there is none yet
		t.Fatal(err)
	}
	has(t, dir, one)
	for _, tree := range [][]sysfs.Entry{two, two, one} {
		if err := Write(dir, tree); err != nil {
			t.Fatal(err)
		}
		has(t, dir, tree)
	}
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
	alone(t, dir)
	if err := Remove(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is removed twice: %v", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, one); err != nil { // into an empty one
		t.Fatal(err)
	}
	has(t, dir, one)
}

// What urnic has not written is neither overwritten nor removed.
func TestForeignFilesStay(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"a file more":       func(dir string) error { return os.WriteFile(filepath.Join(dir, "class", "mine"), nil, 0o644) },
		"a link more":       func(dir string) error { return os.Symlink("/", filepath.Join(dir, "mine")) },
		"a fifo's stand-in": func(dir string) error { return os.Symlink("x", filepath.Join(dir, "class/a/x2")) },
		"another content": func(dir string) error {
			f := filepath.Join(dir, "class/a/x")
			return errors.Join(os.Remove(f), os.WriteFile(f, []byte("9\n"), 0o644))
		},
		"another link": func(dir string) error {
			f := filepath.Join(dir, "class/a/link")
			return errors.Join(os.Remove(f), os.Symlink("/etc", f))
		},
		"a link in place of a file": func(dir string) error {
			f := filepath.Join(dir, "class/a/x")
			return errors.Join(os.Remove(f), os.Symlink("1\n", f))
		},
		"no marker": func(dir string) error { return os.Remove(filepath.Join(dir, Marker)) },
		"another marker": func(dir string) error {
			f := filepath.Join(dir, Marker)
			return errors.Join(os.Remove(f), os.WriteFile(f, []byte("urnic sysfs 99\n"), 0o644))
		},
		"a large file": func(dir string) error { return os.WriteFile(filepath.Join(dir, "mine"), make([]byte, 1<<20), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "sys")
			if err := Write(dir, one); err != nil {
				t.Fatal(err)
			}
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
			before := files(t, dir)
			for op, err := range map[string]error{"Write": Write(dir, two), "Remove": Remove(dir)} {
				if _, is := errors.AsType[*ForeignError](err); !is {
					t.Errorf("%s: %v", op, err)
				}
			}
			if after := files(t, dir); len(after) != len(before) || after["class/a/x"] != before["class/a/x"] {
				t.Errorf("%q has become %q", before, after)
			}
			alone(t, dir)
		})
	}
	if err := Remove(t.TempDir()); err == nil {
		t.Error("a directory that was empty is gone")
	}
}

// A file that is gone is no reason to keep the others.
func TestIncompleteTreesAreReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	if err := Write(dir, one); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "class/a/x")); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, two); err != nil {
		t.Fatal(err)
	}
	has(t, dir, two)
}

func TestNamesStayBelowTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	for _, name := range []string{"../x", "/x", "a/../../x", "", Marker} {
		if err := Write(dir, []sysfs.Entry{{Name: name, Data: "x"}}); err == nil {
			t.Errorf("%q is written", name)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("there is a directory")
	}
	alone(t, dir)
}

// Programs that start at the same time share one directory; trees that differ have their own.
func TestKeep(t *testing.T) {
	base := filepath.Join(t.TempDir(), "urnic-0")
	var all sync.WaitGroup
	dirs := make([]string, 16)
	for i := range dirs {
		all.Go(func() {
			var err error
			if dirs[i], err = Keep(base, [][]sysfs.Entry{one, two}[i%2]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	if d := slices.Compact(slices.Sorted(slices.Values(dirs))); len(d) != 2 {
		t.Errorf("%d directories: %q", len(d), d)
	}
	left, err := os.ReadDir(base)
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v; want two trees", left, err)
	}
	if got := files(t, dirs[0]); got["class/a/x"] != "1\n" {
		t.Errorf("%q", got)
	}

	// Something tidies up.
	for _, gone := range []string{Marker, "class/a/x"} {
		if err := os.Remove(filepath.Join(dirs[0], gone)); err != nil {
			t.Fatal(err)
		}
		again, err := Keep(base, one)
		if err != nil || again != dirs[0] {
			t.Errorf("without %s: %s, %v", gone, again, err)
		}
		if got := files(t, again); len(got) != len(one) {
			t.Errorf("without %s: %q", gone, got)
		}
	}
	if left, _ := os.ReadDir(base); len(left) != 2 {
		t.Errorf("%v is left", left)
	}
}

// Below a directory that is everybody's, somebody else may have made ours.
func TestKeepUsesNoDirectoryThatOthersCanChange(t *testing.T) {
	tmp := t.TempDir()
	open, link := filepath.Join(tmp, "open"), filepath.Join(tmp, "link")
	if err := errors.Join(os.Mkdir(open, 0o755), os.Chmod(open, 0o777), os.Symlink(tmp, link)); err != nil {
		t.Fatal(err)
	}
	for _, base := range []string{open, link} {
		if dir, err := Keep(base, one); err == nil || !strings.Contains(err.Error(), base) {
			t.Errorf("%s: %s, %v", base, dir, err)
		}
	}
}

// Counters go on when a directory is written again, by any process; what is no number is foreign.
func TestCountersGoOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sys")
	tree := []sysfs.Entry{{Name: "class/a/x", Data: "1\n"}, {Name: "class/a/n", Data: "0\n", Counter: true}}
	if err := Write(dir, tree); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				for {
					err := Add(dir, "class/a/n", 3)
					if err == nil {
						break
					}
					if !errors.Is(err, ErrBusy) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	if got := files(t, dir)["class/a/n"]; got != "2400\n" {
		t.Errorf("the sum is %q", got)
	}
	if err := Write(dir, tree); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir)["class/a/n"]; got != "2400\n" {
		t.Errorf("written again, it is %q", got)
	}
	if err := Add(dir, "class/a/x2", 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a counter that is not there: %v", err)
	}
	path := filepath.Join(dir, "class/a/n")
	for _, bad := range []string{"", "12", "-1\n", "1 2\n", "18446744073709551616\n", "1\n2\n", strings.Repeat("0", 30) + "\n"} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		var foreign *ForeignError
		if err := Add(dir, "class/a/n", 1); !errors.As(err, &foreign) {
			t.Errorf("%q: add: %v", bad, err)
		}
		if err := Write(dir, tree); !errors.As(err, &foreign) {
			t.Errorf("%q: write: %v", bad, err)
		}
		if err := Remove(dir); !errors.As(err, &foreign) {
			t.Errorf("%q: remove: %v", bad, err)
		}
	}
	if err := os.WriteFile(path, []byte("18446744073709551615\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Add(dir, "class/a/n", 1); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir); err != nil {
		t.Fatal(err)
	}
}
