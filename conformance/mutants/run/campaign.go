package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
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

	// By the stack without a fault, and by each build that mutants are based on: cases in
	// a role.
	passed map[*mutants.Build]map[string]bool
	later  map[string]bool // the IDs of the cases that may find a mutant that begins later
}

// run prints the outcome, and returns an error unless all is as it should be.
func (c *campaign) run(ctx context.Context, stdout io.Writer) error {
	began := time.Now()
	sound, err := c.sound(ctx)
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
		len(outcomes), len(outcomes)-missed, sound.Pass, sound.All(), time.Since(began).Round(time.Second)); err != nil {
		return err
	}
	if n := sound.All() - sound.Pass; n > 0 {
		err = fmt.Errorf("the stack without a fault does not pass %d of its %d results", n, sound.All())
	}
	if c.only == "" {
		if names := idle(c.later, c.passed[nil], outcomes); len(names) > 0 {
			err = errors.Join(err, fmt.Errorf("no mutant that begins later is caught by %s", strings.Join(names, ", ")))
		}
	}
	if missed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d mutants are not caught", missed, len(outcomes)))
	}
	return err
}

// sound runs the suite, or with --only the cases of the mutants chosen, against the
// stack without a fault; and against each build that mutants are based on, the cases of
// those. It returns the totals of all.
func (c *campaign) sound(ctx context.Context) (totals conformance.Totals, err error) {
	c.passed = map[*mutants.Build]map[string]bool{}
	if err := c.works.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return totals, errInterrupted
		}
		return totals, err
	}
	var bases []*mutants.Build
	cases := map[*mutants.Build][]string{}
	for i := range c.mutants {
		m := &c.mutants[i]
		if !slices.Contains(bases, m.Base) {
			bases = append(bases, m.Base)
		}
		cases[m.Base] = append(cases[m.Base], c.tested(m)...)
	}
	if c.whole || c.only == "" {
		cases[nil] = nil
		if !slices.Contains(bases, nil) {
			bases = append(bases, nil)
		}
	} else if len(slices.Concat(slices.Collect(maps.Values(cases))...)) == 0 {
		return totals, errors.New("no case tests a clause that these mutants break")
	}
	for _, base := range bases {
		t, err := c.unmutated(ctx, base, cases[base])
		if err != nil {
			return totals, err
		}
		totals.Pass += t.Pass
		totals.Fail += t.Fail
		totals.Inconclusive += t.Inconclusive
		totals.Skipped += t.Skipped
	}
	return totals, nil
}

// unmutated runs cases, or all for none, against a build without a fault: the stack as
// it is, for nil.
func (c *campaign) unmutated(ctx context.Context, base *mutants.Build, only []string) (totals conformance.Totals, err error) {
	what, m := "the stack without a fault", (*mutants.Mutant)(nil)
	if base != nil {
		what, m = "the build "+base.Name+" without a fault", &mutants.Mutant{Name: base.Name, Base: base}
	}
	c.say("building %s", what)
	binary, err := c.works.build(ctx, m)
	switch {
	case ctx.Err() != nil:
		return totals, errInterrupted
	case err != nil:
		return totals, err
	}
	defer os.Remove(binary) //nolint:errcheck // with the directory it goes anyway
	slices.Sort(only)
	report, err := c.suite(ctx, binary, assignment{only: slices.Compact(only), timeout: patience, firstMSN: firstMSN(base)})
	switch {
	case ctx.Err() != nil:
		return totals, errInterrupted
	case err != nil:
		return totals, fmt.Errorf("%s: %w", what, err)
	}
	c.passed[base] = map[string]bool{}
	for _, r := range report.Results {
		if r.Verdict == conformance.Pass {
			c.passed[base][label(r)] = true
			continue
		}
		c.say("%s does not pass %s: %s: %s", what, label(r), r.Verdict, r.Reason)
	}
	c.say("%s passes %d of %d results, in %v", what, report.Totals.Pass, report.Totals.All(), report.Duration.Round(time.Millisecond))
	return report.Totals, nil
}

// firstMSN returns the MSN with which the queues of a build begin; 0 stands for 1.
func firstMSN(base *mutants.Build) uint32 {
	if base == nil {
		return 0
	}
	return base.FirstMSN
}

