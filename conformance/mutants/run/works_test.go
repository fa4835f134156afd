package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// makeWith makes the target with an edit of a file, and returns the packages that
// were compiled for it.
func makeWith(t *testing.T, w *works, file, old, replacement string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.root, file))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(b), old) != 1 {
		t.Fatalf("%s does not have %q once", file, old)
	}
	dir := t.TempDir()
	binary, err := w.make(t.Context(), dir, map[string][]byte{file: []byte(strings.Replace(string(b), old, replacement, 1))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(binary); err != nil {
		t.Error(err)
	}
	compiled, err := filepath.Glob(filepath.Join(dir, "*.a"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range compiled {
		compiled[i] = strings.TrimSuffix(filepath.Base(compiled[i]), ".a")
	}
	return compiled
}

func TestOnlyWhatAnEditChangesIsCompiled(t *testing.T) {
	w := open(t)
	got := makeWith(t, w, "mpa/crc.go", "const CRCLen = 4\n", "const CRCLen = 5 - 1\n")
	if len(got) != 1 || got[0] != "urnic_mpa" {
		t.Errorf("for an edit that nobody above can see, %v are compiled", got)
	}
	got = makeWith(t, w, "mpa/crc.go", "const CRCLen = 4\n", "const CRCLen = 8\n")
	for _, name := range []string{"urnic_mpa", "urnic_rdmap", "urnic_rnic"} {
		if !slices.Contains(got, name) {
			t.Errorf("for an edit that those above see, %v are compiled: %s is not", got, name)
		}
	}
}

func TestImportOfAnEditIsFound(t *testing.T) {
	w := open(t)
	if w.archives["text/tabwriter"] != "" {
		t.Fatal("the target imports text/tabwriter anyway")
	}
	makeWith(t, w, "mpa/crc.go", "package mpa\n", "package mpa\n\nimport _ \"text/tabwriter\"\n")
}

func TestLinesBehindAnEditKeepTheirNumbers(t *testing.T) {
	const original = "a\nb\nc\nd\n"
	for edited, want := range map[string]string{
		"a\nb\nc\nd\n":    "a\nb\nc\nd\n",
		"a\nB\nc\nd\n":    "a\nB\nc\nd\n",
		"a\nd\n":          "a\n\n\nd\n",
		"a\nbc\nd\n":      "a\nbc\n\nd\n",
		"d\n":             "\n\n\nd\n",
		"a\nb\nc\n":       "a\nb\nc\n\n",
		"a\nx\nb\nc\nd\n": "a\nx\nb\nc\nd\n",
	} {
		if got := string(align([]byte(edited), []byte(original))); got != want {
			t.Errorf("%q becomes %q, want %q", edited, got, want)
		}
	}
}
