package rnic_test

import (
	"runtime"
	"testing"

	"urnic/internal/door"
	"urnic/rnic"
)

// heap returns how much memory is reachable.
func heap() int64 {
	for range 2 { // pools give up what they hold in the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A queue pair that is closed, but still referred to, as by an event that nobody has
// fetched, does not keep the room of its queues.
func TestClosedQueuePairKeepsNoQueues(t *testing.T) {
	const pairs, requests = 20, 2000
	for name, post := range map[string]func(q *rnic.QP) error{
		"send queue":    func(q *rnic.QP) error { return q.PostSend(empties(1, requests, 0)...) },
		"receive queue": func(q *rnic.QP) error { return q.PostRecv(receives(1, requests)...) },
	} {
		t.Run(name, func(t *testing.T) {
			measure := func() (used, kept int64) {
				l := newLab(t, rnic.Config{})
				p, cq := l.domain(), l.cq(rnic.CQAttr{})
				var all []*rnic.QP
				for range pairs {
					all = append(all, l.qp(p, rnic.QPAttr{SendCQ: cq, RecvCQ: cq, MaxSendWR: requests, MaxRecvWR: requests}))
				}
				empty := heap()
				for _, q := range all {
					if err := post(q); err != nil {
						t.Fatal(err)
					}
					door.Forget(q) // or the completions would take room
					q.Abort()
				}
				used = heap() - empty
				for _, q := range all {
					if err := q.Close(); err != nil {
						t.Error(err)
					}
				}
				kept = heap() - empty
				runtime.KeepAlive(all)
				return used, kept
			}
			// The heap is that of the process: goroutines of other tests may end meanwhile. What
			// queue pairs keep, they keep each time.
			wrong := func(used, kept int64) bool { return used < pairs*requests*8 || kept > used/4 }
			used, kept := measure()
			for tries := 1; wrong(used, kept) && tries < 5; tries++ {
				used, kept = measure()
			}
			if wrong(used, kept) {
				t.Errorf("%d bytes of %d are kept", kept, used)
			}
		})
	}
}
