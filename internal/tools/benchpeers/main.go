package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options are the arguments.
type options struct {
	rounds   int
	duration time.Duration
	try      time.Duration
	repeat   int
	out      string
	only     *regexp.Regexp
	urnic    string
	render   bool
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	only := ""
	f := flag.NewFlagSet("benchpeers", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&o.rounds, "rounds", 7, "how many times each contest runs")
	f.DurationVar(&o.duration, "duration", time.Second, "how long a run is to take")
	f.DurationVar(&o.try, "baseline-try", 0, "how long urnic perf tries each size of calls of its baseline (urnic's default)")
	f.IntVar(&o.repeat, "repeat", 2, "how often at most a run is repeated during which others kept the processors busy")
	f.StringVar(&o.out, "out", "docs/performance.md", "the page; its plots and results go into the directory of the same name")
	f.StringVar(&only, "only", "", "run only the contests and plots whose names match this regular expression, in any case")
	f.StringVar(&o.urnic, "urnic", "bin/urnic", "our own program")
	f.BoolVar(&o.render, "render", false, "measure nothing: write the page anew from the results beside it")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile("(?i)" + only); err != nil {
		return o, fmt.Errorf("--only: %w", err)
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is not expected: all arguments are flags", f.Arg(0))
	case o.rounds < 1:
		return o, fmt.Errorf("--rounds %d: say 1 or more", o.rounds)
	case o.repeat < 0:
		return o, fmt.Errorf("--repeat %d: say 0 or more", o.repeat)
	case o.duration < 10*time.Millisecond:
		return o, fmt.Errorf("--duration %v: say 10ms or more", o.duration)
	case o.try < 0:
		return o, fmt.Errorf("--baseline-try %v: say 0 or more", o.try)
	case filepath.Ext(o.out) != ".md":
		return o, fmt.Errorf("--out %s: say a file that ends in .md", o.out)
	}
	return o, nil
}

// dir is where what belongs to the page goes.
func (o options) dir() string { return strings.TrimSuffix(o.out, ".md") }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "benchpeers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stderr io.Writer) error {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return err
	}
	urnic.binary = o.urnic
	if err := os.MkdirAll(o.dir(), 0o777); err != nil {
		return err
	}
	t, err := o.tally(ctx, stderr)
	if err != nil {
		return err
	}
	page, err := t.page(filepath.Base(o.dir()))
	if err == nil {
		err = os.WriteFile(o.out, page, 0o666)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(stderr, "wrote %s: %s\n", o.out, t.summary())
	return t.failed()
}

// tally measures, or reads what has been measured.
func (o options) tally(ctx context.Context, stderr io.Writer) (t tally, err error) {
	results := filepath.Join(o.dir(), "results.json")
	if o.render {
		b, err := os.ReadFile(results)
		if err != nil {
			return t, err
		}
		return t, json.Unmarshal(b, &t)
	}
	if t, err = o.measure(ctx, stderr); err != nil {
		return t, err
	}
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return t, err
	}
	return t, os.WriteFile(results, append(b, '\n'), 0o666)
}

// measure runs all that was asked for.
func (o options) measure(ctx context.Context, stderr io.Writer) (tally, error) {
	r := &racer{log: stderr, duration: o.duration, try: o.try, repeat: o.repeat, missing: map[string]string{}}
	for _, c := range contests {
		if o.only.MatchString(c.name) {
			r.wanted = append(r.wanted, c)
		}
	}
	if len(r.wanted) == 0 && !slices.ContainsFunc(plots, func(p plot) bool { return o.only.MatchString(p.name()) }) {
		return tally{}, fmt.Errorf("--only: nothing is called that; there are %s", names())
	}
	t := tally{Duration: o.duration.String(), Versions: map[string]string{}, Missing: r.missing}
	r.meet(ctx, t.Versions)
	t.Machine = thisMachine(time.Now())
	r.prepare(ctx)
	t.Commands = r.commands()
	for i := range o.rounds {
		t.Rounds = append(t.Rounds, r.run(ctx, fmt.Sprintf("%d/%d", i+1, o.rounds)))
		if err := context.Cause(ctx); err != nil {
			return t, err
		}
	}
	t.Plots = r.draw(ctx, o.dir(), o.only)
	return t, context.Cause(ctx)
}

// meet installs the peers that are wanted and asks for their versions.
func (r *racer) meet(ctx context.Context, versions map[string]string) {
	wanted := map[*program]bool{}
	for _, c := range r.wanted {
		wanted[c.by] = true
	}
	delete(wanted, urnic)
	installed := install(ctx, r.log, slices.Collect(maps.Keys(wanted)))
	for _, p := range peers {
		if !wanted[p] {
			versions[p.name] = errNotRun.Error()
			continue
		}
		v, err := p.ask(ctx)
		if err != nil {
			r.missing[p.name] = errors.Join(err, installed).Error()
		}
		versions[p.name] = v
	}
}

// names lists the contests and plots.
func names() string {
	var out []string
	for _, c := range contests {
		out = append(out, c.name)
	}
	for _, p := range plots {
		out = append(out, p.name())
	}
	return strings.Join(out, "; ")
}

// failed returns an error if a run has failed: the page says which.
func (t tally) failed() error {
	n := len(failures(t.Rounds))
	for _, p := range t.Plots {
		if p.Error != "" {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%d errors; they stand on the page", n)
	}
	return nil
}
