package perf

import "slices"

// median returns the middle value, or the mean of the two in the middle; 0 if
// there are none.
func median(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	if n%2 > 0 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

func sum(values []float64) (s float64) {
	for _, v := range values {
		s += v
	}
	return s
}
