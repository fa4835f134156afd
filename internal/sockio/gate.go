package sockio

import (
	"runtime"
	"sync/atomic"
)

// A gate counts the calls that use a descriptor, so that it is not closed, and
// given to somebody else, meanwhile.
type gate struct{ n atomic.Int64 } // calls under way; plus shut once it is

// shut makes n negative, however many calls there are.
const shut = -(int64(1) << 62)

// enter begins a call, which must not wait for anything, if the gate is open.
func (g *gate) enter() bool {
	if g.n.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

func (g *gate) leave() { g.n.Add(-1) }

// close lets nobody enter any more, and waits for those who have. It reports
// whether it was the first.
func (g *gate) close() bool {
	for n := g.n.Load(); n >= 0; n = g.n.Load() {
		if g.n.CompareAndSwap(n, n+shut) {
			for g.n.Load() != shut {
				runtime.Gosched()
			}
			return true
		}
	}
	return false
}
