//go:build race

package rxrdma_test

const raceEnabled = true
