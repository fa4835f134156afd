// Command run shows that the conformance suite finds what it is there to find: it
// builds each mutant, runs the cases of the clauses that the mutant breaks, and
// wants one of them to fail. The stack without a fault must pass.
//
//	go run ./conformance/mutants/run --only crc-big-endian,msn-from-zero
//
// A case counts only if it passes against the stack without a fault, so that it
// is the fault that it has found. One such case is enough: the run against a mutant
// ends with it, unless --whole asks for all. A mutant whose fault begins later in a stream
// (Mutant.Later) is different: all cases of its clauses run, and none may fail but those that
// try a rule later (mutants.LaterCases); each of these has to find such a mutant. The exit status is 0 if the stack
// without a fault passes all cases, and each mutant was caught.
//
// With --llp rdp, the targets are on RDP, and so are the mutants left out whose fault is in MPA, or needs MPA to be seen.
//
// It needs the go command, and runs anywhere within the module. What it builds lies
// in a temporary directory, what it starts listens on loopback; both are gone when
// it ends, or is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"urnic/conformance"
	"urnic/conformance/cases"
	"urnic/conformance/mutants"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	whole   bool
	list    bool
	only    string
	llp     string
	jobs    int
	timeout time.Duration
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	f := flag.NewFlagSet("mutants", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.BoolVar(&o.whole, "whole", false, "run the whole suite against each mutant, not only the cases of the clauses that it breaks")
	f.BoolVar(&o.list, "list", false, "list the mutants, and run nothing")
	f.StringVar(&o.only, "only", "", "run these mutants only: `NAME,…`; the stack without a fault gets the same cases as they")
	f.StringVar(&o.llp, "llp", string(conformance.TCP), "what the targets' DDP runs on: tcp or rdp")
	f.IntVar(&o.jobs, "jobs", 4, "how many mutants run at a time, while two more are being built")
	f.DurationVar(&o.timeout, "timeout", 3*time.Second, "how long a mutant may take for an answer")
	if err := f.Parse(args); err != nil {
		return err
	}
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("%q is no flag: name mutants with --only", f.Arg(0))
	case o.llp != string(conformance.TCP) && o.llp != string(conformance.RDP):
		return fmt.Errorf("--llp %s: say tcp or rdp", o.llp)
	case o.jobs < 1:
		return fmt.Errorf("--jobs %d: say 1 or more", o.jobs)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: say how long, such as 3s", o.timeout)
	}
	groups := casesFor(conformance.LLP(o.llp))
	chosen, err := choose(o.only, conformance.LLP(o.llp), groups)
	if err != nil {
		return err
	}
	if o.list {
		return list(stdout, chosen)
	}
	w, err := newWorks(ctx)
	if err != nil {
		return err
	}
	c := campaign{options: o, works: w, mutants: chosen, groups: groups, progress: stderr, later: map[string]bool{}}
	for _, id := range mutants.LaterCases() {
		c.later[id] = true
	}
	return errors.Join(c.run(ctx, stdout), w.close())
}

// casesFor returns the cases that can be tried over a lower layer.
func casesFor(over conformance.LLP) []conformance.Group {
	groups := cases.All()
	for i := range groups {
		groups[i].Cases = slices.DeleteFunc(groups[i].Cases, func(c conformance.Case) bool { return !c.IsFor(over) })
	}
	return groups
}

// choose returns the mutants that --only names, or all that can be seen over the lower layer.
func choose(only string, over conformance.LLP, groups []conformance.Group) ([]mutants.Mutant, error) {
	if only == "" {
		return slices.DeleteFunc(mutants.All(), func(m mutants.Mutant) bool { return over == conformance.RDP && !seenOverRDP(&m, groups) }), nil
	}
	var out []mutants.Mutant
	for name := range strings.SplitSeq(only, ",") {
		m, ok := mutants.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("there is no mutant %q: --list shows them", name)
		}
		out = append(out, m)
	}
	return out, nil
}

// seenOverRDP reports whether the fault of a mutant is in a part of the stack that runs over RDP as well, and some case over
// RDP is about a clause that it breaks.
func seenOverRDP(m *mutants.Mutant, groups []conformance.Group) bool {
	if slices.ContainsFunc(m.Edits, func(e mutants.Edit) bool {
		return strings.HasPrefix(e.File, "mpa/") || strings.HasPrefix(e.File, "ulp/") || strings.HasPrefix(e.File, "rnic/lowerlayer_mpa")
	}) {
		return false
	}
	return slices.ContainsFunc(groups, func(g conformance.Group) bool {
		return slices.ContainsFunc(g.Cases, func(c conformance.Case) bool {
			if m.Case != "" {
				return c.ID() == m.Case
			}
			return slices.ContainsFunc(m.Clauses, func(id string) bool { return slices.Contains(c.Clauses(), id) })
		})
	})
}
