package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"urnic/conformance"
	"urnic/conformance/mutants"
	"urnic/conformance/mutants/rpcpeer"
	"urnic/conformance/profile"
)

const (
	builds = 2 // at a time
	// quiet is how long nothing must come where nothing may come.
	quiet = 250 * time.Millisecond
	// patience is for the stack without a fault, which answers.
	patience = 20 * time.Second
	// longest bounds what a mutant may take for its cases.
	longest = 3 * time.Minute
)

var errInterrupted = errors.New("interrupted")

// A campaign runs the suite against the stack without a fault, and then against
// mutants.
type campaign struct {
	options
	works    *works
	mutants  []mutants.Mutant
	groups   []conformance.Group
	progress io.Writer

	passed map[string]bool // by the stack without a fault: cases in a role
}

// run prints the outcome, and returns an error unless all is as it should be.
func (c *campaign) run(ctx context.Context, stdout io.Writer) error {
	began := time.Now()
	sound, err := c.unmutated(ctx)
	if err != nil {
		return err
	}
	outcomes := c.all(ctx)
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err := printTable(stdout, outcomes); err != nil {
		return err
	}
	missed := 0
	for _, o := range outcomes {
		if o.verdict != caught {
			missed++
		}
	}
	if _, err := fmt.Fprintf(stdout, "\n%d mutants, %d caught; without a fault, %d of %d results pass; %v\n",
		len(outcomes), len(outcomes)-missed, sound.Totals.Pass, sound.Totals.All(), time.Since(began).Round(time.Second)); err != nil {
		return err
	}
	if n := sound.Totals.All() - sound.Totals.Pass; n > 0 {
		err = fmt.Errorf("the stack without a fault does not pass %d of its %d results", n, sound.Totals.All())
	}
	if missed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d mutants are not caught", missed, len(outcomes)))
	}
	return err
}

// unmutated runs the suite, or with --only the cases of the mutants chosen,
// against the stack without a fault.
func (c *campaign) unmutated(ctx context.Context) (*conformance.Report, error) {
	c.say("building the stack without a fault")
	err := c.works.prepare(ctx)
	var binary string
	if err == nil {
		binary, err = c.works.build(ctx, nil)
	}
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case err != nil:
		return nil, err
	}
	var only []string
	if c.only != "" && !c.whole {
		for i := range c.mutants {
			only = append(only, c.tested(&c.mutants[i])...)
		}
		slices.Sort(only)
		if only = slices.Compact(only); len(only) == 0 {
			return nil, errors.New("no case tests a clause that these mutants break")
		}
	}
	report, err := c.suite(ctx, binary, only, patience)
	switch {
	case ctx.Err() != nil:
		return nil, errInterrupted
	case err != nil:
		return nil, fmt.Errorf("the stack without a fault: %w", err)
	}
	c.passed = map[string]bool{}
	for _, r := range report.Results {
		if r.Verdict == conformance.Pass {
			c.passed[label(r)] = true
			continue
		}
		c.say("without a fault, %s is not passed: %s: %s", label(r), r.Verdict, r.Reason)
	}
	c.say("without a fault, %d of %d results pass, in %v", report.Totals.Pass, report.Totals.All(), report.Duration.Round(time.Millisecond))
	return report, nil
}

// tested returns the clauses that a mutant breaks and some case tests.
func (c *campaign) tested(m *mutants.Mutant) []string {
	return slices.DeleteFunc(slices.Clone(m.Clauses), func(id string) bool {
		for _, g := range c.groups {
			for _, t := range g.Cases {
				if slices.Contains(t.Clauses(), id) {
					return false
				}
			}
		}
		return true
	})
}

