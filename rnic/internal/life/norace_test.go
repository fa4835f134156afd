//go:build !race

package life

const raceEnabled = false
