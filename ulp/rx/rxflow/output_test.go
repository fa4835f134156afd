package rxflow

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"urnic/internal/program/dissect"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata/output")

func TestOutputs(t *testing.T) {
	render := func(h func(io.Writer, dissect.Options) dissect.Handler, name string) func(io.Writer) error {
		return func(w io.Writer) error {
			analyze(t, golden(t, name), h(w, dissect.Options{}))
			return nil
		}
	}
	for file, write := range map[string]func(io.Writer) error{
		"pts-listentries-multi.txt":      render(dissect.Text, "pts-listentries-multi"),
		"probe-debug.txt":                render(dissect.Text, "probe-debug"),
		"pts-listmax-noauth.jsonl":       render(dissect.JSON, "pts-listmax-noauth"),
		"pts-createuser-auth.ladder.txt": render(dissect.Ladder, "pts-createuser-auth"),
		"summary.txt": func(w io.Writer) error {
			var s dissect.Summary
			for _, name := range []string{"rxr-aborts", "rx-version", "pts-createuser-auth"} {
				s.Add(name, analyze(t, golden(t, name)).Result)
			}
			return s.WriteTable(w)
		},
		"summary.json": func(w io.Writer) error {
			var s dissect.Summary
			s.Add("pts-listmax-noauth", analyze(t, golden(t, "pts-listmax-noauth")).Result)
			return s.WriteJSON(w)
		},
	} {
		t.Run(file, func(t *testing.T) {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "output", file)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("got\n%s\nwant\n%s", b.Bytes(), want)
			}
		})
	}
}

func TestLaddersAreReadableAt100Columns(t *testing.T) {
	for name := range rows(t) {
		var b bytes.Buffer
		analyze(t, golden(t, name), dissect.Ladder(&b, dissect.Options{}))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Fatalf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}
