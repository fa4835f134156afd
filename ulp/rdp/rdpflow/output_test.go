package rdpflow

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
	// Of long captures, some lines.
	short := playedCapture(t)
	ddp := playedDDP(t)
	render := func(h func(io.Writer, dissect.Options) dissect.Handler, file []byte, brief bool) func(io.Writer) error {
		return func(w io.Writer) error {
			analyzeWith(t, file, &Analyzer{Brief: brief}, h(w, dissect.Options{}))
			return nil
		}
	}
	segments := func(h func(io.Writer, dissect.Options) dissect.Handler) func(io.Writer) error {
		return func(w io.Writer) error {
			analyzeWith(t, ddp, &Analyzer{}, h(w, dissect.Options{Segments: true}))
			return nil
		}
	}
	for file, write := range map[string]func(io.Writer) error{
		"played.txt":        render(dissect.Text, short, false),
		"played.jsonl":      render(dissect.JSON, short, false),
		"played.ladder.txt": render(dissect.Ladder, short, false),
		"ddp.txt":           render(dissect.Text, ddp, false),
		"ddp.segments.txt":  segments(dissect.Text),
		"ddp.jsonl":         segments(dissect.JSON),
		"ddp.ladder.txt":    render(dissect.Ladder, ddp, true),
		"ddp.summary.txt": func(w io.Writer) error {
			var s dissect.Summary
			s.Add("ddp", analyze(t, ddp).Result)
			return s.WriteTable(w)
		},
		"ddp.summary.json": func(w io.Writer) error {
			var s dissect.Summary
			s.Add("ddp", analyze(t, ddp).Result)
			return s.WriteJSON(w)
		},
		v1Sequenced + ".txt": render(dissect.Text, golden(t, v1Sequenced), true),
		"summary.txt": func(w io.Writer) error {
			var s dissect.Summary
			for _, name := range []string{v1Sequenced, v2Unsequenced} {
				s.Add(name, analyze(t, golden(t, name)).Result)
			}
			s.Add("played", analyze(t, short).Result)
			return s.WriteTable(w)
		},
		"summary.json": func(w io.Writer) error {
			var s dissect.Summary
			s.Add(v2Unsequenced, analyze(t, golden(t, v2Unsequenced)).Result)
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

// playedCapture has a segment of each kind, and some that are wrong.
func playedCapture(t *testing.T) []byte {
	p := newPlayer(t)
	p.version, p.ip = 1, true
	p.open()
	p.data(client, clientISS+1, serverISS, "one")
	p.data(client, clientISS+3, serverISS, "three")
	p.ack(server, serverISS+1, clientISS+1, clientISS+3)
	p.data(client, clientISS+2, serverISS, "two")
	p.data(client, clientISS+2, serverISS, "two")
	p.ack(server, serverISS+1, clientISS+3)
	p.bent(func(b []byte) []byte { b[len(b)-1]++; return b })
	p.bent(func(b []byte) []byte { return b[:17] })
	p.data(server, serverISS+1, clientISS+2, "falls back")
	p.nul(client, clientISS+4, serverISS+1)
	p.rst(client, clientISS+1<<30)
	p.rst(client, clientISS+5)
	return p.recording()
}

func TestLaddersAreReadableAt100Columns(t *testing.T) {
	for name := range captureCounts {
		var b bytes.Buffer
		analyze(t, golden(t, name), dissect.Ladder(&b, dissect.Options{}))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Fatalf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}
