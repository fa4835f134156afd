//go:build dropin

package main_test

import (
	"path/filepath"
	"testing"
)

// A thread that is cancelled in a call leaves no lock behind. The program has no
// sanitizers: they take what is left of the frames of a cancelled thread for its stack.
func TestCancelledThreadsLeaveNoLock(t *testing.T) {
	program := filepath.Join(t.TempDir(), "cancel")
	if err := command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-o", program,
		"testdata/cancel.c", "tests/pair.c", "tests/rsocket_pair.c", "tests/support.c", "-libverbs", "-lrdmacm", "-pthread"); err != nil {
		t.Fatal(err)
	}
	for mode, variable := range modes(libraries(t)) {
		t.Run(mode, func(t *testing.T) { start(t, program, variable) })
	}
}
