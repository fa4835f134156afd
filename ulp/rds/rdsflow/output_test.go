package rdsflow

import (
	"bytes"
	"encoding/json"
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
	render := func(h func(io.Writer, dissect.Options) dissect.Handler, o dissect.Options, name string) func(io.Writer) error {
		return func(w io.Writer) error {
			analyze(t, golden(t, name), h(w, o))
			return nil
		}
	}
	for file, write := range map[string]func(io.Writer) error{
		"iwarp-rdma.txt":          render(dissect.Text, dissect.Options{Segments: true}, "iwarp-rdma"),
		"iwarp-credits.txt":       render(dissect.Text, dissect.Options{Upper: true}, "iwarp-credits"),
		"rds-tcp-ping.jsonl":      render(dissect.JSON, dissect.Options{}, "rds-tcp-ping"),
		"rxe-rdma.ladder.txt":     render(dissect.Ladder, dissect.Options{}, "rxe-rdma"),
		"rds-tcp-ping.ladder.txt": render(dissect.Ladder, dissect.Options{}, "rds-tcp-ping"),
		"summary.txt": func(w io.Writer) error {
			var s dissect.Summary
			for _, name := range []string{"iwarp-ping", "rds-tcp-ping"} {
				s.Add(name, analyze(t, golden(t, name)).Result)
			}
			return s.WriteTable(w)
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
	for name := range captures {
		var b bytes.Buffer
		analyze(t, golden(t, name), dissect.Ladder(&b, dissect.Options{}))
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Fatalf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}

// What programs count in lines of JSON is what the summary says.
func TestJSONLinesAgreeWithTheSummary(t *testing.T) {
	for name := range captures {
		var b bytes.Buffer
		f := analyze(t, golden(t, name), dissect.JSON(&b, dissect.Options{Segments: true}))
		var want Counts
		for _, c := range f.Connections {
			if s, ok := c.Upper.(*Summary); ok {
				for _, n := range []*Counts{&s.Client, &s.Server} {
					want.Data += n.Data
					want.DataBytes += n.DataBytes
					want.Maps += n.Maps
					want.AckRequired += n.AckRequired
					want.Retransmitted += n.Retransmitted
					want.Headers += n.Headers
				}
			}
		}
		var got Counts
		for line := range strings.Lines(b.String()) {
			var e struct {
				Event string
				ULP   struct {
					Kind, Flags string
					Length      uint64
					Fragments   int
				}
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			switch {
			case e.Event == "rds-fragment":
				got.Headers++
				continue
			case e.Event != "rds":
				continue
			case e.ULP.Fragments <= 1:
				got.Headers++
			}
			if strings.Contains(e.ULP.Flags, "ACK_REQUIRED") {
				got.AckRequired++
			}
			if strings.Contains(e.ULP.Flags, "RETRANSMITTED") {
				got.Retransmitted++
			}
			switch e.ULP.Kind {
			case "data":
				got.Data++
				got.DataBytes += e.ULP.Length
			case "map":
				got.Maps++
			}
		}
		if got != want || got.Headers == 0 {
			t.Errorf("%s: %+v in lines, %+v in the summary", name, got, want)
		}
	}
}
