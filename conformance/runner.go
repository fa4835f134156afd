package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"urnic/conformance/catalogue"
	"urnic/conformance/wire"
)

// A Runner runs cases against one target.
type Runner struct {
	Groups  []Group
	Profile Profile
	Options Options
}

// A run is one case in one role.
type run struct {
	group string
	c     Case
	role  Roles
}

// runs lists what Run runs: the cases that are selected, once for each role that
// profile and case have in common. Those that the profile can't do at all are
// skipped when it is their turn. Cases of RPC-over-RDMA and those of the RNIC below it
// are not for the same profile: those of the other kind are left out. So are those that are about a
// lower layer that the run is not over.
func (r *Runner) runs() []run {
	needs, roles := r.Profile.Offers()
	var out []run
	for group, c := range r.Selected() {
		if (c.Needs^needs)&NeedRPC != 0 || c.leftOut(r.Profile.LLP()) != "" {
			continue
		}
		for _, role := range []Roles{Responder, Initiator} {
			if c.For()&role == 0 {
				continue
			}
			if roles&role == 0 && c.For() == BothRoles {
				continue // the other role tells
			}
			out = append(out, run{group, c, role})
		}
	}
	return out
}

// Count returns how many results Run will have.
func (r *Runner) Count() int { return len(r.runs()) }

// Selected ranges over the cases that --only selects, each with its group's name.
func (r *Runner) Selected() iter.Seq2[string, Case] {
	return func(yield func(string, Case) bool) {
		for _, g := range r.Groups {
			for _, c := range g.Cases {
				if r.selects(g.Name, c) && !yield(g.Name, c) {
					return
				}
			}
		}
	}
}

func (r *Runner) selects(group string, c Case) bool {
	return len(r.Options.Only) == 0 || slices.ContainsFunc(r.Options.Only, func(p string) bool {
		return Matches(p, group, c)
	})
}

// Check returns an error if something that --only names selects no case.
func (r *Runner) Check() error {
	for _, p := range r.Options.Only {
		found := slices.ContainsFunc(r.Groups, func(g Group) bool {
			return slices.ContainsFunc(g.Cases, func(c Case) bool { return Matches(p, g.Name, c) })
		})
		if !found {
			return fmt.Errorf("no case is selected by %q: --list shows their IDs", p)
		}
	}
	return nil
}

// Run runs the cases and returns the report. If the context ends, the cases that
// have not begun are skipped. The error is that of Check.
func (r *Runner) Run(ctx context.Context) (*Report, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	opts := r.Options.withDefaults()
	if r.Profile.Serial() {
		opts.Jobs = 1
	}
	runs := r.runs()
	report := &Report{Profile: r.Profile.Name(), LLP: r.Profile.LLP(), Strict: opts.Strict, Began: time.Now()}
	results := make([]Result, len(runs))
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	life := &vitals{r: r, opts: opts, end: end}
	var (
		mu   sync.Mutex
		done int
	)
	one := func(i int) {
		results[i] = life.judge(ctx, runs[i], r.one(ctx, opts, runs[i]))
		mu.Lock()
		defer mu.Unlock()
		done++
		if opts.Progress != nil {
			opts.Progress(done, len(runs), results[i])
		}
	}
	// What may harm the target comes last, and alone.
	var harmful []int
	work := make(chan int)
	var wg sync.WaitGroup
	for range opts.Jobs {
		wg.Go(func() {
			for i := range work {
				one(i)
			}
		})
	}
	for i := range runs {
		if runs[i].c.harms(runs[i].role) {
			harmful = append(harmful, i)
			continue
		}
		work <- i
	}
	close(work)
	wg.Wait()
	for _, i := range harmful {
		if _, err := r.revive(ctx, opts, runs[i].role); err != nil {
			opts.Revive, life.opts.Revive = nil, nil
			results[i] = describe(runs[i])
			results[i].Verdict, results[i].Reason = Skipped, fmt.Sprintf("the target can't be brought back: %v", err)
			continue
		}
		one(i)
	}
	life.last(ctx, slices.ContainsFunc(results, func(r Result) bool { return r.Verdict != Skipped }))
	life.withdraw(results)
	report.Lost = life.sentence()
	report.Results = results
	report.Interrupted = ctx.Err() != nil && !life.lost
	report.Duration = time.Since(report.Began)
	for _, res := range results {
		report.Totals.Add(res.Verdict)
	}
	report.Clauses = r.states(results)
	report.Coverage = coverage(report.Clauses, results)
	return report, nil
}

// probeTimeout is how long the target may take to accept an ordinary connection before
// it is brought back.
const probeTimeout = 3 * time.Second

