//go:build dropin

package main_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// modes are the ways to give a program our library, as variables of its environment.
func modes(lib string) map[string]string {
	return map[string]string{
		"interpose": "LD_PRELOAD=" + filepath.Join(lib, "liburnic.so"),
		"replace":   "LD_LIBRARY_PATH=" + filepath.Join(lib, "replace"),
	}
}

// patientTimes lets the programs and their peers take their time, so that what they see does not depend on when they run.
const patientTimes = "URNIC_TIMES=refused=0s,connect=10m,request=10m,reply=10m,disconnect=10m,release=2m,farewell=2m"

// watched is a third: the C half is watched by the sanitizers of the program.
func watched(t *testing.T) []string {
	return []string{"LD_PRELOAD=" + instrumented(t), "URNIC_ENGINE=" + filepath.Join(libraries(t), "liburnic-engine.so")}
}

// Each C program in tests/ is about one kind of object, and ends with status 0 if all
// is as it should be. The test of one is TestPrograms/NAME/MODE.
func TestPrograms(t *testing.T) {
	paths, all := programs(t), map[string][]string{"instrumented": watched(t)}
	for mode, variable := range modes(libraries(t)) {
		all[mode] = []string{variable}
	}
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		t.Run(name, func(t *testing.T) {
			for mode, env := range all {
				if mode == "instrumented" && name == "process_spawn" {
					continue // it starts programs that have no sanitizers for the library to call
				}
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					start(t, paths[name], env...)
				})
			}
		})
	}
}

// A program that forgets what it has made fails, and one that has the C half write
// beyond memory: so the others are watched.
func TestSanitizersWatch(t *testing.T) {
	env := watched(t)
	for name, want := range map[string]string{"leak": "LeakSanitizer: detected memory leaks", "overflow": "heap-buffer-overflow"} {
		path := filepath.Join(built, "fault-"+name)
		args := append(slices.Clone(compilerFlags), "-o", path, "tests/faults/"+name+".c")
		if err := command("gcc", append(args, linkerFlags...)...); err != nil {
			t.Fatal(err)
		}
		if out, err := output(t, path, env...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s ends with %v and says:\n%s", name, err, out)
		}
	}
}

// What a program asks for in strings.c, the distribution's libraries do too. So it is
// not only our opinion.
func TestDistributionPassesStrings(t *testing.T) {
	start(t, programs(t)["strings"])
}

// start runs a program and wants success.
func start(t *testing.T, path string, env ...string) {
	t.Helper()
	if out, err := output(t, path, env...); err != nil {
		t.Errorf("%s: %v\n%s", filepath.Base(path), err, tail(out, 80))
	}
}

// output runs a program with a bare environment, and returns what it says.
func output(t *testing.T, path string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"ASAN_OPTIONS=detect_leaks=1",
		"UBSAN_OPTIONS=print_stacktrace=1",
		"URNIC_LOG=" + os.Getenv("URNIC_LOG"), patientTimes,
	}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	return out.String(), err
}

// tail returns the last n lines of a text.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Together the programs call every function that the library exports, by the version
// that it has there.
func TestProgramsCallAllThatIsExported(t *testing.T) {
	exported := symbols(t, "--defined-only", filepath.Join(libraries(t), "liburnic.so"))
	if len(exported) < 150 {
		t.Fatalf("nm shows only %d exported symbols", len(exported))
	}
	called := map[string]bool{}
	for _, path := range programs(t) {
		for s := range symbols(t, "", path) {
			called[s] = true
			name, _, _ := strings.Cut(s, "@")
			called[name] = true
		}
	}
	for _, s := range slices.Sorted(maps.Keys(exported)) {
		if !called[s] {
			t.Errorf("no program in tests/ calls %s", s)
		}
	}
}

// symbols returns what a dynamic symbol table has: NAME@VERSION, or NAME if there is
// no version. The names of versions themselves are left out.
func symbols(t *testing.T, which, path string) map[string]bool {
	t.Helper()
	args := slices.DeleteFunc([]string{"-D", which, path}, func(s string) bool { return s == "" })
	out, err := exec.Command("nm", args...).Output()
	if err != nil {
		t.Fatalf("nm %s: %v", strings.Join(args, " "), err)
	}
	found := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m) [TWUiBDR] (\S+)$`).FindAllStringSubmatch(string(out), -1) {
		found[strings.Replace(line[1], "@@", "@", 1)] = true
	}
	if len(found) == 0 {
		t.Fatalf("%s has no dynamic symbols", path)
	}
	return found
}
