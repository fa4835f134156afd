package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"urnic/internal/capture"
	"urnic/internal/program/demo"
)

// wantSteps checks that all steps are told as successes.
func wantSteps(t *testing.T, out string) {
	t.Helper()
	lines := strings.Split(out, "\n")
	for i, s := range demo.Steps {
		if len(lines) <= i || !strings.HasPrefix(lines[i], "ok    "+s.Name+" ") || !strings.HasSuffix(lines[i], " bytes") {
			t.Fatalf("line %d does not tell that %q is ok:\n%s", i+1, s.Name, out)
		}
	}
}

const arrow = "|-- MPA Request rev=2" // of the ladder

func TestDemoShowsItsStepsAndTheLadder(t *testing.T) {
	out := ok(t, "demo")
	wantSteps(t, out)
	if !strings.Contains(out, arrow) || !strings.Contains(out, "Terminate msn=1 DDP: base or bounds violation") {
		t.Errorf("no ladder:\n%s", out)
	}
}

func TestDemoQuietLeavesTheLadderOut(t *testing.T) {
	out := ok(t, "demo", "--quiet")
	wantSteps(t, out)
	if n := strings.Count(out, "\n"); n != len(demo.Steps) {
		t.Errorf("%d lines for %d steps:\n%s", n, len(demo.Steps), out)
	}
}

func TestDemoRecordsIntoAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "demo.pcapng")
	wantSteps(t, ok(t, "demo", "-q", "--pcap", name))
	if out := ok(t, "dissect", "--strict", name); !strings.Contains(out, "RDMA Write") || !strings.Contains(out, "FetchAdd") {
		t.Errorf("what was dissected:\n%s", out)
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}
}

func TestDemoRecordsToStandardOutput(t *testing.T) {
	status, recording, text := urnic(t, nil, "demo", "--pcap", "-")
	if status != 0 {
		t.Fatalf("status %d: %s", status, text)
	}
	wantSteps(t, text)
	if !strings.Contains(text, arrow) {
		t.Error("no ladder on stderr")
	}
	// All of stdout is a recording: a reader complains of what is not.
	status, out, errOut := urnic(t, strings.NewReader(recording), "dissect", "--strict", "--summary", "-")
	if status != 0 || errOut != "" || !strings.Contains(out, "rdma-write") {
		t.Errorf("dissect of stdout: status %d, stderr %q\n%s", status, errOut, out)
	}
}

func TestDemoTracePrintsTheMessages(t *testing.T) {
	status, out, errOut := urnic(t, nil, "demo", "-q", "--trace")
	if status != 0 {
		t.Fatalf("status %d", status)
	}
	wantSteps(t, out)
	for line := range strings.Lines(errOut) {
		if !strings.HasPrefix(line, "A QP ") {
			t.Fatalf("stderr has the line %q", line)
		}
	}
	for _, message := range []string{"RDMA Write", "Send", "Read Request", "Terminate"} {
		if !strings.Contains(errOut, message) {
			t.Errorf("no %s in\n%s", message, errOut)
		}
	}
}

func TestDemoThatIsInterruptedFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	status := run(ctx, []string{"demo", "-q"}, nil, &out, &errOut)
	wantErrorStatus(t, []string{"demo"}, statusInterrupted, status, errOut.String(), "interrupted")
	if want := "FAIL  " + demo.Steps[0].Name; !strings.HasPrefix(out.String(), want) {
		t.Errorf("stdout: %q; want %q", out.String(), want)
	}
}

// A demoResult is what demo --json promises.
type demoResult struct {
	Steps []struct {
		Name    string
		OK      bool
		Checked int `json:"octets_checked"`
	}
	OK    *bool
	Error *string
}

// decodeOne decodes the one JSON object that out must be, with a format.
func decodeOne(t *testing.T, out string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(withoutFormat(t, out)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil || d.More() || strings.Count(out, "\n") != 1 {
		t.Fatalf("not one object in one line: %v\n%s", err, out)
	}
}

// withoutFormat returns a JSON object in a line without the format that it must begin with.
func withoutFormat(t *testing.T, object string) string {
	t.Helper()
	format, rest, found := strings.Cut(object, ",")
	if !found || !strings.HasPrefix(format, `{"format":"urnic-`) {
		t.Fatalf("it has no format: %.100s", object)
	}
	return "{" + rest
}

func TestDemoJSONTellsOfEachStep(t *testing.T) {
	var got demoResult
	decodeOne(t, ok(t, "demo", "--json"), &got)
	if got.OK == nil || !*got.OK || got.Error != nil || len(got.Steps) != len(demo.Steps) {
		t.Fatalf("%+v", got)
	}
	for i, s := range got.Steps {
		if s.Name != demo.Steps[i].Name || !s.OK {
			t.Errorf("step %d: %+v", i, s)
		}
	}
	if got.Steps[0].Checked != len("hello")+len("welcome") {
		t.Errorf("%d bytes of private data were checked", got.Steps[0].Checked)
	}
}

func TestDemoJSONTellsOfAFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	status := run(ctx, []string{"demo", "--json"}, nil, &out, &errOut)
	wantErrorStatus(t, []string{"demo"}, statusInterrupted, status, errOut.String(), "interrupted")
	var got demoResult
	decodeOne(t, out.String(), &got)
	if got.OK == nil || *got.OK || got.Error == nil || *got.Error != "interrupted" || len(got.Steps) != 1 || got.Steps[0].Name != demo.Steps[0].Name || got.Steps[0].OK {
		t.Errorf("%s", out.String())
	}
}

func TestDemoErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"--pcap: the recording can't be written":                    {"demo", "--pcap", filepath.Join(t.TempDir(), "missing", "x")},
		"--json and --pcap - would both go to standard output":      {"demo", "--json", "--pcap", "-"},
		"--log-level loud: must be one of debug, info, warn, error": {"demo", "--log-level", "loud"},
		"`urnic demo` takes no arguments, and \"now\" is one":       {"demo", "now"},
	} {
		status, out, errOut := urnic(t, nil, args...)
		wantError(t, args, status, errOut, want)
		if out != "" {
			t.Errorf("%v: %q is on stdout: the work was begun", args, out)
		}
	}
}

// A recording without a connection is one that was not checked.
func TestDemoChecksAConnection(t *testing.T) {
	var recording bytes.Buffer
	if _, err := capture.NewWriter(&recording); err != nil {
		t.Fatal(err)
	}
	if err := checkRecording(t.Context(), io.Discard, &recording, true); err == nil || !strings.Contains(err.Error(), "nothing of it was checked") {
		t.Errorf("%v", err)
	}
}
