//go:build dropin

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program may be linked to us only by way of another library, as those of libfabric are:
// then the C library comes first, and not next, when symbols are looked up.
func TestProgramsOfALibraryThatIsLinkedToUs(t *testing.T) {
	lib, dir := libraries(t), t.TempDir()
	for name, text := range map[string]string{
		"between.c": `#include <infiniband/verbs.h>
int devices(void)
{
	int n = -1;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *context = list && *list ? ibv_open_device(*list) : NULL;
	return context && ibv_close_device(context) == 0 ? n : -1;
}`,
		"program.c": `int devices(void);
int main(void) { return devices() == 1 ? 0 : 1; }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-o", filepath.Join(dir, "libbetween.so"), filepath.Join(dir, "between.c"), "-libverbs"},
		{
			"-o", program, filepath.Join(dir, "program.c"), "-L" + dir, "-lbetween", "-Wl,-rpath," + dir,
			"-Wl,--allow-shlib-undefined", "-Wl,--as-needed",
		},
	} {
		if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
			t.Fatalf("cc %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	for mode, variable := range modes(lib) {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program)
			cmd.Env = []string{variable}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
