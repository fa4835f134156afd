//go:build dropin

package main_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// A program that is not linked to the library may open it, use it, and close it: alone,
// and after others.
func TestProgramsMayCloseTheLibrary(t *testing.T) {
	lib := libraries(t)
	program := filepath.Join(t.TempDir(), "dlclose")
	if err := command("gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O2", "-o", program, "testdata/dlclose.c", "-ldl", "-pthread"); err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]string{
		"verbs":          {"libibverbs.so.1"},
		"cm":             {"librdmacm.so.1"},
		"both":           {"libibverbs.so.1", "librdmacm.so.1"},
		"stubs":          {"libefa.so.1", "libmlx5.so.1"},
		"stubs and both": {"libefa.so.1", "libmlx5.so.1", "librdmacm.so.1", "libibverbs.so.1"},
	} {
		t.Run(name, func(t *testing.T) {
			for mode, variable := range modes(lib) {
				if mode == "interpose" && files[0] == "libefa.so.1" {
					continue // these are the distribution's then
				}
				cmd := exec.CommandContext(t.Context(), program, files...)
				cmd.Env = []string{variable}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", mode, err, out)
				}
			}
		})
	}
	// By its path, as a program's plug-in may.
	t.Run("by path", func(t *testing.T) {
		cmd := exec.CommandContext(t.Context(), program, filepath.Join(lib, "replace", "libibverbs.so.1"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}
