//go:build linux

package dropin

import (
	"sync"
	"time"

	"urnic/rnic"
)

// farewell is how long the peers of a process that exits have to ask for acknowledgments, unless they close the connection
// before: one asks when its program polls, and the answer to what it has asked before is there.
const farewell = 250 * time.Millisecond

// Leave closes the connections of a process that exits. It takes settlePatience and farewell at most. An adapter acknowledges
// what has arrived, whatever becomes of the program; here the acknowledgments would end with the process.
func (e *Engine) Leave() {
	defer e.tellCounters()
	e.reporter.leave()
	defer e.leaveTimeline()
	if !e.settings.acknowledges() {
		return
	}
	var connected []*qp
	e.qps.each(func(_ Handle, q *qp) {
		if q.send.acks != nil && q.verbs.State() == rnic.RTS {
			connected = append(connected, q)
		}
	})
	if len(connected) == 0 {
		return
	}
	enough := time.NewTimer(farewell)
	defer enough.Stop()
wait:
	for _, q := range connected {
		select {
		case <-q.verbs.Done():
		case <-enough.C:
			break wait
		}
	}
	var all sync.WaitGroup
	for _, q := range connected {
		all.Go(q.settle)
	}
	all.Wait()
}
