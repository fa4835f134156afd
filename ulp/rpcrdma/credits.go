package rpcrdma

import (
	"context"
	"sync"
)

// A share is an amount of something that many want parts of, first come, first served:
// the credits of a connection, bytes of memory, places in a send queue.
type share struct {
	mu     sync.Mutex
	limit  int
	used   int
	first  *waiter
	last   *waiter
	closed error
}

type waiter struct {
	n    int
	got  chan struct{}
	next *waiter
}

// take takes n when it is their turn. More than there can ever be are had once nobody
// else has any. It returns the context's error, or what the share was closed with.
func (s *share) take(ctx context.Context, n int) error {
	s.mu.Lock()
	if s.closed != nil {
		defer s.mu.Unlock()
		return s.closed
	}
	if s.first == nil && (s.used == 0 || s.used+n <= s.limit) {
		s.used += n
		s.mu.Unlock()
		return nil
	}
	w := &waiter{n: n, got: make(chan struct{})}
	if s.last == nil {
		s.first = w
	} else {
		s.last.next = w
	}
	s.last = w
	s.mu.Unlock()
	select {
	case <-w.got:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case w.n < 0:
		return s.closed
	case s.remove(w): // else it was its turn at the same time
		s.serve() // those behind may want less
		return context.Cause(ctx)
	}
	return nil
}

// remove takes a waiter out of the queue. It reports whether it was there. The caller
// holds mu.
func (s *share) remove(w *waiter) bool {
	var before *waiter
	for x := s.first; x != nil; before, x = x, x.next {
		if x != w {
			continue
		}
		if before == nil {
			s.first = w.next
		} else {
			before.next = w.next
		}
		if s.last == w {
			s.last = before
		}
		return true
	}
	return false
}

// serve gives those in front of the queue what is there. The caller holds mu.
func (s *share) serve() {
	for w := s.first; w != nil && (s.used == 0 || s.used+w.n <= s.limit); w = s.first {
		if s.first = w.next; s.first == nil {
			s.last = nil
		}
		s.used += w.n
		close(w.got)
	}
}

// give gives n back.
func (s *share) give(n int) {
	s.mu.Lock()
	s.used -= n
	s.serve()
	s.mu.Unlock()
}

// waiting returns how many wait.
func (s *share) waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := s.first; w != nil; w = w.next {
		n++
	}
	return n
}

// close lets nobody take anything any more.
func (s *share) close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return
	}
	s.closed = err
	for w := s.first; w != nil; w = w.next {
		w.n = -1
		close(w.got)
	}
	s.first, s.last = nil, nil
}

// credits are what a requester may send (RFC 8166 §3.3.1): as many calls as it asks for
// and the responder grants, and one before the first reply (§3.3.3).
type credits struct {
	share
	asked, granted int // under share.mu
}

func (c *credits) init(asked int) { c.asked, c.granted, c.limit = asked, 1, 1 }

// grant notes what the responder grants. Nothing is none of its choices, "since such a
// value would result in deadlock"; it is taken for one.
func (c *credits) grant(n uint32) {
	c.mu.Lock()
	c.granted = max(1, int(min(n, maxCredits)))
	c.limit = min(c.asked, c.granted)
	c.serve()
	c.mu.Unlock()
}

// ask changes how many are asked for.
func (c *credits) ask(n int) {
	c.mu.Lock()
	c.asked = n
	c.limit = min(c.asked, c.granted)
	c.serve()
	c.mu.Unlock()
}

// now returns how many are asked for, and how many there may be in flight.
func (c *credits) now() (asked, limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.limit
}
