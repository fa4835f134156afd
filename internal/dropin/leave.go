//go:build linux

package dropin

import (
	"sync"
	"time"

	"urnic/rnic"
)

// LeavePatience returns how long Leave takes at most, unless a thread holds something that it waits for.
func (e *Engine) LeavePatience() time.Duration { return e.times.leave() }

// Leave closes the connections of a process that exits. It takes times.farewell and times.release at most. An adapter acknowledges
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
	enough := time.NewTimer(e.times.farewell)
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
