package drive

import (
	"sync/atomic"
	"time"
)

// spinPolls is how many polls in vain, within away, show that a program spins: so many
// fill the time. A few may be those of one that has other work to do in between, and would
// leave the role to the watch each time.
const spinPolls = 32

// A spin counts polls in vain in a row.
type spin struct {
	polls atomic.Uint32
	since atomic.Int64 // the first of each spinPolls of them, in ns
}

// inVain notes a poll in vain, and reports whether the program does little else.
func (s *spin) inVain() bool {
	switch s.polls.Add(1) % spinPolls {
	case 1:
		s.since.Store(time.Now().UnixNano())
	case 0:
		return isSpinning(s.since.Load(), time.Now().UnixNano())
	}
	return false
}

func (s *spin) found() {
	if s.polls.Load() != 0 {
		s.polls.Store(0)
	}
}
