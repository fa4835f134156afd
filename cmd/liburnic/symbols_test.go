//go:build dropin

package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compare runs the comparison of symbols, with a file of reasons.
func compare(t *testing.T, reasons, library string) (out, complaints string, err error) {
	t.Helper()
	dir := t.TempDir()
	for name, from := range map[string]string{"symbols": "symbols", "symbols.txt": reasons} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "symbols"), library)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	b, err := cmd.Output()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return string(b), errOut.String(), err
}

// All symbols of the distribution's libraries are there, or it is said why not, and
// docs/drop-in.md shows it.
func TestSymbolsAreThoseOfTheDistribution(t *testing.T) {
	out, complaints, err := compare(t, "symbols.txt", filepath.Join(libraries(t), "liburnic.so"))
	if err != nil {
		t.Fatalf("%v\n%s", err, complaints)
	}
	page, err := os.ReadFile(filepath.Join(project, "docs", "drop-in.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+out+"\n") {
		t.Errorf("docs/drop-in.md does not have what cmd/liburnic/symbols prints:\n%s", out)
	}
}

// The comparison finds what is wrong.
func TestComparisonOfSymbolsFindsFaults(t *testing.T) {
	lib := libraries(t)
	b, err := os.ReadFile("symbols.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ reasons, library, want string }{
		"missing without a reason": {
			strings.Replace(string(b), "\nibv_register_driver@", "\n#", 1), "liburnic.so",
			"libibverbs has ibv_register_driver@IBVERBS_1.1, and liburnic.so has not",
		},
		"a reason without need": {
			string(b) + "ibv_open_device@IBVERBS_1.1 none\n", "liburnic.so",
			"symbols.txt has a reason for ibv_open_device@IBVERBS_1.1, and nothing such is missing",
		},
		"too much": {
			string(b) + "* all\n", "replace/libefa.so.1",
			"liburnic.so has efadv_query_device@EFA_1.1, and no library of the distribution",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reasons := filepath.Join(t.TempDir(), "symbols.txt")
			if err := os.WriteFile(reasons, []byte(tc.reasons), 0o644); err != nil {
				t.Fatal(err)
			}
			_, complaints, err := compare(t, reasons, filepath.Join(lib, tc.library))
			if err == nil || !strings.Contains(complaints, tc.want) {
				t.Errorf("%v: %q; want %q", err, complaints, tc.want)
			}
		})
	}
}
