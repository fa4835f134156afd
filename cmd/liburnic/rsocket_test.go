//go:build dropin

package main_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A program of TCP sockets runs on rsockets by the distribution's librspreload.so, whose
// functions the library's are then.
func TestSocketsBecomeRsocketsByPreload(t *testing.T) {
	preload, err := filepath.Glob("/usr/lib/*/rsocket/librspreload.so")
	if err != nil || len(preload) != 1 {
		t.Fatalf("librspreload.so is not there (%v): on Debian, apt-get install librdmacm1", preload)
	}
	program := filepath.Join(t.TempDir(), "sockets")
	if err := command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-o", program, "testdata/sockets.c", "-pthread"); err != nil {
		t.Fatal(err)
	}
	lib := libraries(t)
	for name, env := range map[string][]string{
		"interpose, first": {"LD_PRELOAD=" + preload[0] + ":" + filepath.Join(lib, "liburnic.so")},
		"interpose, last":  {"LD_PRELOAD=" + filepath.Join(lib, "liburnic.so") + ":" + preload[0]},
		"replace":          {"LD_PRELOAD=" + preload[0], "LD_LIBRARY_PATH=" + filepath.Join(lib, "replace")},
		"strict":           {"LD_PRELOAD=" + preload[0], "LD_LIBRARY_PATH=" + filepath.Join(lib, "replace"), "URNIC_STRICT=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = append(slices.Clone(env), "URNIC_LOG=debug", patientTimes)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), ": RTS\n"); n != 2 {
				t.Errorf("%d queue pairs have been connected; want both ends of a connection:\n%s", n, out)
			}
		})
	}
}
