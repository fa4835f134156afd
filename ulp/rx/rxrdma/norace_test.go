//go:build !race

package rxrdma_test

const raceEnabled = false
