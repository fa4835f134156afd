package rdsflow

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"urnic/internal/program/dissect"
	"urnic/ulp/rds/wire"
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

// The first table of the summary counts what RDS carries where there is no RDMAP to count; over iWARP, it counts
// RDMAP's messages.
func TestTheFirstTableCountsRDS(t *testing.T) {
	for _, tt := range []struct {
		name string
		want dissect.Carried
	}{
		{"rds-tcp-basic", dissect.Carried{Segments: 13, Messages: 13, Bytes: 9197}},
		{"rxe-rdma", dissect.Carried{Segments: 16, Messages: 14, Bytes: 70}},
		{"iwarp-ping", dissect.Carried{Segments: 23, Messages: 15, Bytes: 17056}},
	} {
		var got dissect.Carried
		var s dissect.Summary
		r := analyze(t, golden(t, tt.name)).Result
		for _, c := range r.Connections {
			sum := c.Carried()
			got.Segments += sum.Segments
			got.Messages += sum.Messages
			got.Bytes += sum.Bytes
		}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		s.Add(tt.name, r)
		var b bytes.Buffer
		if err := s.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		last := r.Connections[len(r.Connections)-1].Carried()
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^%d .* %d +%d +%d +0 +0$`, len(r.Connections), last.Segments, last.Messages, last.Bytes))
		if !row.Match(b.Bytes()) {
			t.Errorf("%s: no row %v in\n%s", tt.name, row, b.Bytes())
		}
	}
}

// A line of JSON has the extension headers of later kernels and of urnic; a Read is not a Write.
func TestJSONHasLaterExtensions(t *testing.T) {
	p := newPlayer(t)
	l := p.tcp()
	l.send(client, message(1, 0, ports(1, 0), extend(5, 0, 8, 6, 0, 0, 0, 7, 8, 0, 15)))
	l.send(server, message(1, 10, flags(wire.MoreExtensions), extend(4, 0, 0, 0, 9, 2)))
	var b bytes.Buffer
	analyze(t, p.recording(), dissect.JSON(&b, dissect.Options{})).want(t)
	for _, want := range []string{
		`"npaths":8,"generation":7,"sport_idx":0,"urnic":true,"extensions":"NPATHS=8 GEN_NUM=7 SPORT_IDX=0 URNIC"`,
		`"rdma_bytes":{"bytes":9,"write":false,"read":true},"extensions":"RDMA_BYTES=9,Read"`,
		`"flags":"EXTHDR_EXTENSION"`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
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