// revive brings the target back if it does not accept an ordinary connection, and
// reports whether it had to.
func (r *Runner) revive(ctx context.Context, opts Options, role Roles) (revived bool, err error) {
	if _, roles := r.Profile.Offers(); opts.Revive == nil || roles&role == 0 || ctx.Err() != nil {
		return false, nil
	}
	probe := run{c: Case{Clause: "probe", Run: func(t *T) { t.Open(Setup{}) }}, role: role}
	opts.PcapDir, opts.Timeout = "", min(opts.Timeout, probeTimeout)
	probing, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if r.one(probing, opts, probe).Verdict == Pass {
		return false, nil
	}
	return true, opts.Revive(ctx)
}

// describe returns a result that says what a case is.
func describe(run run) Result {
	res := Result{
		Case: run.c.ID(), Role: run.role.String(), Group: run.group, Title: run.c.Title,
		Clauses: run.c.Clauses(), Began: time.Now(),
	}
	if clause, ok := catalogue.Lookup(run.c.Clause); ok {
		res.Level, res.Cite, res.Clause = clause.Level.String(), clause.Cite(), clause.Summary
	}
	return res
}

// one runs one case in one role.
func (r *Runner) one(ctx context.Context, opts Options, run run) Result {
	res := describe(run)
	needs, roles := r.Profile.Offers()
	switch {
	case ctx.Err() != nil:
		res.Verdict, res.Reason = Skipped, "the run was given up"
		if errors.Is(context.Cause(ctx), errLost) {
			res.Reason = errLost.Error()
		}
	case roles&run.role == 0:
		res.Verdict, res.Reason = Skipped, fmt.Sprintf("the target can't be had as %s: see --listen", run.role)
	case opts.Spare && run.c.harms(run.role):
		res.Verdict, res.Reason = Skipped, "it is spared: "+run.c.Harm
	case run.c.lacks(r.Profile.LLP()) != "":
		res.Verdict, res.Reason = Skipped, run.c.lacks(r.Profile.LLP())
	case run.c.Needs&^needs != 0:
		res.Verdict = Skipped
		res.Reason = fmt.Sprintf("the profile %s does not offer %s", r.Profile.Name(), run.c.Needs&^needs)
	default:
		r.try(ctx, opts, run, &res)
	}
	res.failed = res.Verdict == Fail
	advise(opts, &res)
	res.Duration = time.Since(res.Began)
	return res
}

// advise lowers the failure of what the RFCs only advise, unless the run is strict.
func advise(opts Options, res *Result) {
	clause, ok := catalogue.Lookup(res.Clauses[0])
	if ok && res.Verdict == Fail && !clause.Level.Binding() && !opts.Strict {
		res.Verdict = Inconclusive
		res.Reason = fmt.Sprintf("the RFC says %s, and the target does not: %s", clause.Level, res.Reason)
	}
}

// try runs a case that can be run.
func (r *Runner) try(ctx context.Context, opts Options, run run, res *Result) {
	tape := wire.NewTape()
	t := &T{ctx: ctx, c: run.c, role: run.role, opts: opts, tape: tape, result: res, llp: r.Profile.LLP()}
	needs, _ := r.Profile.Offers()
	t.lasting = needs&NeedService == 0
	var pcap *recording
	if opts.PcapDir != "" {
		var err error
		if pcap, err = newRecording(opts.PcapDir, run.c.ID(), run.role); err != nil {
			res.Verdict, res.Reason = Inconclusive, fmt.Sprintf("the recording can't be begun: %v", err)
			return
		}
		t.record = pcap
	}
	done := make(chan struct{})
	go func() { // its own goroutine, as a case may end by runtime.Goexit
		defer close(done)
		defer t.end()
		session, err := r.Profile.Begin(ctx, tape)
		if err != nil {
			res.Verdict, res.Reason = Inconclusive, fmt.Sprintf("the target can't be reached: %v", err)
			tape.Look(false)
			return
		}
		t.session = session
		run.c.Run(t)
		if res.Verdict == 0 {
			res.Verdict = Pass
		}
	}()
	<-done
	t.observe()
	if pcap != nil {
		name, err := pcap.close()
		res.Pcap = name
		if err != nil && res.Verdict == Pass {
			res.Verdict, res.Reason = Inconclusive, fmt.Sprintf("the recording is not whole: %v", err)
		}
	}
	res.Exchange, _ = tape.Events()
}

// end closes what the case has opened. A panic is a fault of the tester, not of the
// target.
func (t *T) end() {
	if p := recover(); p != nil {
		t.result.Verdict, t.result.Reason = Inconclusive, fmt.Sprintf("the tester itself has failed: %v", p)
	}
	for _, c := range t.conns {
		if err := c.Close(); err != nil {
			t.Note("closing: %v", err)
		}
	}
	if t.session == nil {
		return
	}
	if err := t.session.Close(); err != nil {
		t.Note("ending the session: %v", err)
	}
}
