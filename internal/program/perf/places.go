package perf

import "math/bits"

// Places are where messages arrive at one queue pair: places many, which are step
// bytes apart, one after the other and then from the first one on.
//
// RDMA Writes go a word further each. So the first word of a message stays there while
// later ones are written over the rest of it, and who receives can look whether each
// message has come: it is told now and then how many were sent (noteMark), looks, and
// says so (noteCredit). Messages that would be written over what it has not looked at
// wait for that. All but the first word of a message lie in nearly the same place, so
// that they stay in the cache if they fit.
//
// Over a layer that places segments out of order, messages lie apart: an earlier one could be written over a later one.
type places struct {
	count, step int
	marked      bool // what is written over is looked at before
}

// Bounds of how many places there are a word apart.
const (
	leastPlaces = 1 << 10
	fewPlaces   = 1 << 12 // of long messages
	mostPlaces  = 1 << 14 // of short ones, so that marks are rare
	longMessage = 4 << 10
	// separate is how many bytes a side may take for messages that lie apart.
	separate = 4 << 20
)

// places returns where the messages of a case arrive.
func (s *setup) places() places {
	switch {
	case s.Idle, s.Test == TestConnect, s.Op == OpAtomic, s.pingPong() && !s.Rated, s.Test == TestLatency && !s.Rated:
		return places{count: 1}
	case s.Op == OpSend: // where the receives say
		if n := s.recvs(); s.Apart || n*round64(s.Size)*s.QPs <= separate {
			return places{count: n, step: round64(s.Size)}
		}
		return places{count: 1}
	case s.Test == TestLatency: // several are outstanding, of which none waits for another
		return places{count: powerOfTwo(s.Depth), step: round64(s.Size)}
	}
	if s.Apart {
		return places{max(16, powerOfTwo(2*s.Depth)), round64(s.Size), true}
	}
	most := mostPlaces
	if s.Size >= longMessage {
		most = fewPlaces
	}
	n := max(leastPlaces, powerOfTwo(max(1, most/s.QPs)), powerOfTwo(4*s.Depth))
	return places{n, wordLen, true}
}

// recvs is how many receives an end has that is sent Sends.
func (s *setup) recvs() int { return 2*s.Depth + notes }

// powerOfTwo returns the least power of two that is n or more.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }

// round64 rounds up to multiples of 64, so that places share no line of the cache.
func round64(n int) int { return (n + 63) &^ 63 }

// of returns where message n arrives. Senders use it, so that count is a power of two;
// the places of Sends are those of receives.
func (p *places) of(n uint64) int { return int(n&uint64(p.count-1)) * p.step }

// overlap reports whether messages are written over each other.
func (p *places) overlap() bool { return p.marked }

// limit returns how many messages of some size may be sent, if so many were looked at:
// none that would be written over what was not.
func (p *places) limit(looked uint64, size int) uint64 {
	n := uint64(p.count)
	lap := (looked/n + 1) * n // in the same lap, nothing is written over what came before
	covers := uint64((size + p.step - 1) / p.step)
	if all := looked + n + 1; all > lap+covers {
		return all - covers
	}
	return lap
}

// mark returns the number of messages after which the next mark is due.
func (p *places) mark(sent uint64) uint64 {
	every := uint64(p.count / 4)
	return (sent/every + 1) * every
}
