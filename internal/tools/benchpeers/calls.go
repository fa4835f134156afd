package main

import (
	"fmt"
	"slices"
	"strings"
)

// A callsView says of a contest which sizes of calls raw TCP had that batches, and how far
// the tries were apart that decided for them.
type callsView struct{ Name, Sizes, Range string }

// callsOf returns that of all contests which have such a baseline.
func callsOf(rounds []round) []callsView {
	var out []callsView
	for _, c := range contests {
		var sizes []string
		count := map[string]int{}
		var tries []float64
		for _, r := range rounds {
			for _, got := range r[c.name].Readings[:min(1, len(r[c.name].Readings))] {
				s, there := got.Streams[batched]
				if !there || s.Fastest <= 0 {
					continue
				}
				text := fmt.Sprintf("%d/%d KiB", s.WriteSize>>10, s.ReadSize>>10)
				if count[text]++; count[text] == 1 {
					sizes = append(sizes, text)
				}
				tries = append(tries, s.Slowest, s.Fastest)
			}
		}
		if len(tries) == 0 {
			continue
		}
		slices.SortStableFunc(sizes, func(a, b string) int { return count[b] - count[a] })
		for i, s := range sizes {
			sizes[i] = fmt.Sprintf("%s (%d)", s, count[s])
		}
		out = append(out, callsView{c.name, strings.Join(sizes, ", "), bytesText(slices.Min(tries)) + " … " + bytesText(slices.Max(tries))})
	}
	return out
}
