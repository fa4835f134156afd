package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The pictures of the documentation are what their sources say.
func TestPicturesAreUpToDate(t *testing.T) {
	const source, svg = "../../../docs/architecture.txt", "../../../docs/architecture.svg"
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	want, err := draw(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/architecture.svg is not the picture of docs/architecture.txt: in internal/tools, run go run ./picture ../../docs/architecture.txt ../../docs/architecture.svg")
	}
}

func TestWhatCannotBeDrawnIsSaid(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{"no row", "line 1"},
		{"a: b\nb -> c", `"c"`},
	} {
		if _, err := draw(c.source); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %s named", c.source, err, c.want)
		}
	}
}

func TestBoxesAndArrowsAreDrawn(t *testing.T) {
	svg, err := draw("# c\nupper: one (first) | two\nlower: three\none -> two: asks\none -> three: sends & waits\n")
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{"<rect ": 3, "<line ": 2, ">first<": 1, "sends &amp; waits": 1, ">upper<": 1} {
		if got := strings.Count(string(svg), want); got != n {
			t.Errorf("%d times %q, want %d", got, want, n)
		}
	}
}
