// Package tshark has Wireshark's dissectors judge captures, in tests.
package tshark

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Lines runs tshark on a capture file and returns the lines that it prints,
// none if it prints nothing. A machine without tshark skips the test; in CI it
// must be there.
//
// The heuristics by which tshark takes the payload of Sends for RPC-over-RDMA
// or SMB are off: they call other payloads malformed.
func Lines(t testing.TB, file string, args ...string) []string {
	t.Helper()
	return lines(t, file, append([]string{"--disable-heuristic", rpcHeuristic}, args...))
}

// LinesRPC is Lines, but the payload of Sends is taken for RPC-over-RDMA.
func LinesRPC(t testing.TB, file string, args ...string) []string {
	t.Helper()
	return lines(t, file, args)
}

const rpcHeuristic = "rpcrdma_iwarp"

func lines(t testing.TB, file string, args []string) []string {
	t.Helper()
	path, err := exec.LookPath("tshark")
	if err != nil {
		const missing = "tshark, which judges captures, is missing (apt-get install tshark): %v"
		if os.Getenv("CI") != "" {
			t.Fatalf(missing, err)
		}
		t.Skipf(missing, err)
	}
	cmd := exec.CommandContext(t.Context(), path, append([]string{
		"--disable-heuristic", "smb_direct_iwarp", "-r", file,
	}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, &stderr)
	}
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

// LinesOf is Lines for a capture in memory.
func LinesOf(t testing.TB, capture []byte, args ...string) []string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(name, capture, 0o600); err != nil {
		t.Fatal(err)
	}
	return Lines(t, name, args...)
}
