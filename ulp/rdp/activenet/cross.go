package activenet

import (
	"math/rand/v2"
	"time"
)

// A Cross is traffic that heeds nothing: bursts of packets at a rate, with pauses.
type Cross struct {
	Rate  int64         // bits per second, within a burst
	Bytes int           // of a packet, with all headers; 0: 1000
	On    time.Duration // mean length of a burst; 0: it never pauses
	Off   time.Duration // mean length of a pause
	Start time.Duration // when the first burst begins
	Fixed bool          // bursts and pauses are as long as their means, not exponentially distributed
}

const defaultCrossBytes = 1000

// Cross adds cross traffic from a node to another.
func (n *Network) Cross(from, to *Node, c Cross) error {
	path, err := n.path(from, to)
	if err != nil {
		return err
	}
	if c.Bytes <= 0 {
		c.Bytes = defaultCrossBytes
	}
	if c.Rate <= 0 || len(path) == 0 {
		return nil // nothing to send, or nowhere to
	}
	s := &crossSource{Cross: c, net: n, path: path, random: n.random(1<<32 + uint64(n.serial))}
	n.At(c.Start, s.burst)
	return nil
}

type crossSource struct {
	Cross
	net    *Network
	path   []*Link
	random *rand.Rand
	until  time.Duration // the end of the burst
}

// burst begins a burst.
func (s *crossSource) burst() {
	s.until = s.net.now + s.length(s.On)
	s.send()
}

func (s *crossSource) send() {
	if s.On > 0 && s.net.now >= s.until {
		s.net.After(s.length(s.Off), s.burst)
		return
	}
	s.net.inject(Packet{Bytes: s.Bytes}, s.path)
	s.net.After(max(1, time.Duration(int64(s.Bytes)*8*int64(time.Second)/s.Rate)), s.send)
}

// length returns how long a burst or pause is.
func (s *crossSource) length(mean time.Duration) time.Duration {
	if s.Fixed {
		return max(1, mean)
	}
	return max(1, time.Duration(s.random.ExpFloat64()*float64(mean)))
}
