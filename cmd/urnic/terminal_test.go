package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"urnic/ulp/nfs"
)

const (
	esc  = "\x1b]0;title\a\x1b[31m" // sets the title and a color
	bidi = "\u202egpj.exe"          // is read from right to left
	c1   = "\u009b2J"               // clears the terminal
	raw  = "\xff\xfe"               // is no UTF-8
)

func wantPrintable(t *testing.T, what, s string) {
	t.Helper()
	for _, r := range s {
		if !unicode.IsPrint(r) && r != '\n' || r == unicode.ReplacementChar {
			t.Errorf("%s has %q: %q", what, r, s)
			return
		}
	}
}

func TestEscaped(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "plain, é, 日本": "plain, é, 日本",
		esc: `\x1b]0;title\a\x1b[31m`, bidi: `\u202egpj.exe`, c1: `\u009b2J`, raw: `\xff\xfe`, "a\tb\x00": `a\tb\x00`, "\U000e0001": `\U000e0001`,
	} {
		if got := escaped(s); got != want {
			t.Errorf("%q becomes %q, not %q", s, got, want)
		}
	}
	for _, s := range []string{"plain", esc, bidi, c1, "\U000e0001\"\\"} {
		line, err := jsonLine(map[string]string{"name": s})
		var back map[string]string
		if e := errors.Join(err, json.Unmarshal([]byte(line), &back)); e != nil || back["name"] != s {
			t.Errorf("%q: %q, %v", s, line, e)
		}
		wantPrintable(t, "the JSON", line)
	}
}

// What a server calls its files does not reach the terminal as it is, in whatever a command
// prints.
func TestNamesOfServersOnTheTerminal(t *testing.T) {
	dir, local := t.TempDir(), t.TempDir()
	for _, name := range []string{esc, bidi, c1, raw} {
		// What can't be written, because a directory is there.
		do(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644), os.MkdirAll(filepath.Join(local, filepath.Base(dir), name, "x"), 0o755))
		do(t, os.Symlink(name, filepath.Join(dir, "link"+name)))
		do(t, os.Mkdir(filepath.Join(dir, "d"+name), 0o755), os.WriteFile(filepath.Join(dir, "d"+name, "f"), nil, 0o644))
	}
	s := startNFSD(t, "--squash", "none", "--export", "/"+filepath.Base(dir)+"="+dir)
	url := s.urls("/" + filepath.Base(dir))["tcp"]
	for _, args := range [][]string{
		{"nfs", "ls", "-lR", url},
		{"nfs", "ls", "--json", "-R", url},
		{"nfs", "get", "-R", "-v", url, local},
		{"nfs", "get", "-R", "--json", url, t.TempDir()},
		{"nfs", "cat", url + "/%1b%5b31m%e2%80%ae"},
		{"nfs", "put", filepath.Join(dir, "d"+esc), url},
		{"nfs", "put", "-R", "-v", filepath.Join(dir, "d"+esc), url},
	} {
		_, out, errOut := urnic(t, nil, args...)
		if len(out)+len(errOut) == 0 {
			t.Errorf("%q prints nothing", args)
		}
		wantPrintable(t, fmt.Sprintf("%q", args), out)
		wantPrintable(t, fmt.Sprintf("%q", args), errOut)
	}
	s.stop(t)
}

// Copies give nobody a right that the original does not, and are as complete.
func TestCopiesKeepPermissions(t *testing.T) {
	dir, local := filepath.Join(t.TempDir(), "tree"), t.TempDir()
	modes := map[string]fs.FileMode{"": 0o750, "private": 0o700, "private/deep": 0o711, "closed": 0o500, "write-only": 0o333, "f": 0o600, "ro": 0o444, "closed/g": 0o400}
	for _, d := range []string{"", "private", "private/deep", "closed", "write-only"} {
		do(t, os.Mkdir(filepath.Join(dir, d), 0o700))
	}
	for _, f := range []string{"f", "ro", "closed/g"} {
		do(t, os.WriteFile(filepath.Join(dir, f), []byte(f), 0o600))
	}
	for name, mode := range modes {
		do(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	t.Cleanup(func() { // for RemoveAll
		_ = os.Chmod(filepath.Join(dir, "closed"), 0o700)
		_ = os.Chmod(filepath.Join(local, "tree", "closed"), 0o700)
	})
	s := startNFSD(t, "--squash", "none", "--export", "/srv="+filepath.Dir(dir))
	url := s.urls("/srv")["tcp"]
	check := func(what, root string) {
		t.Helper()
		for name, mode := range modes {
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil {
				t.Error(err)
				continue
			}
			if got := info.Mode().Perm(); got&^mode != 0 || got&0o700 != mode&0o700 {
				t.Errorf("%s %q: %o, of %o", what, name, got, mode)
			}
		}
	}
	ok(t, "nfs", "get", "-R", url+"/tree", local)
	check("got", filepath.Join(local, "tree"))
	ok(t, "nfs", "put", "-R", dir, url+"/put")
	check("put", filepath.Join(filepath.Dir(dir), "put"))
	_ = os.Chmod(filepath.Join(filepath.Dir(dir), "put", "closed"), 0o700)
	s.stop(t)
}

// A command keeps the first errors of many.
func TestFailuresAreBounded(t *testing.T) {
	var f failures
	if f.add(nil); f.err() != nil {
		t.Error(f.err())
	}
	for i := range 10 * failuresMost {
		f.add(fmt.Errorf("error %d", i))
	}
	if s := f.err().Error(); len(f.errs) != failuresMost || !strings.HasPrefix(s, "error 0\n") || !strings.HasSuffix(s, "and 900 more errors") {
		t.Errorf("%d errors: %q", len(f.errs), s)
	}
}

// Directories that lie in themselves are left after some.
func TestListerGoesNoDeeperThanItMay(t *testing.T) {
	l := &lister{depth: treeDepthMost}
	if err := l.each(t.Context(), "d", nil); !errors.Is(err, nfs.ErrDepth) {
		t.Error(err)
	}
}

// do ends the test if something fails.
func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Colors are for terminals that show them, and for people who want them.
func TestColorsAreForTerminals(t *testing.T) {
	var terminal, file strings.Builder
	before := isTerminal
	isTerminal = func(w io.Writer) bool { return w == &terminal }
	t.Cleanup(func() { isTerminal = before })
	t.Setenv("NO_COLOR", "")
	t.Setenv("TERM", "xterm")
	if !showsColors(&terminal) || showsColors(&file) {
		t.Error("a terminal shows no colors, or a file does")
	}
	t.Setenv("TERM", "dumb")
	if showsColors(&terminal) {
		t.Error("a dumb terminal shows colors")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "1")
	if showsColors(&terminal) {
		t.Error("there are colors in spite of NO_COLOR")
	}
}
