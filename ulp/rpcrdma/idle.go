package rpcrdma

import (
	"sync"
	"time"
)

// endIdle ends the connection of a Server once it has been without calls for Config.Idle,
// until it is to stop. Calls do not set the timer anew: it looks whether there were
// any, so that they pay nothing.
func (e *endpoint) endIdle() (stop func()) {
	if e.cfg.Idle < 0 {
		return func() {}
	}
	var (
		mu      sync.Mutex
		timer   *time.Timer
		stopped bool
		before  = e.stats.served.Load()
	)
	look := func() {
		mu.Lock()
		now := e.stats.served.Load()
		busy := e.inUse()
		idle := !stopped && now == before && !busy
		if !idle && !stopped {
			before = now
			if busy { // it may end at any moment: then the time begins
				before = ^uint64(0)
			}
			timer.Reset(e.cfg.Idle)
		}
		mu.Unlock()
		if idle {
			_ = e.close(ErrIdle) // the peer may not care
		}
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(e.cfg.Idle, look)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// inUse reports whether a call is being carried out, of either side.
func (e *endpoint) inUse() bool {
	e.serve.mu.Lock()
	busy := e.serve.busy > 0
	e.serve.mu.Unlock()
	if !busy && e.calls != nil {
		e.calls.mu.Lock()
		busy = len(e.calls.live) > 0
		e.calls.mu.Unlock()
	}
	return busy
}
