//go:build dropin

package main_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// project is the project's directory.
const project = "../.."

// built is where the C programs go, once they are compiled.
var built string

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	if built, err = os.MkdirTemp("", "liburnic-tests-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(built)) }()
	return m.Run(), nil
}

// libraries builds both halves of the drop-in library, and returns the directory
// that they are in.
func libraries(t *testing.T) string {
	t.Helper()
	dir, err := makeLibraries()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var makeLibraries = sync.OnceValues(func() (string, error) {
	if err := command("make", "-s", "-C", project, "liburnic"); err != nil {
		return "", err
	}
	return filepath.Abs(filepath.Join(project, "lib"))
})

// The programs are told of each wrong access to memory, each leak and each undefined
// behaviour. They hold the sanitizers themselves, because a sanitizer in a library
// wants to be the first that is loaded, and liburnic.so is preloaded; with all of
// their functions, which the instrumented shim calls. They bind at once, as Debian's
// tools do.
var (
	sanitizerFlags = []string{"-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}
	compilerFlags  = append([]string{"-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"}, sanitizerFlags...)
	linkerFlags    = []string{"-rdynamic", "-static-libasan", "-static-libubsan", "-Wl,-z,now", "-libverbs", "-lrdmacm", "-pthread"}
)

// instrumented builds the C half with the sanitizers, and returns the library.
func instrumented(t *testing.T) string {
	t.Helper()
	path, err := makeInstrumented()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var makeInstrumented = sync.OnceValues(func() (string, error) {
	files, err := filepath.Glob("shim/*.c")
	if err != nil {
		return "", err
	}
	path := filepath.Join(built, "liburnic.so")
	args := slices.Concat(sanitizerFlags, []string{
		"-std=c11", "-D_GNU_SOURCE", "-fPIC", "-fvisibility=hidden", "-shared",
		"-nodefaultlibs", "-Wl,--version-script,shim/liburnic.map", "-Wl,-z,now", "-Wl,-z,nodelete", "-Wl,-Bsymbolic-functions", "-o", path,
	}, files)
	return path, command("gcc", append(args, "-ldl", "-lc", "-pthread")...)
})

// A source is one of the C files.
type source struct {
	name    string // without .c
	program bool   // it has a main function; else all programs share it
	text    string
}

// sources returns all C files of the tests.
func sources() (all []source, err error) {
	paths, err := filepath.Glob("tests/*.c")
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		all = append(all, source{
			name:    strings.TrimSuffix(filepath.Base(path), ".c"),
			program: bytes.Contains(text, []byte("\nint main(")),
			text:    string(text),
		})
	}
	if len(all) == 0 {
		return nil, errors.New("tests/*.c: there is no C program")
	}
	return all, nil
}

// programs compiles all C programs, and returns their paths by name.
func programs(t *testing.T) map[string]string {
	t.Helper()
	paths, err := compileAll()
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

var compileAll = sync.OnceValues(func() (map[string]string, error) {
	all, err := sources()
	if err != nil {
		return nil, err
	}
	objects := make([]string, len(all))
	errs := make([]error, len(all))
	each(len(all), func(i int) {
		objects[i] = filepath.Join(built, all[i].name+".o")
		errs[i] = command("gcc", append(compilerFlags, "-c", "-o", objects[i], "tests/"+all[i].name+".c")...)
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var shared []string
	paths := map[string]string{}
	for i, s := range all {
		if !s.program {
			shared = append(shared, objects[i])
			continue
		}
		paths[s.name] = filepath.Join(built, s.name)
	}
	each(len(all), func(i int) {
		if path, ok := paths[all[i].name]; ok {
			args := append([]string{"-fsanitize=address,undefined", "-o", path, objects[i]}, shared...)
			errs[i] = command("gcc", append(args, linkerFlags...)...)
		}
	})
	return paths, errors.Join(errs...)
})

// each calls f for 0 to n-1, two at a time.
func each(n int, f func(int)) {
	var all sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i := range n {
		all.Go(func() {
			turn <- struct{}{}
			f(i)
			<-turn
		})
	}
	all.Wait()
}

// command runs a program that has to succeed.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%w: on Debian, apt-get install gcc make binutils libc6-dev libibverbs-dev librdmacm-dev", err)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
