//go:build race

package rxudp_test

const raceEnabled = true
