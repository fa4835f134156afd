package rxudp

import (
	"runtime"
	"time"
)

// budget is how long a goroutine tries to receive before it waits. It is about what it takes
// to wake two threads: a peer that has gone to sleep is not waited for in vain when both
// begin to spin.
const budget = 100 * time.Microsecond

// A spinner says whether it pays to try again and again before one waits. Each time that it
// does not, more waits pass until it is tried again.
type spinner struct {
	pause int // waits that pass once a spin was in vain
	left  int // of them
}

const mostPause = 255

// several reports whether the peer may be running while a goroutine spins.
var several = runtime.NumCPU() > 1

// worth reports whether to spin for what comes next.
func (s *spinner) worth() bool { return several && s.due() }

// due reports whether the waits have passed that follow spins in vain, and counts one more.
func (s *spinner) due() bool {
	if s.left > 0 {
		s.left--
		return false
	}
	return true
}

// won notes that a spin has paid.
func (s *spinner) won() { s.pause /= 2 }

// lost notes that a spin was in vain.
func (s *spinner) lost() {
	s.pause = min(2*s.pause+1, mostPause)
	s.left = s.pause
}
