//go:build interop

package interop

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// waitFor waits until a program of ours listens at a TCP port. It neither connects, which
// the program would take for a client, nor binds, which would take the port from it.
func waitFor(t testing.TB, port int) {
	t.Helper()
	if err := awaitListener(port, nil); err != nil {
		t.Fatal(err)
	}
}

// awaitListener is waitFor, which gives up when the program has ended.
func awaitListener(port int, ended <-chan struct{}) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if found, err := listens(port); found || err != nil {
			return err
		}
		select {
		case <-ended:
			return fmt.Errorf("the program has ended, and nobody listens at port %d", port)
		case <-time.After(20 * time.Millisecond): // there is nothing to be notified by
		}
	}
	return fmt.Errorf("nobody listens at port %d", port)
}

// listens reports whether somebody listens at a TCP port of this machine, see proc(5).
func listens(port int) (bool, error) {
	const listen = "0A"
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(table)
		if err != nil {
			return false, err
		}
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 3 && f[3] == listen && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				return true, nil
			}
		}
	}
	return false, nil
}
