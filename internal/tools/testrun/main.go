package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := do(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	gotestsum string
	dir       string
	name      string
	out       string
	later     string
	tries     int
	packages  []string
	flags     []string // of go test
}

func parse(args []string) (settings, error) {
	var s settings
	f := flag.NewFlagSet("testrun", flag.ContinueOnError)
	f.StringVar(&s.gotestsum, "gotestsum", "bin/gotestsum", "the program that runs the tests")
	f.StringVar(&s.dir, "C", ".", "directory of the module")
	f.StringVar(&s.name, "name", "test", "what the files of the run are called")
	f.StringVar(&s.out, "out", "artifacts/test", "directory of these files")
	f.StringVar(&s.later, "later", "", "the kind of run that .ci/later leaves tests out of: test or race")
	f.IntVar(&s.tries, "tries", 2, "how often a test that fails is run again")
	if i := slices.Index(args, "--"); i >= 0 {
		args, s.flags = args[:i], args[i+1:]
	}
	if err := f.Parse(args); err != nil {
		return s, err
	}
	if s.packages = f.Args(); len(s.packages) == 0 {
		return s, errors.New("name the packages to test, such as \"./...\"")
	}
	return s, nil
}

// do runs the tests that the command line asks for.
func do(ctx context.Context, stdout io.Writer, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	allowed := regexp.MustCompile("") // what skips is nobody's concern
	if os.Getenv("CI") != "" {
		if allowed, err = skips(".ci/skips"); err != nil {
			return err
		}
	}
	if s.later != "" {
		left, err := later(".ci/later", s.later)
		if err != nil {
			return err
		}
		if left != "" {
			s.flags = append([]string{"-skip", left}, s.flags...)
		}
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	kept, err := os.Create(filepath.Join(s.out, s.name+"-flaky.txt"))
	if err != nil {
		return err
	}
	ran := s.run(ctx, stdout)
	if ctx.Err() != nil {
		return errors.Join(errors.New("interrupted"), kept.Close())
	}
	events, err := os.Open(s.events())
	if err != nil {
		return errors.Join(ran, err)
	}
	o, err := read(events)
	if err := errors.Join(err, events.Close()); err != nil {
		return errors.Join(ran, err)
	}
	passes := o.report(stdout, kept, allowed)
	if err := kept.Close(); err != nil {
		return err
	}
	if ran == nil && !passes {
		return errors.New("the tests have not passed")
	}
	return ran
}

// events is the file with the events of the run.
func (s settings) events() string { return filepath.Join(s.out, s.name+".json") }

// run has gotestsum run the tests.
func (s settings) run(ctx context.Context, stdout io.Writer) error {
	program, err := filepath.Abs(s.gotestsum)
	if err != nil {
		return err
	}
	events, err := filepath.Abs(s.events())
	if err != nil {
		return err
	}
	args := []string{
		"--format", cmp.Or(os.Getenv("GOTESTSUM_FORMAT"), "pkgname"), "--format-hide-empty-pkg", "--hide-summary", "all",
		"--jsonfile", events, "--packages", strings.Join(s.packages, " "),
		"--rerun-fails=" + strconv.Itoa(s.tries), "--rerun-fails-max-failures", "8",
		"--rerun-fails-abort-on-data-race", "--rerun-fails-run-root-test", "--",
	}
	cmd := exec.CommandContext(ctx, program, append(args, s.flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("gotestsum: %w", err)
	}
	return nil
}
