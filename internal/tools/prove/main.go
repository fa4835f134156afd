package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
)

const usage = "usage: prove run [NAME...] | holds NAME | record NAME | list"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := do(ctx, os.Stdout, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// do carries out the command line in the checkout around the working directory.
func do(ctx context.Context, stdout io.Writer, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	chosen, err := choose(args[1:])
	if err != nil {
		return err
	}
	top, err := checkout(".").git("rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	c := checkout(top)
	switch {
	case args[0] == "run":
		return c.run(ctx, stdout, chosen)
	case args[0] == "list" && len(args) == 1:
		return c.list(stdout)
	case args[0] == "holds" && len(args) == 2:
		r, err := c.holds(chosen[0])
		if err == nil {
			_, err = fmt.Fprintf(stdout, "its inputs are those of its record: %s\n", r.said)
		}
		return err
	case args[0] == "record" && len(args) == 2:
		return c.write(chosen[0], said(time.Now()))
	default:
		return errors.New(usage)
	}
}

// choose returns the proofs of these names, or all.
func choose(names []string) ([]proof, error) {
	if len(names) == 0 {
		return proofs, nil
	}
	var chosen []proof
	for _, name := range names {
		i := slices.IndexFunc(proofs, func(p proof) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no proof %q; see prove list", name)
		}
		chosen = append(chosen, proofs[i])
	}
	return chosen, nil
}

// said is what a record says of its making.
func said(at time.Time) string {
	return fmt.Sprintf("passed %s, %s %s/%s", at.UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// run runs proofs, whatever the records say, and records each that passes.
func (c checkout) run(ctx context.Context, stdout io.Writer, chosen []proof) error {
	var failed []error
	for _, p := range chosen {
		// What is recorded must be what has run.
		before, err := c.trees(p)
		if err != nil {
			return fmt.Errorf("%s would prove nothing: %w", p.name, err)
		}
		fmt.Fprintf(stdout, "%s: %s\n", p.name, p.command)
		cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = string(c), stdout, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
			continue
		}
		after, err := c.trees(p)
		if err == nil && !maps.Equal(before, after) {
			err = errors.New("its inputs have changed while it ran")
		}
		if err == nil {
			err = c.write(p, said(time.Now()))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s is not recorded: %w", p.name, err))
		}
	}
	return errors.Join(failed...)
}

// list prints a line for each proof: its name, whether "make verify" runs it when it is due or it takes
// too long for that, and whether its record holds.
func (c checkout) list(stdout io.Writer) error {
	for _, p := range proofs {
		where := "verify"
		if p.long {
			where = "long"
		}
		state := "holds"
		r, err := c.holds(p)
		if err != nil {
			state, r.said = "due", err.Error()
		}
		if _, err := fmt.Fprintf(stdout, "%-17s  %-6s  %-5s  %s\n", p.name, where, state, strings.ReplaceAll(r.said, "\n", " ")); err != nil {
			return err
		}
	}
	return nil
}
