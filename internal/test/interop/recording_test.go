//go:build interop

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"urnic/internal/test/tshark"
	"urnic/rnic"
)

// recording returns the name of a recording for this test.
func recording(t testing.TB) string {
	t.Helper()
	return filepath.Join(artifacts, strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())+".pcapng")
}

// A summary is what urnic dissect --summary --json says of a recording, as far
// as these tests look at it.
type summary struct {
	Connections []struct {
		Client string `json:"client"`
		MPA    struct {
			Revision int  `json:"revision"`
			CRC      bool `json:"crc"`
			Rejected bool `json:"rejected"`
		} `json:"mpa"`
		Segments   map[string]int `json:"segments"`
		Messages   map[string]int `json:"messages"`
		CRCBad     int            `json:"crc_bad"`
		Violations []struct {
			Clause string `json:"clause"`
			From   string `json:"from"`
			Detail string `json:"detail"`
		} `json:"violations"`
	} `json:"connections"`
}

// checkRecording has tshark and urnic read a recording: no malformed packet, no
// bad CRC, and no violation of ours. siw is the side that siw was on: what it
// breaks is its own affair.
func checkRecording(t testing.TB, file string, siw side) summary {
	t.Helper()
	wantWellFormed(t, file)
	s := summarize(t, file)
	if len(s.Connections) == 0 {
		t.Errorf("%s has no connection", file)
	}
	for _, c := range s.Connections {
		if c.CRCBad > 0 {
			t.Errorf("%s: %d bad CRCs", file, c.CRCBad)
		}
		for _, v := range c.Violations {
			if side(v.From) != siw {
				t.Errorf("%s: our own violation of %s: %s", file, v.Clause, v.Detail)
			} else {
				t.Logf("siw breaks %s: %s", v.Clause, v.Detail)
			}
		}
	}
	return s
}

// summarize is what urnic says of a recording.
func summarize(t testing.TB, file string) summary {
	t.Helper()
	out, stderr, err := urnic(t.Context(), "dissect", "--summary", "--json", file)
	if err != nil {
		t.Fatalf("dissect: %v: %s", err, stderr)
	}
	var s summary
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// endOfRecording is what urnic makes of the last messages of a test's recording, and the
// violations in it.
func endOfRecording(t testing.TB) string {
	t.Helper()
	out, stderr, err := urnic(context.Background(), "dissect", recording(t))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	const last = 40
	early := lines[:max(0, len(lines)-last)]
	early = slices.DeleteFunc(early, func(l string) bool { return !strings.Contains(l, "VIOLATION") })
	return fmt.Sprintf("%s\n%s\n%s(%v)", strings.Join(early, "\n"), strings.Join(lines[max(0, len(lines)-last):], "\n"), stderr, err)
}

// wantWellFormed has tshark read a recording: there must be no malformed packet.
func wantWellFormed(t testing.TB, file string) {
	t.Helper()
	const bad = "_ws.malformed || tcp.analysis.flags || ip.checksum.status == 0 || tcp.checksum.status == 0"
	if lines := tshark.Lines(t, file, "-Y", bad); len(lines) > 0 {
		t.Errorf("%s: tshark complains:\n%s", file, strings.Join(lines, "\n"))
	}
}

// newDevice opens a device of this process that records.
func newDevice(t testing.TB) *rnic.Device {
	t.Helper()
	f, err := os.Create(recording(t))
	if err != nil {
		t.Fatal(err)
	}
	d, err := rnic.Open(rnic.Config{Record: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
