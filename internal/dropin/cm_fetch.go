//go:build linux

package dropin

import (
	"context"
	"time"

	"urnic/internal/door"
)

const (
	// fetchPatience is how long the news that a peer has ended the connection waits
	// for the program to poll what the peer sent before.
	fetchPatience = 100 * time.Millisecond
	// actPatience is how long it waits then, so that the program can act on that: one
	// that looks after completions and events in two threads, such as rping, otherwise
	// often learns of the end first. From hardware the news takes about that long.
	actPatience = 10 * time.Millisecond
	// fetchLook is how often it looks.
	fetchLook = time.Millisecond
)

// letFetch waits, after a connection has ended, until the program has had the time to
// see what it has received; not if it is the program that ends the connection.
func (id *cmID) letFetch(q *qp) {
	ctx, cancel := context.WithTimeout(id.engine.ctx, id.engine.fetchPatience)
	defer cancel()
	for id.endedByPeer() && door.Unpolled(q.verbs) > 0 && pause(ctx, fetchLook) {
	}
	if id.endedByPeer() {
		pause(id.engine.ctx, actPatience)
	}
}

func (id *cmID) endedByPeer() bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	return !id.gone && id.state == cmConnected
}

// pause waits, and reports whether the context has not ended by then.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
