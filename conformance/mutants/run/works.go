package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"urnic/conformance/mutants"
)

// works builds mutants in a directory of its own.
//
// A mutant differs from the stack in one package, and mostly not in what this shows
// to others. The go command would compile all that import it, nevertheless, so the
// works call compiler and linker themselves, and compile a package only if its
// sources are edited or what it imports shows itself otherwise. The linker, too,
// refuses packages that have seen each other differently.
type works struct {
	root     string // of the module
	dir      string
	packages []source          // those of the module, each behind those that it imports
	archives map[string]string // of all packages, compiled without a fault
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

// prepare compiles the stack without a fault. It precedes build.
func (w *works) prepare(ctx context.Context) error {
	listed, err := w.list(ctx, "./conformance/mutants/target")
	if err != nil {
		return err
	}
	w.packages = slices.DeleteFunc(slices.Clone(listed), func(p source) bool { return p.Standard || p.Module.Path != "urnic" })
	w.archives = map[string]string{}
	for _, p := range listed {
		if p.Export != "" {
			w.archives[p.ImportPath] = p.Export
		}
	}
	return nil
}

// build builds a mutant, or, for nil, the stack without a fault, and returns its
// binary.
func (w *works) build(ctx context.Context, m *mutants.Mutant) (binary string, err error) {
	name, edited := "unmutated", map[string][]byte{}
	if m != nil {
		name = m.Name
		if edited, err = m.Apply(w.root); err != nil {
			return "", err
		}
	}
	dir := filepath.Join(w.dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary, err = w.make(ctx, dir, edited)
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("building %s: %w", name, err)
	}
	return binary, nil
}

// make compiles in a directory what the edited files, named by their place in the
// module, make different, and links the target.
func (w *works) make(ctx context.Context, dir string, edited map[string][]byte) (string, error) {
	archives := maps.Clone(w.archives)
	if err := w.addImports(ctx, edited, archives); err != nil {
		return "", err
	}
	different := map[string]bool{} // to those that import them
	for _, p := range w.packages {
		files, changed, err := p.files(w.root, dir, edited)
		if err != nil {
			return "", err
		}
		if !changed && !slices.ContainsFunc(p.Imports, func(i string) bool { return different[i] }) {
			continue
		}
		archive, err := w.compile(ctx, dir, p, files, archives)
		if err != nil {
			return "", err
		}
		if different[p.ImportPath], err = differ(archive, archives[p.ImportPath]); err != nil {
			return "", err
		}
		archives[p.ImportPath] = archive
	}
	return w.link(ctx, dir, archives)
}

// run runs the go command with these arguments.
func (w *works) run(ctx context.Context, arguments ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = w.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // which its compilers hear of too
	cmd.WaitDelay = farewell
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", strings.Join(arguments[:min(2, len(arguments))], " "), err, &stdout, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}