// tested returns what selects the cases that a mutant must not pass: the case that is
// there for it, or the clauses that it breaks and some case tests. If it begins later, all cases of
// the clauses are wanted: those that try nothing later have to pass.
func (c *campaign) tested(m *mutants.Mutant) []string {
	if m.Case != "" && !m.Later {
		return []string{m.Case}
	}
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
	work := assignment{only: only, timeout: c.timeout, firstMSN: firstMSN(m.Base)}
	passed := c.passed[m.Base]
	if c.whole {
		work.only = nil
	} else if m.Loss == "" && !m.Later { // one failure is enough: what the other cases say proves nothing more
		work.enough = func(r conformance.Result) bool { return catches(m, r, passed) }
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	report, err := c.suite(ctx, binary, work)
	if report == nil {
		return outcome{mutant: m, verdict: broken, err: err}
	}
	if m.Loss != "" {
		return judgeLoss(m, report, err)
	}
	o := judge(m, report.Results, passed, c.later)
	if err == nil && o.verdict == early {
		o, err = c.again(ctx, m, binary, o)
	}
	o.err = err
	return o
}

// again judges a mutant that begins later anew, when cases that try nothing later have failed: they
// count only if they fail a second time, with as much time as the stack without a fault has.
func (c *campaign) again(ctx context.Context, m *mutants.Mutant, binary string, o outcome) (outcome, error) {
	var only []string
	for _, l := range o.early {
		name, _, _ := strings.Cut(l, " as ")
		only = append(only, name)
	}
	slices.Sort(only)
	report, err := c.suite(ctx, binary, assignment{only: slices.Compact(only), timeout: patience, firstMSN: firstMSN(m.Base)})
	if report == nil {
		return o, err
	}
	second := judge(m, report.Results, c.passed[m.Base], c.later)
	o.early = slices.DeleteFunc(o.early, func(l string) bool { return !slices.Contains(second.early, l) })
	o.settle()
	return o, err
}

// An assignment is what is to be run against a target.
type assignment struct {
	only     []string // what selects the cases; none selects all
	timeout  time.Duration
	firstMSN uint32
	enough   func(conformance.Result) bool // whether a result ends the run; nil: none does
}

// suite carries out an assignment against a binary. It returns the report with an error
// if the target has crashed. Of a run that a result has ended, the report has the
// results up to that one.
func (c *campaign) suite(ctx context.Context, binary string, work assignment) (*conformance.Report, error) {
	life, kill := context.WithCancel(ctx)
	defer kill()
	t, err := startTarget(life, binary, "-llp", c.llp)
	if err != nil {
		return nil, err
	}
	var early *conformance.Report
	if enough := work.enough; enough != nil {
		var seen []conformance.Result
		work.enough = func(r conformance.Result) bool {
			if early != nil {
				return true
			}
			if seen = append(seen, r); enough(r) {
				early = &conformance.Report{Results: seen}
				kill() // so that the cases under way end at once
				return true
			}
			return false
		}
	}
	report, err := c.judged(ctx, t, work)
	if early != nil {
		<-t.ended
		return early, nil
	}
	crash := t.stop(kill)
	if err != nil {
		return nil, err
	}
	return report, crash
}

// judged runs the cases of the RNIC, and those of RPC-over-RDMA, against a target that
// runs. The report is of both.
func (c *campaign) judged(ctx context.Context, t *target, work assignment) (_ *conformance.Report, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	export := profile.Export{Handle: []byte(rpcpeer.Root)}
	all := &conformance.Report{}
	running, stop := context.WithCancel(ctx)
	defer stop()
	profiles := []conformance.Profile{
		profile.NewUrnic(t.address, "", work.timeout),
		profile.NewRPCRDMA(t.rpc, nil, work.timeout, export),
		profile.NewRPCRDMA("", l.(*net.TCPListener), work.timeout, export),
	}
	if c.llp == string(conformance.RDP) {
		profiles = []conformance.Profile{profile.NewUrnic(t.address, "", work.timeout).OverRDP()}
	}
	for _, p := range profiles {
		r := conformance.Runner{
			Groups: c.groups, Profile: p,
			Options: conformance.Options{Timeout: work.timeout, Quiet: quiet, Strict: true, Only: work.only, FirstMSN: work.firstMSN},
		}
		if work.enough != nil {
			r.Options.Progress = func(_, _ int, res conformance.Result) {
				if work.enough(res) {
					stop()
				}
			}
		}
		if r.Check() == nil && r.Count() == 0 {
			continue
		}
		if _, roles := p.Offers(); roles == conformance.Initiator {
			if err := t.call(l.Addr().String()); err != nil {
				return nil, fmt.Errorf("the target has no standard input any more: %w", err)
			}
		}
		report, err := r.Run(running)
		if err != nil {
			return nil, err
		}
		add(all, report)
		if running.Err() != nil || report.Lost != "" {
			break
		}
	}
	return all, nil
}

// add adds results to a report, but for those that the profile can't judge.
func add(all, part *conformance.Report) {
	all.Duration += part.Duration
	all.Lost = cmp.Or(all.Lost, part.Lost)
	for _, r := range part.Results {
		if r.Verdict != conformance.Skipped || part.Profile == "urnic" {
			all.Results = append(all.Results, r)
			all.Totals.Add(r.Verdict)
		}
	}
}

func (c *campaign) say(format string, args ...any) { fmt.Fprintf(c.progress, format+"\n", args...) }
