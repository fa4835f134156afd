// Command mutants shows that the tests of the machine of RDS notice faults in it. It builds
// them with one named fault at a time, by an overlay of go build, so that nothing of
// it is in the machine, and runs them until one fails.
//
//	mutants [-run REGEXP]
//
// For each mutant it prints its name, the tests that have found it, and what it does. The exit
// status is 1 if there is one that no test finds.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"
)

const (
	pkg = "./ulp/rds/machine"
	// longest bounds what a mutant may take. A fault that makes tests hang is found then.
	longest = 5 * time.Minute
)

// stages are the tests, those that take longest last.
var stages = []struct {
	name string
	args []string
}{
	{"tests", []string{"-test.skip", "Simulation|Faults|Fuzz"}},
	{"schedules", []string{"-test.run", "Simulation", "-schedules", "300"}},
	{"faults", []string{"-test.run", "Faults"}},
	{"schedules", []string{"-test.run", "Simulation", "-schedules", "10000"}},
}

func main() {
	only := flag.String("run", "", "run only mutants whose names match the `regexp`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) (err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	sound := mutant{name: "(none)", file: "doc.go", old: "package machine\n", new: "package machine\n"}
	if by, err := sound.judge(ctx, temp); err != nil {
		return err
	} else if by != "" {
		return fmt.Errorf("without a fault, the %s fail", by)
	}
	caught, missed := 0, 0
	for _, m := range mutants {
		if !chosen.MatchString(m.name) {
			continue
		}
		by, err := m.judge(ctx, temp)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case by == "":
			missed++
			by = "MISSED"
		default:
			caught++
		}
		fmt.Printf("%-9s  %-32s  %s\n", by, m.name, m.fault)
	}
	fmt.Printf("%d mutants caught, %d missed\n", caught, missed)
	if missed > 0 || caught == 0 {
		return errors.New("the tests do not find every mutant")
	}
	return nil
}

// judge returns the stage that finds the mutant; none if it stays empty.
func (m *mutant) judge(ctx context.Context, temp string) (string, error) {
	binary := filepath.Join(temp, "machine.test")
	if err := m.build(ctx, temp, binary); err != nil {
		return "", err
	}
	for _, s := range stages {
		ctx, cancel := context.WithTimeout(ctx, longest)
		cmd := exec.CommandContext(ctx, binary, append([]string{"-test.failfast"}, s.args...)...)
		cmd.Dir = pkg
		err := cmd.Run()
		late := ctx.Err()
		cancel()
		if _, failed := errors.AsType[*exec.ExitError](err); failed || errors.Is(late, context.DeadlineExceeded) {
			return s.name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// build builds the tests with the fault.
func (m *mutant) build(ctx context.Context, temp, binary string) error {
	text, err := m.apply(pkg)
	if err != nil {
		return err
	}
	changed := filepath.Join(temp, m.file)
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return err
	}
	original, err := filepath.Abs(filepath.Join(pkg, m.file))
	if err != nil {
		return err
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return err
	}
	overlay := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, pkg).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s does not build: %w\n%s", m.name, err, out)
	}
	return nil
}
