//go:build dropin

package dropintest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// A program in Go with cgo has two Go runtimes in one process: its own and that of the library.
func TestPackageOfGo(t *testing.T) {
	binary := filepath.Join(directory(t), "cgo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "testdata/cgo/main.go").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	bothModes(t, func(t *testing.T, m mode) {
		t.Parallel()
		for _, transport := range []string{"iwarp", "ethernet"} {
			wantText(t, newNetwork(t).start(t, m.run("--transport "+transport, binary)).wait(), "two runtimes get along", 1)
		}
	})
}
