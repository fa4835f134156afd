package rxflow

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/dissect"
	"urnic/ulp/rx/rxkad"
	"urnic/ulp/rx/rxkad/krb5"
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
	calls   []Call
}

// testKeys are the keys of the services in the captures.
func testKeys(t testing.TB) *rxkad.Keyring {
	t.Helper()
	keys := &rxkad.Keyring{}
	b, err := hex.DecodeString("00112233445566778899aabbccddeeff0f1e2d3c4b5a69788796a5b4c3d2e1f0")
	if err == nil {
		err = keys.Add(1, krb5.AES256, b)
	}
	if err == nil {
		err = keys.AddDES(2, rxkad.Key{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef})
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// analyzer returns one with the keys.
func analyzer(t testing.TB) *Analyzer {
	return &Analyzer{Ports: []uint16{7002}, Security: []Security{Rxkad(testKeys(t))}}
}

func analyze(t testing.TB, file []byte, handlers ...dissect.Handler) found {
	t.Helper()
	return analyzeWith(t, file, analyzer(t), handlers...)
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
			if k, ok := e.Upper.(*Call); ok {
				f.calls = append(f.calls, *k)
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
	if a.order.Len() != 0 || len(a.conns) != 0 || len(a.byID) != 0 || len(a.queries) != 0 || a.sealed != 0 || a.hashes != 0 {
		t.Errorf("after the end, the analyzer holds %d connections, %d bytes, %d hashes", a.order.Len(), a.sealed, a.hashes)
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
