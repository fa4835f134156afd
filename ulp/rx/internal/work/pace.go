package work

import "time"

// short is how long a handler may take that has whoever offers its calls do nothing else.
const short = 30 * time.Microsecond

// A pace says whether a service's handlers are brief, from how long they have taken.
type pace struct {
	pause int // calls that go to workers once a handler was not brief
	left  int // of them
}

const (
	firstPause = 16
	mostPause  = 4096
)

// brief reports whether the next call may be carried out by whoever offers it.
func (p *pace) brief() bool {
	if p.left > 0 {
		p.left--
		return false
	}
	return true
}

// took notes how long such a call has taken.
func (p *pace) took(d time.Duration) {
	if d <= short {
		p.pause -= (p.pause + 31) / 32 // one long call among many is no reason
		return
	}
	p.pause = min(max(2*p.pause, firstPause), mostPause)
	p.left = p.pause
}
