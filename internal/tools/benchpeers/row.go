package main

import (
	"errors"
	"fmt"
)

// A row is a row of the page: a figure of ours, most often beside another one.
type row struct {
	what   string
	target target
	take   func(r round) (sample, error)
}

// A sample is what one round makes of a row.
type sample struct {
	value        float64 // what the target is about: most often a ratio
	ours, theirs float64
	oursText     func(float64) string
	theirsText   func(float64) string // nil if there is nothing beside ours
}

// A target is what must hold of the median.
type target struct {
	atMost bool
	value  float64
	none   bool                 // the row is there to be looked at
	write  func(float64) string // how values are written
	label  string               // the target itself, if it is not written as they are
}

func atLeast(v float64) target { return target{value: v, write: ratioText} }
func atMost(v float64) target  { return target{value: v, write: ratioText, atMost: true} }

// in returns the target with values of another kind than a ratio.
func (t target) in(m metric) target {
	t.write = m.text
	return t
}

var noTarget = target{none: true, write: ratioText}

// holds reports whether a value meets the target.
func (t target) holds(v float64) bool {
	switch {
	case t.none:
		return true
	case t.atMost:
		return v <= t.value
	}
	return v >= t.value
}

// String is the target as the page has it.
func (t target) String() string {
	switch {
	case t.none:
		return "–"
	case t.label != "":
		return t.label
	case t.atMost:
		return "≤ " + t.write(t.value)
	}
	return "≥ " + t.write(t.value)
}

// errNotRun says that a contest was not wanted in this run.
var errNotRun = errors.New("not run")

// readings returns what a contest measured in a round.
func (r round) readings(name string) ([]reading, error) {
	o, ran := r[name]
	switch {
	case !ran:
		return nil, errNotRun
	case o.Error != "":
		return nil, fmt.Errorf("%s: %s", name, o.Error)
	case len(o.Readings) == 0:
		return nil, fmt.Errorf("%s: no readings", name)
	}
	return o.Readings, nil
}

// figure returns one figure of a contest's first reading.
func (r round) figure(name string, m metric) (float64, error) {
	readings, err := r.readings(name)
	if err != nil {
		return 0, err
	}
	if v := m.of(readings[0]); v > 0 {
		return v, nil
	}
	return 0, fmt.Errorf("%s: the run does not say its %s", name, m.name)
}

// toRaw compares a contest of ours with raw TCP, by the ratio that urnic perf
// has made of the two in the same run.
func toRaw(name string, m metric) func(round) (sample, error) {
	return func(r round) (sample, error) {
		ours, err := r.figure(name, m)
		if err != nil {
			return sample{}, err
		}
		got := r[name].Readings[0]
		if got.Ratio <= 0 || got.Baseline == nil || m.of(*got.Baseline) <= 0 {
			return sample{}, fmt.Errorf("%s: the run does not say the %s of raw TCP", name, m.name)
		}
		return sample{got.Ratio, ours, m.of(*got.Baseline), m.text, m.text}, nil
	}
}

// toStream compares a contest of ours with a stream of raw TCP of some kind, as toRaw does.
func toStream(name, kind string, m metric) func(round) (sample, error) {
	return func(r round) (sample, error) {
		ours, err := r.figure(name, m)
		if err != nil {
			return sample{}, err
		}
		streams := r[name].Readings[0].Streams
		if streams == nil { // by a urnic that had one baseline only
			return sample{}, errNotRun
		}
		got, there := streams[kind]
		if !there || got.Ratio <= 0 || m.of(got.reading) <= 0 {
			return sample{}, fmt.Errorf("%s: the run does not say the %s of %s raw TCP", name, m.name, kind)
		}
		return sample{got.Ratio, ours, m.of(got.reading), m.text, m.text}, nil
	}
}

// toPeer compares a contest of ours with one of a peer's.
func toPeer(ours, theirs string, m metric) func(round) (sample, error) {
	return func(r round) (sample, error) {
		a, errA := r.figure(ours, m)
		b, errB := r.figure(theirs, m)
		if err := errors.Join(errA, errB); err != nil {
			return sample{}, err
		}
		return sample{a / b, a, b, m.text, m.text}, nil
	}
}

// alone takes a figure of ours as it is.
func alone(name string, m metric) func(round) (sample, error) {
	return func(r round) (sample, error) {
		v, err := r.figure(name, m)
		return sample{v, v, 0, m.text, nil}, err
	}
}

// rawTo compares raw TCP, as urnic perf measures it beside a contest, with a
// peer: whether it is a baseline to be proud of.
func rawTo(ours, theirs string, m metric) func(round) (sample, error) {
	return func(r round) (sample, error) {
		raw, errA := toRaw(ours, m)(r)
		b, errB := r.figure(theirs, m)
		if err := errors.Join(errA, errB); err != nil {
			return sample{}, err
		}
		return sample{raw.theirs / b, raw.theirs, b, m.text, m.text}, nil
	}
}

// scaling compares the results of a contest with several numbers of QPs: that of
// the most with that of one.
func scaling(name string, most int) func(round) (sample, error) {
	return func(r round) (sample, error) {
		readings, err := r.readings(name)
		if err != nil {
			return sample{}, err
		}
		by := map[int]float64{}
		for _, got := range readings {
			by[got.QPs] = got.BytesPerSecond
		}
		if by[1] <= 0 || by[most] <= 0 {
			return sample{}, fmt.Errorf("%s: the run does not say the bandwidth of 1 and of %d QPs", name, most)
		}
		return sample{by[most] / by[1], by[most], by[1], bytesText, bytesText}, nil
	}
}

// allocations takes the most that any of the contests has allocated per work
// request.
func allocations(names ...string) func(round) (sample, error) {
	return func(r round) (sample, error) {
		most := 0.0
		for _, name := range names {
			readings, err := r.readings(name)
			if err != nil {
				return sample{}, err
			}
			for _, got := range readings {
				if got.AllocsPerOp == nil {
					return sample{}, fmt.Errorf("%s: the run does not say its allocations", name)
				}
				most = max(most, *got.AllocsPerOp)
			}
		}
		return sample{most, most, 0, allocsText, nil}, nil
	}
}
