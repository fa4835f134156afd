package rpcflow

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
)

var update = flag.Bool("update", false, "rewrite the outputs in testdata/output")

// mounting returns the first packets of nfs41, up to the first directory.
func mounting(t *testing.T) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(golden(t, "nfs41")))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return without(t, plain, func(n int) bool { return n > 30 })
}

func TestOutputs(t *testing.T) {
	render := func(h func(io.Writer, dissect.Options) dissect.Handler, o dissect.Options, file []byte) func(io.Writer) error {
		return func(w io.Writer) error {
			r, err := capture.NewReader(bytes.NewReader(file))
			if err == nil {
				_, err = dissect.AnalyzeULP(t.Context(), r, &Analyzer{}, h(w, o))
			}
			return err
		}
	}
	sum := func(write func(*dissect.Summary, io.Writer) error, names ...string) func(io.Writer) error {
		return func(w io.Writer) error {
			var s dissect.Summary
			for _, name := range names {
				s.Add(name, analyze(t, golden(t, name), &Analyzer{}).Result)
			}
			return write(&s, w)
		}
	}
	for file, write := range map[string]func(io.Writer) error{
		"mount.txt":        render(dissect.Text, dissect.Options{}, mounting(t)),
		"mount.rpc.txt":    render(dissect.Text, dissect.Options{Upper: true}, mounting(t)),
		"mount.jsonl":      render(dissect.JSON, dissect.Options{Upper: true}, mounting(t)),
		"mount.ladder.txt": render(dissect.Ladder, dissect.Options{}, mounting(t)),
		"nfs41-crc.txt":    render(dissect.Text, dissect.Options{Upper: true}, golden(t, "nfs41-crc")),
		"summary.txt":      sum((*dissect.Summary).WriteTable, "nfs3", "nfs41"),
		"summary.json":     sum((*dissect.Summary).WriteJSON, "nfs41", "rping-crc"),
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
	for name := range nfsCaptures {
		var b bytes.Buffer
		analyze(t, golden(t, name), &Analyzer{}, dissect.Ladder(&b, dissect.Options{}))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Fatalf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}

// Each line of JSON is one object, and what programs count in them is what the summary
// says.
func TestJSONLinesAgreeWithTheSummary(t *testing.T) {
	for name := range nfsCaptures {
		var b bytes.Buffer
		s := analyze(t, golden(t, name), &Analyzer{}, dissect.JSON(&b, dissect.Options{Upper: true})).summary(t)
		calls, replies, headers, writes := 0, 0, 0, uint64(0)
		for line := range strings.Lines(b.String()) {
			var got struct {
				Event string
				ULP   struct {
					Type    string
					Name    string
					Matched bool
					Whole   bool
					Moved   uint64
					Latency float64 `json:"latency_seconds"`
					XID     string
					Read    []struct{ Position uint32 }
					Write   [][]struct{ Length uint64 }
				}
			}
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			switch u := got.ULP; {
			case got.Event == "message" || got.Event == "segment":
				t.Fatalf("%s: not asked for: %s", name, line)
			case got.Event == "rpcrdma" && len(u.XID) == 8:
				headers++
			case got.Event == "rpc" && u.Type == "call" && u.Whole:
				calls++
			case got.Event == "rpc" && u.Type == "reply" && u.Matched && u.Latency > 0 && strings.Contains(u.Name, "NFS"):
				replies++
				writes += u.Moved
			}
		}
		var moved uint64
		for _, p := range s.Procedures() {
			moved += p.WriteOctets
		}
		if calls != s.Calls || replies != s.Replies || headers != calls+replies || writes != moved {
			t.Errorf("%s: %d calls, %d replies, %d headers, %d bytes moved; the summary has %+v and %d", name, calls, replies, headers, writes, s, moved)
		}
	}
}
