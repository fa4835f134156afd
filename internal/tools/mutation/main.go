package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := command(ctx, ".", os.Args[1:], os.Stdout)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutation:", err)
	}
	stop()
	os.Exit(status)
}

// options are the flags.
type options struct {
	tests     string
	table     string
	only      string
	sample    int
	seed      uint64
	jobs      int
	grace     time.Duration
	processor time.Duration
	under     time.Duration
	list      bool
	rows      bool
	killed    bool
}

// command measures a package; dir is where patterns and paths count. It returns
// the exit status.
func command(ctx context.Context, dir string, args []string, out io.Writer) (int, error) {
	var o options
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.StringVar(&o.tests, "tests", "", "run the tests of these `packages`, with commas between them (the package's own)")
	flags.StringVar(&o.table, "table", "docs/mutation.md", "the `page` that explains mutants, relative to the module")
	flags.StringVar(&o.only, "only", "", "run only mutants that a regular `expression` matches, as in 'conn.go:.*Close'")
	flags.IntVar(&o.sample, "sample", 0, "run only this `number` of mutants, chosen by -seed")
	flags.Uint64Var(&o.seed, "seed", 1, "the `number` that chooses the sample")
	flags.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "judge this `number` of mutants at a time")
	flags.DurationVar(&o.grace, "grace", 5*time.Second, "the `time` that tests may take in addition to ten times what they take without a mutant")
	flags.DurationVar(&o.processor, "processor", 0, "the `time` of the processor that tests may take in addition to that, if not 0: for machines that other programs keep busy")
	flags.DurationVar(&o.under, "under", 0, "run only tests that take less than this `time` without a mutant (all)")
	flags.BoolVar(&o.list, "list", false, "list the mutants, and run nothing")
	flags.BoolVar(&o.rows, "rows", false, "print surviving mutants as rows of the table")
	flags.BoolVar(&o.killed, "killed", false, "print killed mutants too, with the tests that kill them")
	if err := flags.Parse(args); err != nil {
		return 2, err
	}
	if flags.NArg() != 1 {
		return 2, errors.New("name one package, as in ./ddp")
	}
	if o.jobs < 1 {
		return 2, errors.New("-jobs takes 1 or more")
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return 2, err
	}

	p, err := load(dir, flags.Arg(0))
	if err != nil {
		return 2, err
	}
	mutants, files, err := instrument(p)
	if err != nil {
		return 2, err
	}
	rel, err := filepath.Rel(p.root, p.dir)
	if err != nil {
		return 2, err
	}
	rows, err := readTable(filepath.Join(p.root, o.table), filepath.ToSlash(rel))
	if err != nil {
		return 2, err
	}
	r := &report{pkg: p.path, options: o, out: out, rows: rows, all: len(mutants)}
	r.exists(mutants)
	mutants = choose(mutants, only, o)
	if o.list {
		for _, m := range mutants {
			fmt.Fprintln(out, m)
		}
		return 0, nil
	}
	if err := r.run(ctx, p, files, mutants); err != nil {
		return 2, err
	}
	return r.finish(), nil
}

// choose returns the mutants that are run.
func choose(mutants []*mutant, only *regexp.Regexp, o options) []*mutant {
	mutants = slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return !only.MatchString(m.String()) })
	if o.sample == 0 || o.sample >= len(mutants) {
		return mutants
	}
	rng := rand.New(rand.NewPCG(o.seed, 0))
	rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
	mutants = mutants[:o.sample]
	slices.SortFunc(mutants, func(a, b *mutant) int { return a.n - b.n })
	return mutants
}

// A report counts verdicts and prints them.
type report struct {
	pkg                                           string
	options                                       options
	out                                           io.Writer
	rows                                          map[key]*row
	all                                           int
	count, killed, hung, explained, alive, unseen int
	stale                                         int
}

// run builds the tests, and judges each mutant.
func (r *report) run(ctx context.Context, p *pkg, files map[string]string, mutants []*mutant) error {
	tmp, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // what is left is in a directory for that
	pkgs := []string{p.path}
	if r.options.tests != "" {
		pkgs = strings.Split(r.options.tests, ",")
	}
	bins, err := build(ctx, p, files, pkgs, tmp)
	if err != nil {
		return err
	}
	tests, failing, err := measure(ctx, bins, tmp)
	if err != nil {
		return err
	}
	if o := r.options; o.under > 0 {
		tests = slices.DeleteFunc(tests, func(t *test) bool { return t.took >= o.under })
	}
	if len(tests) == 0 {
		return errors.New("no test passes without a mutant")
	}
	for _, name := range failing {
		fmt.Fprintf(r.out, "left out: %s fails without a mutant\n", name)
	}
	fmt.Fprintf(r.out, "%s: %d mutants, of which %d are run; %d tests\n", r.pkg, r.all, len(mutants), len(tests))
	told := time.Now()
	return judgeAll(ctx, mutants, tests, r.options, func(v *verdict) {
		r.add(v)
		if time.Since(told) > time.Minute {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%s: %d of %d mutants\n", r.pkg, r.count, len(mutants))
		}
	})
}

// exists reports the rows of the table that name no mutant.
func (r *report) exists(mutants []*mutant) {
	have := map[key]bool{}
	for _, m := range mutants {
		have[m.key()] = true
	}
	for k, row := range r.rows {
		if !have[k] {
			r.stale++
			fmt.Fprintf(r.out, "stale: %s:%d names a mutant that does not exist: %s %s: %s\n", r.options.table, row.line, k.file, k.fn, k.change)
		}
	}
}

// add counts a verdict.
func (r *report) add(v *verdict) {
	r.count++
	row := r.rows[v.key()]
	switch {
	case v.killed() && row != nil:
		r.stale++
		fmt.Fprintf(r.out, "stale: %s:%d explains a mutant that %s kills: %s\n", r.options.table, row.line, v.killer, v.mutant)
		fallthrough
	case v.killed():
		r.killed++
		if v.hangs {
			r.hung++
		}
		if r.options.killed {
			fmt.Fprintf(r.out, "killed by %s: %s\n", v.killer, v.mutant)
		}
	case row != nil:
		r.explained++
	default:
		r.alive++
		if v.reached == 0 {
			r.unseen++
		}
		if r.options.rows {
			fmt.Fprintln(r.out, v.key().markdown())
			return
		}
		fmt.Fprintf(r.out, "survives %d tests: %s\n", v.reached, v.mutant)
	}
}

// finish prints the sum, and returns the exit status.
func (r *report) finish() int {
	score := 100.0
	if n := r.count - r.explained; n > 0 {
		score = 100 * float64(r.killed) / float64(n)
	}
	fmt.Fprintf(r.out, "%s: %d of %d mutants run: %d killed (%d of them by the time limit), %d explained, %d survive (%d of them reached by no test): score %.1f %%\n",
		r.pkg, r.count, r.all, r.killed, r.hung, r.explained, r.alive, r.unseen, score)
	if r.alive > 0 || r.stale > 0 {
		return 1
	}
	return 0
}
