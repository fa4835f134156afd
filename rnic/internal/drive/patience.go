package drive

import "time"

// A patience is how long the watch waits for the next use of the role.
type patience struct {
	seen uint64        // uses, at the last look
	wait time.Duration // what it has learned to wait; below away it waits for away
}

// away is how long no program uses the role before the goroutine continues: longer than
// a program takes between two polls, shorter than a peer notices. If a program keeps
// coming back, the goroutine waits longer, up to longestAway: the program is not gone,
// but something else has its processor for a time slice (Go's scheduler preempts after
// 10 ms), and the goroutine would also compete for it.
const (
	away        = 100 * time.Microsecond
	longestAway = 100 * away
)

// Each time that a program has come back it is waited for growth times as long. Once it
// has not, the wait is cut by decay, so that the peers of a program that stays away time
// and again soon wait no longer than away, while one that was held up once is
// trusted again soon.
const (
	growth = 2
	decay  = 4
)

// A sight is what the watch sees.
type sight struct {
	free  bool   // no goroutine has the role
	posts bool   // a program that polls transmits
	uses  uint64 // so far
}

// A verdict is what the watch concludes.
type verdict uint8

const (
	rest     verdict = iota // a program has the role, or the goroutine: there is nothing to watch
	goOn                    // look again after time
	takeBack                // the program is away
)

// time is how long the watch waits until it looks.
func (p patience) time() time.Duration { return max(away, p.wait) }

// look judges what the watch sees, and learns from it how long to wait.
func (p patience) look(s sight) (patience, verdict) {
	switch {
	case !s.free:
		return p, rest
	case s.posts:
		return p, goOn
	case s.uses != p.seen:
		return patience{s.uses, min(growth*p.time(), longestAway)}, goOn
	}
	return patience{p.seen, p.wait / decay}, takeBack
}

// isSpinning judges spinPolls polls in vain, the first and the last of which were at these
// times, in ns.
func isSpinning(first, last int64) bool { return last-first < int64(away) }
