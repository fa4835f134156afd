package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"urnic/conformance/mutants"
	"urnic/conformance/service"
	"urnic/internal/test/leakcheck"
)

// alone gives a test a directory for what the command leaves behind, which must be
// nothing.
func alone(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%v is left behind (%v)", left, err)
		}
	})
}

// open returns works that end with the test.
func open(t *testing.T) *works {
	t.Helper()
	w, err := newWorks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestMutantIsBuiltAndServesUntilItIsStopped(t *testing.T) {
	leakcheck.Check(t)
	alone(t)
	w := open(t)
	m, ok := mutants.Lookup("crc-not-sent")
	if !ok {
		t.Fatal("there is no such mutant")
	}
	binary, err := w.build(t.Context(), &m)
	if err != nil {
		t.Fatal(err)
	}
	life, kill := context.WithCancel(t.Context())
	defer kill()
	target, err := startTarget(life, binary)
	if err != nil {
		t.Fatal(err)
	}
	c, err := service.Dial(t.Context(), target.address)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := target.stop(kill); err != nil {
		t.Error(err)
	}
	if killed := (*exec.ExitError)(nil); errors.As(target.err, &killed) {
		t.Errorf("it did not end by itself: %v", killed)
	}
}

func TestMutantThatDoesNotCompileIsToldWithItsErrors(t *testing.T) {
	alone(t)
	w := open(t)
	m := mutants.Mutant{Name: "m", Edits: []mutants.Edit{{File: "mpa/crc.go", Old: "const CRCLen = 4", New: "const CRCLen = four"}}}
	_, err := w.build(t.Context(), &m)
	if err == nil || !strings.Contains(err.Error(), "undefined: four") {
		t.Errorf("got %v, want the compiler's words", err)
	}
}

func TestTargetThatDoesNotStartIsToldWithItsLastWords(t *testing.T) {
	leakcheck.Check(t)
	_, err := startTarget(t.Context(), "go") // which says how it is used
	if err == nil || !strings.Contains(err.Error(), "Go is a tool") {
		t.Errorf("got %v, want what it said", err)
	}
}

func TestCommandCatchesAMutant(t *testing.T) {
	leakcheck.Check(t)
	alone(t)
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"--only", "end-of-range-not-checked"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &progress)
	}
	if !strings.Contains(out.String(), "end-of-range-not-checked  caught") || !strings.Contains(out.String(), "1 mutants, 1 caught") {
		t.Errorf("got\n%s", &out)
	}
}

// A mutant of a build is judged by that build's own results, and its case only.
func TestCommandCatchesAMutantOfABuild(t *testing.T) {
	leakcheck.Check(t)
	alone(t)
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"--only", "sink-skips-zero"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &progress)
	}
	if !strings.Contains(progress.String(), "the build msn-near-wrap without a fault passes 2 of 2 results") ||
		!strings.Contains(out.String(), "rfc5041-7.1-5/eight-sends-in-turn as ") {
		t.Errorf("got\n%s%s", &progress, &out)
	}
}

func TestCommandEndsWhenInterrupted(t *testing.T) {
	leakcheck.Check(t)
	alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, nil, io.Discard, w)
		w.Close()
	}()
	b := make([]byte, 1)
	if _, err := r.Read(b); err != nil { // it has begun
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v, want that it was interrupted", err)
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"--only", "nobody"}, {"--llp", "udp"}, {"--jobs", "0"}, {"--timeout", "0s"}, {"crc-ieee"}, {"--unknown"},
	} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// Over RDP, the faults that only MPA shows are left out, and those of DDP and RDMAP are not.
func TestMutantsThatAreSeenOverRDP(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--llp", "rdp", "--list"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for name, seen := range map[string]bool{"mo-zero": true, "rv-zero": true, "crc-big-endian": false, "end-of-range-not-checked": true} {
		if strings.Contains(out.String(), name+"\n") != seen {
			t.Errorf("%s: %t is wrong", name, !seen)
		}
	}
}

func TestListShowsEachMutant(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--list"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants.All() {
		if !strings.Contains(out.String(), m.Name+"\n\t"+m.Fault+"\n\t"+m.Clauses[0]) {
			t.Errorf("%s is not in the list", m.Name)
		}
	}
}
