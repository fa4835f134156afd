//go:build dropin

package dropintest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// project is the project's directory.
const project = "../../.."

// installed is the directory where urnic and the libraries are for the programs: one
// that everybody may read, as a package would install them.
var installed string

// unprivileged is whom the programs run as: nobody, or, in a user namespace, the one
// who runs the tests, without any capability.
var unprivileged = &syscall.Credential{Uid: 65534, Gid: 65534}

// inNamespace is set in the test's process once it is in a user namespace.
const inNamespace = "URNIC_DROPINTEST_NAMESPACE"

func TestMain(m *testing.M) {
	status, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func run(m *testing.M) (status int, err error) {
	switch {
	case os.Getenv(inNamespace) != "":
		unprivileged = nil
	case os.Getuid() != 0:
		return again()
	}
	if installed, err = os.MkdirTemp("", "urnic-dropin-"); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(installed)) }()
	if err := install(installed); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// again runs the tests once more, in a user namespace in which they may make network
// namespaces.
func again() (status int, err error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return ended.ExitCode(), nil
	}
	if err != nil {
		return 0, fmt.Errorf("no namespaces for the tests: run them as root, or allow user namespaces: %w", err)
	}
	return 0, nil
}

// install builds urnic and the libraries, and installs them.
func install(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{{"-s", "liburnic"}, {"-s", "install", "PREFIX=" + dir}} {
		cmd := exec.Command("make", args...)
		cmd.Dir = project
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("make %s: %w\n%s", strings.Join(args[1:], " "), err, out)
		}
	}
	return nil
}

// library returns the path of a file of the libraries.
func library(name string) string { return filepath.Join(installed, "lib", "urnic", name) }

// A mode is how a program gets our libraries.
type mode string

const (
	interpose mode = "interpose"
	replace   mode = "replace"
)

// bothModes runs a test in both modes.
func bothModes(t *testing.T, test func(t *testing.T, m mode)) {
	t.Helper()
	for _, m := range []mode{interpose, replace} {
		t.Run(string(m), func(t *testing.T) { test(t, m) })
	}
}

// run returns the command line that runs a program in a mode, with flags of `urnic run`.
func (m mode) run(flags, program string) []string {
	return m.runArgs(flags, strings.Fields(program)...)
}

func (m mode) runArgs(flags string, program ...string) []string {
	line := urnicCommand("run", "--mode", string(m))
	line = append(append(line, strings.Fields(flags)...), "--")
	return append(line, program...)
}
