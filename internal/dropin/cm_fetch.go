//go:build linux

package dropin

import (
	"context"
	"time"

	"urnic/internal/door"
)

// fetchLook is how often letFetch looks at what the program has done.
const fetchLook = time.Millisecond

// letFetch waits, after a connection has ended, until the program has had the time to
// see what it has received, and to act on that; not if it is the program that ends the
// connection.
func (id *cmID) letFetch(q *qp) {
	id.await(id.engine.times.fetch, func() bool { return id.endedByPeer() && door.Unpolled(q.verbs) > 0 })
	id.await(id.engine.times.act, id.endedByPeer)
}

// await waits as long as something is so, and for a time at most.
func (id *cmID) await(most time.Duration, isSo func() bool) {
	ctx, cancel := context.WithTimeout(id.engine.ctx, most)
	defer cancel()
	for isSo() && pause(ctx, fetchLook) {
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
