package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module returns the directory of a copy of the module that the tests measure. Only the
// copy is a module: this one's tests would otherwise be part of it.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "go.mod.txt"), filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mutate(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	status, err := command(t.Context(), dir, args, &out)
	if err != nil {
		t.Fatal(err)
	}
	return status, out.String()
}

// lines returns the lines of a text that begin with a prefix, without it.
func lines(text, prefix string) (out []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			out = append(out, strings.TrimSpace(rest))
		}
	}
	return out
}

func TestSurvivorsAreTheMutantsThatNoTestNotices(t *testing.T) {
	// Mutants that never end compute, which takes no longer while other programs do so, too.
	status, out := mutate(t, module(t), "-grace", "10m", "-processor", "2s", "-jobs", "8", "./calc")
	if status != 1 {
		t.Errorf("the status is %d", status)
	}
	want := []string{
		"1 tests: calc/calc.go:7 Grade: points < 50 → points <= 50",
		"1 tests: calc/calc.go:15 Sum: n > 0 → n >= 0",
		"1 tests: calc/calc.go:26 Check: n < 0 → n <= 0",
		"0 tests: calc/calc.go:27 Check: return errNegative → return nil",
		"1 tests: calc/calc.go:37 Positive: n > 0 → n >= 0",
		"1 tests: calc/calc.go:44 Guard: return failed → return !(failed)",
		"1 tests: calc/calc.go:48 Scale: return n * 0 → return 0",
		"0 tests: calc/calc.go:51 Double: return n + n → return 0",
		"0 tests: calc/calc.go:51 Double: n + n → n - n",
	}
	got := lines(out, "survives ")
	if !slices.Equal(got, want) {
		t.Errorf("these survive:\n%s\nnot:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := lines(out, "left out: "); !slices.Equal(got, []string{"TestFails fails without a mutant"}) {
		t.Errorf("left out: %q", got)
	}
	if strings.Contains(out, "n / 0") {
		t.Error("a mutant that does not compile was run")
	}
	if !strings.Contains(out, "(2 of them by the time limit)") { // without n-- and with n++
		t.Errorf("the mutants that never end:\n%s", out)
	}
}

func TestTestsFromAboveCountIfTheyAreNamed(t *testing.T) {
	status, out := mutate(t, module(t), "-tests", "./above", "-only", "Double", "-killed", "./calc")
	if n := len(lines(out, "killed by TestDouble: ")); n != 2 || status != 0 {
		t.Errorf("%d are killed, the status is %d:\n%s", n, status, out)
	}
}

func TestTheTableExplainsAndGoesStale(t *testing.T) {
	dir := module(t)
	write := func(rows ...string) {
		page := "# Mutants\n\n| File | Function | Mutant | Why |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
		if err := os.WriteFile(filepath.Join(dir, "table.md"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-table", "table.md", "-only", "Positive", "./calc"}
	_, out := mutate(t, dir, append([]string{"-rows"}, args...)...)
	printed := lines(out, "| ")
	if len(printed) != 1 {
		t.Fatalf("%d rows are printed:\n%s", len(printed), out)
	}
	explained := "| " + strings.TrimSuffix(printed[0], "|") + "n is not 0 there |"

	write(explained, "| `other/x.go` | `F` | `a → b` | of another package |")
	if status, out := mutate(t, dir, args...); status != 0 || !strings.Contains(out, "1 explained, 0 survive") ||
		!strings.Contains(out, "score 100.0 %") {
		t.Errorf("status %d with the only survivor explained:\n%s", status, out)
	}
	write(explained, "| `calc/calc.go` | `Positive` | `n > 1 → n >= 1` | gone |")
	if status, out := mutate(t, dir, args...); status != 1 || !strings.Contains(out, "stale: table.md:6 names a mutant that does not exist") {
		t.Errorf("status %d with a row that names no mutant:\n%s", status, out)
	}
	write(explained, "| `calc/calc.go` | `Positive` | `n > 0 → n <= 0` | not true |")
	if status, out := mutate(t, dir, args...); status != 1 || !strings.Contains(out, "stale: table.md:6 explains a mutant that TestPositive kills") {
		t.Errorf("status %d with a row of a mutant that is killed:\n%s", status, out)
	}
	for name, rows := range map[string][]string{
		"no reason": {"| `calc/calc.go` | `Positive` | `n > 0 → n >= 0` | |"},
		"twice":     {explained, explained},
	} {
		write(rows...)
		if status, err := command(t.Context(), dir, args, &bytes.Buffer{}); status != 2 || err == nil {
			t.Errorf("%s: status %d, %v", name, status, err)
		}
	}
}

func TestASeedChoosesTheSample(t *testing.T) {
	dir := module(t)
	sample := func(seed string) string {
		_, out := mutate(t, dir, "-list", "-sample", "8", "-seed", seed, "./calc")
		return out
	}
	first := sample("1")
	if n := strings.Count(first, "\n"); n != 8 {
		t.Errorf("the sample has %d mutants", n)
	}
	if sample("1") != first {
		t.Error("a seed chooses two samples")
	}
	if sample("2") == first && sample("3") == first {
		t.Error("all seeds choose the same sample")
	}
}

func TestWhatCannotBeMeasuredIsAnError(t *testing.T) {
	dir := module(t)
	for name, args := range map[string][]string{
		"no package":       {},
		"two packages":     {"./calc", "./above"},
		"a pattern of two": {"./..."},
		"not there":        {"./nowhere"},
		"bad expression":   {"-only", "(", "./calc"},
		"nobody to judge":  {"-jobs", "0", "./calc"},
		"no test so fast":  {"-under", "1ns", "./calc"},
		"no tests":         {"-tests", "./nowhere", "./calc"},
	} {
		if status, err := command(t.Context(), dir, args, &bytes.Buffer{}); status != 2 || err == nil {
			t.Errorf("%s: status %d, %v", name, status, err)
		}
	}
}