// all builds and runs the mutants.
func (c *campaign) all(ctx context.Context) []outcome {
	outcomes := make([]outcome, len(c.mutants))
	type built struct {
		i      int
		binary string
		err    error
	}
	todo, ready := make(chan int), make(chan built)
	var mu sync.Mutex
	done := 0
	var building, running sync.WaitGroup
	for range builds {
		building.Go(func() {
			for i := range todo {
				binary, err := c.works.build(ctx, &c.mutants[i])
				ready <- built{i, binary, err}
			}
		})
	}
	for range c.jobs {
		running.Go(func() {
			for b := range ready {
				o := c.one(ctx, &c.mutants[b.i], b.binary, b.err)
				mu.Lock()
				outcomes[b.i] = o
				done++
				if ctx.Err() == nil {
					c.say("%d/%d %s: %v", done, len(c.mutants), o.mutant.Name, o.verdict)
					if o.err != nil {
						c.say("%v", o.err)
					}
				}
				mu.Unlock()
			}
		})
	}
	for i := range c.mutants {
		if ctx.Err() != nil {
			break
		}
		todo <- i
	}
	close(todo)
	building.Wait()
	close(ready)
	running.Wait()
	return outcomes
}

// one runs the cases that a mutant must not pass.
func (c *campaign) one(ctx context.Context, m *mutants.Mutant, binary string, err error) outcome {
	if err != nil {
		return outcome{mutant: m, verdict: broken, err: err}
	}
	defer os.Remove(binary) //nolint:errcheck // with the directory it goes anyway
	only := c.tested(m)
	if len(only) == 0 {
		return outcome{mutant: m, verdict: untested}
	}
	if c.whole {
		only = nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	report, err := c.suite(ctx, binary, only, c.timeout)
	if report == nil {
		return outcome{mutant: m, verdict: broken, err: err}
	}
	o := judge(m, report.Results, c.passed)
	o.err = err
	return o
}

// suite runs cases against a binary: those of some clauses, or all for none. It
// returns the report with an error if the target has crashed.
func (c *campaign) suite(ctx context.Context, binary string, only []string, timeout time.Duration) (*conformance.Report, error) {
	life, kill := context.WithCancel(ctx)
	defer kill()
	t, err := startTarget(life, binary)
	if err != nil {
		return nil, err
	}
	report, err := c.judged(ctx, t, only, timeout)
	crash := t.stop(kill)
	if err != nil {
		return nil, err
	}
	return report, crash
}

// judged runs the cases of the RNIC, and those of RPC-over-RDMA, against a target that
// runs. The report is of both.
func (c *campaign) judged(ctx context.Context, t *target, only []string, timeout time.Duration) (_ *conformance.Report, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	export := profile.Export{Handle: []byte(rpcpeer.Root)}
	all := &conformance.Report{}
	for _, p := range []conformance.Profile{
		profile.NewUrnic(t.address, "", timeout),
		profile.NewRPCRDMA(t.rpc, nil, timeout, export),
		profile.NewRPCRDMA("", l.(*net.TCPListener), timeout, export),
	} {
		r := conformance.Runner{
			Groups: c.groups, Profile: p,
			Options: conformance.Options{Timeout: timeout, Quiet: quiet, Strict: true, Only: only},
		}
		if r.Check() == nil && r.Count() == 0 {
			continue
		}
		if _, roles := p.Offers(); roles == conformance.Initiator {
			if err := t.call(l.Addr().String()); err != nil {
				return nil, fmt.Errorf("the target has no standard input any more: %w", err)
			}
		}
		report, err := r.Run(ctx)
		if err != nil {
			return nil, err
		}
		add(all, report)
	}
	return all, nil
}

// add adds results to a report, but for those that the profile can't judge.
func add(all, part *conformance.Report) {
	all.Duration += part.Duration
	for _, r := range part.Results {
		if r.Verdict != conformance.Skipped || part.Profile == "urnic" {
			all.Results = append(all.Results, r)
			all.Totals.Add(r.Verdict)
		}
	}
}

func (c *campaign) say(format string, args ...any) { fmt.Fprintf(c.progress, format+"\n", args...) }
