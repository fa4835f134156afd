package perf

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"urnic/internal/host/plural"
)

// A callSizes is the sizes of calls of a stream, in bytes.
type callSizes struct{ write, read int }

// A Try says how fast a stream over bare TCP was with calls of some sizes.
type Try struct {
	WriteSize int       `json:"write_size"`       // bytes of each call that sends
	ReadSize  int       `json:"read_size"`        // bytes of the buffer of each call that receives
	Median    float64   `json:"bytes_per_second"` // of the tries
	Samples   []float64 `json:"samples"`          // bytes a second of each try
}

func (t *Try) sizes() callSizes { return callSizes{t.WriteSize, t.ReadSize} }

// A calibration is the tries that decide which sizes of calls the batched baseline has,
// the fastest first.
type calibration struct{ tries []Try }

func (c *calibration) best() callSizes { return c.tries[0].sizes() }

// The sizes of calls that are tried, in all pairs.
var triedSizes = []int{64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20}

// always are the sizes that are tried at length whatever the short tries say of them: as
// a rule one of them is the fastest.
var always = []callSizes{{512 << 10, 512 << 10}, {1 << 20, 1 << 20}}

// How the sizes are tried: each pair once for a short time, then a few at length, by
// turns, so that a moment in which the machine is busy hits all of them.
const (
	defaultTry = 250 * time.Millisecond
	bestOnes   = 4
	tries      = 5
)

// calibrate finds the sizes of calls with which a stream is fastest, if a baseline needs
// them. Each try has connections of its own, which are as old as those of any other.
func (c *client) calibrate(ctx context.Context, s setup) error {
	if !c.Baseline || c.fastest[s.QPs] != nil {
		return nil
	}
	try := func(sizes callSizes, d time.Duration) (float64, error) {
		rate, err := c.try(ctx, streamSetup(s, sizes), d)
		if err != nil {
			return 0, fmt.Errorf("while the baseline was calibrated: %w", err)
		}
		return rate, nil
	}
	var all []Try
	for _, w := range triedSizes {
		for _, r := range triedSizes {
			sizes := callSizes{w, r}
			setup := streamSetup(s, sizes)
			if len(all) > 0 && setup.check(c.MaxMemory/4) != nil { // the queue pairs need some, too
				continue
			}
			rate, err := try(sizes, max(1, c.BaselineTry*2/5))
			if err != nil {
				return err
			}
			all = append(all, Try{WriteSize: w, ReadSize: r, Median: rate})
		}
	}
	chosen := finalists(all)
	for range tries {
		for i := range chosen {
			rate, err := try(chosen[i].sizes(), c.BaselineTry)
			if err != nil {
				return err
			}
			chosen[i].Samples = append(chosen[i].Samples, rate)
		}
	}
	if c.fastest == nil {
		c.fastest = map[int]*calibration{}
	}
	found := &calibration{tries: ranked(chosen)}
	c.fastest[s.QPs] = found
	c.report.Notes = append(c.report.Notes, found.note(s.QPs, c.BaselineTry))
	return nil
}

// try returns how many bytes a second go over new connections.
func (c *client) try(ctx context.Context, setup rawSetup, d time.Duration) (rate float64, err error) {
	set, err := c.openBare(ctx, setup)
	if err != nil {
		return 0, err
	}
	if _, _, err := set.stream(ctx, rawRound{Duration: d/4 + 1}); err != nil {
		return 0, err
	}
	octets, took, err := set.stream(ctx, rawRound{Duration: d})
	if err != nil {
		return 0, err
	}
	return float64(octets) / took.seconds, c.closeBares(ctx)
}

// finalists returns which sizes are tried at length, by what short tries say: the best
// ones, and those that always are.
func finalists(all []Try) []Try {
	sorted := ranked(all)
	var chosen []Try
	for i, t := range sorted {
		if i < bestOnes || slices.Contains(always, t.sizes()) {
			chosen = append(chosen, Try{WriteSize: t.WriteSize, ReadSize: t.ReadSize})
		}
	}
	return chosen
}

// ranked sorts tries by their medians, the fastest first, where samples make those.
func ranked(all []Try) []Try {
	sorted := slices.Clone(all)
	for i := range sorted {
		if len(sorted[i].Samples) > 0 {
			sorted[i].Median = median(sorted[i].Samples)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Try) int { return cmp.Compare(b.Median, a.Median) })
	return sorted
}

// note says what came of the tries.
func (c *calibration) note(conns int, d time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "call sizes of batched TCP (write/read, MB/s: median and range of %d tries of %v", tries, d)
	if conns > 1 {
		fmt.Fprintf(&b, ", %s", plural.Count(conns, "connection"))
	}
	b.WriteString("):")
	for i, t := range c.tries {
		fmt.Fprintf(&b, " %s/%s %s (%s to %s)", sizeText(t.WriteSize), sizeText(t.ReadSize),
			megabytes(t.Median), megabytes(slices.Min(t.Samples)), megabytes(slices.Max(t.Samples)))
		switch {
		case i == 0:
			b.WriteString(", taken;")
		case i < len(c.tries)-1:
			b.WriteString(",")
		}
	}
	return strings.TrimSuffix(b.String(), ";")
}
