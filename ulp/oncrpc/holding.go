package oncrpc

import (
	"sync"
	"sync/atomic"
)

// reserved is how many bytes of a reply a call is expected to need before anybody knows
// how many.
const reserved = 256 << 10

// A holding is the memory that the calls of one connection hold, with their replies, in
// bytes. What the connection's peer does not take stays in it, so that a peer that takes
// nothing soon has no calls any more, and others have.
type holding struct {
	most  int           // of this connection
	share int           // that it may hold in any case
	all   *atomic.Int64 // what all connections hold
	limit int64         // of all

	mu   sync.Mutex
	held int
	free chan struct{} // has something if there is less held than before
}

func newHolding(most, share int, all *atomic.Int64, limit int64) *holding {
	return &holding{most: most, share: share, all: all, limit: limit, free: make(chan struct{}, 1)}
}

// take takes n bytes, if the connection may hold as many more, or holds none. If it
// does not, there is something in free some time.
func (h *holding) take(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.held + n
	if h.held > 0 && (now > h.most || now > h.share && h.all.Load()+int64(n) > h.limit) {
		return false
	}
	h.held = now
	h.all.Add(int64(n))
	return true
}

// add takes n bytes in any case; or gives as many back, if there are fewer than none.
func (h *holding) add(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held += n
	h.all.Add(int64(n))
	if n < 0 {
		select {
		case h.free <- struct{}{}:
		default:
		}
	}
}
