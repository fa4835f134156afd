//go:build !race

package machine

const raceEnabled = false

const stride = 1
