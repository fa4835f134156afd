package main

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// A verdict is what the tests say of a mutant.
type verdict struct {
	*mutant
	reached int    // tests that reach the mutant
	killer  string // the test that failed; empty if the mutant survives
	hangs   bool   // the tests did not end
}

func (v *verdict) killed() bool { return v.killer != "" }

// judgeAll judges mutants, some at a time, and tells the verdicts in the mutants' order.
func judgeAll(ctx context.Context, mutants []*mutant, tests []*test, o options, tell func(*verdict)) error {
	type outcome struct {
		*verdict
		err error
	}
	outcomes := make([]chan outcome, len(mutants))
	for i := range outcomes {
		outcomes[i] = make(chan outcome, 1)
	}
	var judges sync.WaitGroup
	defer judges.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var next atomic.Int64
	for range o.jobs {
		judges.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(mutants) {
					return
				}
				v, err := judge(ctx, mutants[i], tests, limit{o.grace, o.processor})
				outcomes[i] <- outcome{v, err}
				if err != nil {
					return
				}
			}
		})
	}
	for _, c := range outcomes {
		is := <-c
		if is.err != nil {
			return is.err
		}
		tell(is.verdict)
	}
	return nil
}

// judge runs the tests that reach a mutant until some fail. They may take ten times as
// long as without it, and grace: other programs slow tests down too, and a limit that is
// too short would count them as failed.
func judge(ctx context.Context, m *mutant, tests []*test, grace limit) (*verdict, error) {
	v := &verdict{mutant: m}
	var reaching []*test
	for _, t := range tests {
		if t.reaches[m.n] {
			reaching = append(reaching, t)
		}
	}
	v.reached = len(reaching)
	for _, batch := range batches(reaching) {
		by, failure, err := fails(batch, func(batch []*test, mutant int) (string, error) {
			limit := grace
			for _, t := range batch {
				limit.clock += 10 * t.took
				if limit.processor > 0 {
					limit.processor += 10 * t.took
				}
			}
			return batch[0].bin.run(ctx, batch, mutant, "", limit)
		}, m.n)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			continue
		}
		v.killer = by[0].name
		if len(by) > 1 {
			v.killer += " or another"
		}
		v.hangs = errors.Is(failure, errHangs)
		return v, nil
	}
	return v, nil
}

// A runner runs tests with a mutant, or without one if that is 0.
type runner func(tests []*test, mutant int) (out string, err error)

// fails reports which of the tests fail with a mutant, and how. It takes their word
// only if they fail twice, and pass without the mutant in between: a test may fail now
// and then, or run out of time while other programs keep the machine busy.
func fails(tests []*test, run runner, mutant int) (by []*test, failure, err error) {
	for range 3 {
		by = tests
		var was [3]error
		for i, n := range [...]int{mutant, 0, mutant} {
			var out string
			if out, was[i] = run(by, n); was[i] != nil && !isVerdict(was[i]) {
				return nil, nil, was[i]
			}
			if (was[i] == nil) != (n == 0) {
				break
			}
			if i == 0 {
				by = blamed(tests, out)
			}
			if i == len(was)-1 {
				return by, was[0], nil
			}
		}
		if was[0] == nil {
			return nil, nil, nil
		}
	}
	return nil, nil, nil
}

var (
	failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	begun  = regexp.MustCompile(`(?m)^=== RUN   (\w+)$`)
)

// blamed returns the test of which the output of a run says that it failed or, if none
// has, that it was begun last; or all tests, if it names none.
func blamed(tests []*test, out string) []*test {
	var name string
	if f := failed.FindStringSubmatch(out); f != nil {
		name = f[1]
	} else if all := begun.FindAllStringSubmatch(out, -1); all != nil {
		name = all[len(all)-1][1]
	}
	for i, t := range tests {
		if t.name == name {
			return tests[i : i+1]
		}
	}
	return tests
}

// batches divides tests into runs of one binary. The first ones are short: most
// mutants die there.
func batches(tests []*test) [][]*test {
	var out [][]*test
	var sum time.Duration
	limit := 200 * time.Millisecond
	for _, t := range tests {
		last := len(out) - 1
		if last < 0 || out[last][0].bin != t.bin || sum+t.took > limit {
			if last >= 0 {
				limit = min(4*limit, 10*time.Second)
			}
			out = append(out, nil)
			last, sum = last+1, 0
		}
		out[last] = append(out[last], t)
		sum += t.took
	}
	return out
}
