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

// judge runs the tests that reach a mutant until one fails. They may take ten times as
// long as without it, and grace: other programs slow tests down too, and a
// limit that is too short would count them as failed.
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
		var took time.Duration
		for _, t := range batch {
			took += t.took
		}
		out, err := batch[0].bin.run(ctx, batch, m.n, "", grace+10*took)
		if err == nil {
			continue
		}
		if !isVerdict(err) {
			return nil, err
		}
		v.killer = batch[0].name
		if len(batch) > 1 {
			v.killer += " or another"
		}
		if f := failed.FindStringSubmatch(out); f != nil {
			v.killer = f[1]
		}
		v.hangs = errors.Is(err, errHangs)
		return v, nil
	}
	return v, nil
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
