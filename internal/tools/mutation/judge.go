package main

import (
	"context"
	"errors"
	"regexp"
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

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)

// judge runs the tests that reach a mutant until some fail. They may take ten times as
// long as without it, and grace: other programs slow tests down too, and a limit that is
// too short would count them as failed.
func judge(ctx context.Context, m *mutant, tests []*test, grace time.Duration) (*verdict, error) {
	v := &verdict{mutant: m}
	var reaching []*test
	for _, t := range tests {
		if t.reaches[m.n] {
			reaching = append(reaching, t)
		}
	}
	v.reached = len(reaching)
	for _, batch := range batches(reaching) {
		limit := grace
		for _, t := range batch {
			limit += 10 * t.took
		}
		out, failure, err := fails(batch, func(batch []*test, mutant int) (string, error) {
			return batch[0].bin.run(ctx, batch, mutant, "", limit)
		}, m.n)
		if err != nil {
			return nil, err
		}
		if failure == nil {
			continue
		}
		v.killer = batch[0].name
		if len(batch) > 1 {
			v.killer += " or another"
		}
		if f := failed.FindStringSubmatch(out); f != nil {
			v.killer = f[1]
		}
		v.hangs = errors.Is(failure, errHangs)
		return v, nil
	}
	return v, nil
}

// A runner runs tests with a mutant, or without one if that is 0.
type runner func(tests []*test, mutant int) (out string, err error)

// fails reports why tests fail with a mutant, and what they print. It takes their word
// only if they fail twice, and pass without the mutant in between: a test may fail now
// and then, or run out of time while other programs keep the machine busy.
func fails(tests []*test, run runner, mutant int) (out string, failure, err error) {
	for range 3 {
		var was [3]error
		for i, n := range [...]int{mutant, 0, mutant} {
			var said string
			if said, was[i] = run(tests, n); was[i] != nil && !isVerdict(was[i]) {
				return "", nil, was[i]
			}
			if i == 0 {
				out = said
			}
			if (was[i] == nil) != (n == 0) {
				break
			}
			if i == len(was)-1 {
				return out, was[0], nil
			}
		}
		if was[0] == nil {
			return "", nil, nil
		}
	}
	return "", nil, nil
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
