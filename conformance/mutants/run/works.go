package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"urnic/conformance/mutants"
)

// works builds mutants in a directory of its own.
type works struct {
	root string // of the module
	dir  string
}

func newWorks(ctx context.Context) (*works, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command for the module: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return nil, errors.New("this is not within the module: change to its directory")
	}
	dir, err := os.MkdirTemp("", "urnic-mutants-")
	if err != nil {
		return nil, err
	}
	return &works{root: filepath.Dir(mod), dir: dir}, nil
}

// close removes all that was built.
func (w *works) close() error { return os.RemoveAll(w.dir) }

// build builds a mutant, or, for nil, the stack without a fault, and returns its
// binary. It links without tables that nobody reads, and asks no version control:
// that makes a third of the time.
func (w *works) build(ctx context.Context, m *mutants.Mutant) (string, error) {
	name := "unmutated"
	if m != nil {
		name = m.Name
	}
	binary := filepath.Join(w.dir, name+".target")
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", binary}
	if m != nil {
		dir := filepath.Join(w.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", err
		}
		overlay, err := m.Overlay(w.root, dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./conformance/mutants/target")...)
	cmd.Dir = w.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // which its compilers hear of too
	cmd.WaitDelay = farewell
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("building %s: %w\n%s", name, err, bytes.TrimSpace(out))
	}
	return binary, nil
}
