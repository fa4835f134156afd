package mpa

import (
	"sync/atomic"

	"urnic/internal/test/simnet"
)

// A stingy stream takes so many bytes with a write, and none with every second
// one that does not wait.
type stingy struct {
	*simnet.Conn
	take int
	took bool
}

func (s *stingy) Writev(pieces [][]byte, wait bool) (int, error) {
	if s.took = !s.took; !s.took && !wait {
		return 0, nil
	}
	left := s.take
	var cut [][]byte
	for _, p := range pieces {
		k := min(len(p), left)
		cut = append(cut, p[:k])
		left -= k
	}
	return s.Conn.Writev(cut, wait)
}

// A watched stream shows the pieces of each write, while they are whole.
type watched struct {
	*simnet.Conn
	writes int
	watch  func(pieces [][]byte)
}

func (w *watched) Writev(pieces [][]byte, wait bool) (int, error) {
	w.writes++
	if w.watch != nil {
		w.watch(pieces)
	}
	return w.Conn.Writev(pieces, wait)
}

// A sized stream has a segment size that changes.
type sized struct {
	*simnet.Conn
	mss atomic.Int64
}

func (s *sized) MSS() int { return int(s.mss.Load()) }
