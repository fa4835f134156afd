//go:build race

package rdp

const raceEnabled = true
