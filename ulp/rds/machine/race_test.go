//go:build race

package machine

const raceEnabled = true

// stride is how many steps apart faults are: the race detector takes its time.
const stride = 10
