//go:build race

package rdpstream

const raceEnabled = true
