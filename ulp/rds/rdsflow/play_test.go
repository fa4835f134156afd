package rdsflow

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
)

const (
	client = dissect.Client
	server = dissect.Server
)

// A found is what an analysis has found.
type found struct {
	*dissect.Result
	broken  []string // "rule by side", in order
	details []string // of what is broken
	notes   []string
	all     []*Message
}

func analyze(t testing.TB, file []byte, handlers ...dissect.Handler) found {
	t.Helper()
	return analyzeWith(t, file, &Analyzer{}, handlers...)
}

func analyzeWith(t testing.TB, file []byte, a *Analyzer, handlers ...dissect.Handler) found {
	t.Helper()
	r, err := capture.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var f found
	f.Result, err = dissect.AnalyzeULP(t.Context(), r, a, func(e *dissect.Event) error {
		switch e.Kind {
		case dissect.KindViolation:
			f.broken = append(f.broken, fmt.Sprintf("%s by %v", e.Violation.ID, e.From))
			f.details = append(f.details, fmt.Sprintf("packet %d: %v", e.At.Packet, e.Violation))
		case dissect.KindNote:
			f.notes = append(f.notes, e.Note)
		case dissect.KindUpper:
			if m, ok := e.Upper.(*Message); ok && !m.Part {
				f.all = append(f.all, m)
			}
		default:
		}
		for _, h := range handlers {
			if err := h(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// want compares what is broken with what a test expects.
func (f found) want(t testing.TB, broken ...string) {
	t.Helper()
	if !slices.Equal(f.broken, broken) {
		t.Errorf("broken are\n  %s\nwant\n  %s\nnotes\n  %s", strings.Join(f.details, "\n  "), strings.Join(broken, "\n  "), strings.Join(f.notes, "\n  "))
	}
}

// golden returns the bytes of a capture.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "captures", name+".pcap.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
