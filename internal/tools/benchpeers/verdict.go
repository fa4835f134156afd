package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A verdict is a row with what all rounds made of it, in words.
type verdict struct {
	What, Target, Median, Range, Ours, Theirs, Held string

	Errors []string // of the rounds that made nothing of it
}

// judge makes a verdict of a row. A round that failed makes it an error, even if
// the median of the others would do.
func judge(r row, rounds []round) verdict {
	var samples []sample
	v := verdict{What: r.what}
	for i, rd := range rounds {
		s, err := r.take(rd)
		switch {
		case errors.Is(err, errNotRun):
		case err != nil:
			v.Errors = append(v.Errors, fmt.Sprintf("round %d: %v", i+1, err))
		default:
			samples = append(samples, s)
		}
	}
	v.fill(r.target, samples)
	switch {
	case len(v.Errors) > 0:
		v.Held = fmt.Sprintf("**error** in %d of %d rounds", len(v.Errors), len(rounds))
	case len(samples) == 0:
		v.Held = "not run"
	case r.target.none:
		v.Held = "–"
	case r.target.holds(spreadOf(values(samples)).Median):
		v.Held = "met"
	default:
		v.Held = "**not met**"
	}
	return v
}

// values returns what the samples say of the target.
func values(samples []sample) []float64 {
	return column(samples, func(s sample) float64 { return s.value })
}

func column(samples []sample, of func(sample) float64) []float64 {
	var out []float64
	for _, s := range samples {
		out = append(out, of(s))
	}
	return out
}

// fill writes the figures.
func (v *verdict) fill(t target, samples []sample) {
	v.Target, v.Median, v.Range, v.Ours, v.Theirs = t.String(), "–", "–", "–", "–"
	if len(samples) == 0 {
		return
	}
	first := samples[0]
	got := spreadOf(values(samples))
	v.Median = t.write(got.Median)
	v.Range = t.write(got.Min) + " … " + t.write(got.Max)
	v.Ours = first.oursText(median(column(samples, func(s sample) float64 { return s.ours })))
	if first.theirsText != nil {
		v.Theirs = first.theirsText(median(column(samples, func(s sample) float64 { return s.theirs })))
	}
}

// judgeAll makes verdicts of rows.
func judgeAll(rows []row, rounds []round) []verdict {
	var out []verdict
	for _, r := range rows {
		out = append(out, judge(r, rounds))
	}
	return out
}

// summary counts what became of the goals.
func (t tally) summary() string {
	count := map[string]int{}
	for _, v := range judgeAll(goals, t.Rounds) {
		if len(v.Errors) > 0 {
			v.Held = "in error"
		}
		count[strings.Trim(v.Held, "*")]++
	}
	var parts []string
	for _, held := range []string{"met", "not met", "in error", "not run"} {
		if count[held] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[held], held))
		}
	}
	return strings.Join(parts, ", ")
}

// failures lists the errors of the rounds once each, with the contest's name and
// the rounds that had them.
func failures(rounds []round) []string {
	in := map[string][]int{}
	var order []string
	for i, rd := range rounds {
		for _, c := range contests {
			if o := rd[c.name]; o.Error != "" {
				text := c.name + ": " + o.Error
				if !slices.Contains(order, text) {
					order = append(order, text)
				}
				in[text] = append(in[text], i+1)
			}
		}
	}
	for i, text := range order {
		order[i] = fmt.Sprintf("%s (%s)", text, roundsText(in[text], len(rounds)))
	}
	return order
}

func roundsText(in []int, of int) string {
	if len(in) == of {
		return "every round"
	}
	return fmt.Sprintf("%d of %d rounds", len(in), of)
}
