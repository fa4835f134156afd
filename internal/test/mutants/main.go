package mutants

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

// longest bounds what a mutant may take. A fault that makes tests hang is found then.
const longest = 5 * time.Minute

// Main is the main function of a command:
//
//	mutants [-run REGEXP]
//
// It runs in the module's directory. For each mutant it prints its name, the tests that have
// found it, and what it does. The exit status is 1 if there is one that no test finds.
func Main(s Suite) {
	only := flag.String("run", "", "run only mutants whose names match the `regexp`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.run(ctx, *only); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (s *Suite) run(ctx context.Context, only string) (err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	name := "package " + filepath.Base(s.Package) + "\n"
	sound := Mutant{Name: "(none)", File: "doc.go", Old: name, New: name}
	if by, err := s.judge(ctx, &sound, temp); err != nil {
		return err
	} else if by != "" {
		return fmt.Errorf("without a fault, the %s fail", by)
	}
	caught, missed := 0, 0
	for _, m := range s.Mutants {
		if !chosen.MatchString(m.Name) {
			continue
		}
		by, err := s.judge(ctx, &m, temp)
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
		fmt.Printf("%-9s  %-32s  %s\n", by, m.Name, m.Fault)
	}
	fmt.Printf("%d mutants caught, %d missed\n", caught, missed)
	if missed > 0 || caught == 0 {
		return errors.New("the tests do not find every mutant")
	}
	return nil
}

// judge returns the stage that finds the mutant; none if it stays empty.
func (s *Suite) judge(ctx context.Context, m *Mutant, temp string) (string, error) {
	binary := filepath.Join(temp, "mutant.test")
	if err := s.build(ctx, m, temp, binary); err != nil {
		return "", err
	}
	for _, stage := range s.Stages {
		ctx, cancel := context.WithTimeout(ctx, longest)
		cmd := exec.CommandContext(ctx, binary, append([]string{"-test.failfast"}, stage.Args...)...)
		cmd.Dir = s.Package
		err := cmd.Run()
		late := ctx.Err()
		cancel()
		if _, failed := errors.AsType[*exec.ExitError](err); failed || errors.Is(late, context.DeadlineExceeded) {
			return stage.Name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// build builds the tests with the fault.
func (s *Suite) build(ctx context.Context, m *Mutant, temp, binary string) error {
	text, err := m.apply(s.Package)
	if err != nil {
		return err
	}
	changed := filepath.Join(temp, m.File)
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return err
	}
	original, err := filepath.Abs(filepath.Join(s.Package, m.File))
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
	out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, "./"+s.Package).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s does not build: %w\n%s", m.Name, err, out)
	}
	return nil
}
