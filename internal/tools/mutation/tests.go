package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A test is a test, an example, or a fuzz target with its stored inputs.
type test struct {
	name    string
	bin     *binary
	took    time.Duration
	reaches map[int]bool // mutants
}

// A binary is the compiled tests of a package.
type binary struct{ path, dir, pkg string }

// build compiles the tests of packages with all mutants in them.
func build(ctx context.Context, p *pkg, files map[string]string, testPkgs []string, tmp string) ([]*binary, error) {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, code := range files {
		to := filepath.Join(tmp, strconv.Itoa(len(overlay.Replace))+".go")
		if err := os.WriteFile(to, []byte(code), 0o600); err != nil {
			return nil, err
		}
		overlay.Replace[path] = to
	}
	b, err := json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	replace := filepath.Join(tmp, "overlay.json")
	if err := os.WriteFile(replace, b, 0o600); err != nil {
		return nil, err
	}
	var out []*binary
	for i, name := range testPkgs {
		list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", name)
		list.Dir = p.root
		dir, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list %s: %w", name, err)
		}
		bin := &binary{path: filepath.Join(tmp, fmt.Sprintf("tests%d", i)), dir: strings.TrimSpace(string(dir)), pkg: name}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", replace, "-o", bin.path, name)
		cmd.Dir = p.root
		if msg, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("the tests of %s don't build with the mutants: %w\n%s", name, err, msg)
		}
		out = append(out, bin)
	}
	return out, nil
}

// A limit is how long tests may take: on the clock, and of the processor's time if that is not 0. While other programs keep the
// machine busy, only the clock goes on.
type limit struct{ clock, processor time.Duration }

// run runs tests of a binary with a mutant, 0 for none, and returns what they printed.
// The error is an *exec.ExitError if a test fails, and errHangs if the tests took longer
// than the limit and were killed.
func (b *binary) run(ctx context.Context, tests []*test, mutant int, reached string, limit limit) (string, error) {
	names := make([]string, len(tests))
	for i, t := range tests {
		names[i] = regexp.QuoteMeta(t.name)
	}
	return b.start(ctx, limit, []string{"MUTANT=" + strconv.Itoa(mutant), "MUTANT_REACHED=" + reached},
		"-test.run=^("+strings.Join(names, "|")+")$", "-test.failfast", "-test.paniconexit0", "-test.v")
}

var errHangs = errors.New("the tests don't end")

// isVerdict reports whether an error of run tells of the tests, and not that they could
// not be run.
func isVerdict(err error) bool {
	_, failed := errors.AsType[*exec.ExitError](err)
	return failed || errors.Is(err, errHangs)
}

func (b *binary) start(ctx context.Context, limit limit, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit.clock, errHangs)
	defer cancel()
	// A mutant may ask for memory without end: 8 GiB of addresses are enough for all tests.
	script := `ulimit -v 8388608 2>/dev/null; `
	if limit.processor > 0 {
		script += fmt.Sprintf("ulimit -t %d && ", int64(math.Ceil(limit.processor.Seconds())))
	}
	script += `exec "$0" "$@"`
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script, b.path}, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), env...)
	// What the tests start ends with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.String(), context.Cause(ctx)
	}
	if ended, failed := errors.AsType[*exec.ExitError](err); failed && limit.processor > 0 {
		// The kernel ends a process at its limit by SIGKILL.
		if status, is := ended.Sys().(syscall.WaitStatus); is && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return out.String(), errHangs
		}
	}
	return out.String(), err
}

// list returns the names of a binary's tests.
func (b *binary) list(ctx context.Context) ([]*test, error) {
	out, err := b.start(ctx, limit{clock: 5 * time.Minute}, nil, "-test.list=^(Test|Example|Fuzz)")
	if err != nil {
		return nil, fmt.Errorf("the tests of %s can't be listed: %w\n%s", b.pkg, err, out)
	}
	var tests []*test
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`).MatchString(line) {
			tests = append(tests, &test{name: line, bin: b})
		}
	}
	return tests, nil
}

// measure runs each test alone, without a mutant. It returns those that pass, the
// fastest first, and the names of those that fail: as they fail without a mutant,
// they can't tell anything.
func measure(ctx context.Context, bins []*binary, tmp string) (tests []*test, failing []string, err error) {
	reached := filepath.Join(tmp, "reached")
	for _, b := range bins {
		all, err := b.list(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range all {
			if err := os.RemoveAll(reached); err != nil {
				return nil, nil, err
			}
			begun := time.Now()
			_, err := b.run(ctx, []*test{t}, 0, reached, limit{clock: 5 * time.Minute})
			t.took = time.Since(begun)
			if err != nil && !isVerdict(err) {
				return nil, nil, err
			}
			if err != nil {
				failing = append(failing, t.name)
				continue
			}
			if t.reaches, err = readReached(reached); err != nil {
				return nil, nil, err
			}
			tests = append(tests, t)
		}
	}
	slices.SortStableFunc(tests, func(a, b *test) int { return int(a.took - b.took) })
	return tests, failing, nil
}

func readReached(path string) (map[int]bool, error) {
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out := map[int]bool{}
	for f := range strings.FieldsSeq(string(b)) {
		n, err := strconv.Atoi(f)
		if err != nil {
			return nil, fmt.Errorf("what the tests reach: %w", err)
		}
		out[n] = true
	}
	return out, nil
}
