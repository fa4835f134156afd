package rxudp

import (
	"errors"
	"net"
	"runtime"
	"time"

	"urnic/internal/host/udp"
)

// arrived gives the machine what has arrived. The first datagram of several takes the lock.
func (e *Endpoint) arrived(d udp.Datagram) {
	if e.recorder != nil {
		e.recorder.Datagram(d.From, e.localFor(d.From), d.Data)
	}
	if e.batchAt == 0 {
		e.mu.Lock()
		e.batchAt = e.now()
	}
	e.m.Receive(e.batchAt, d.From, d.Data)
}

// receive receives what comes. It is called without the lock, by whoever has the role, and
// returns with it.
func (e *Endpoint) receive(spin, wait bool) (got bool, err error) {
	long := time.Duration(0)
	if spin {
		long = budget
	}
	e.batchAt = 0
	got, late, err := e.sock.Receive(long, wait, e.arrivedFn, e.unreachable)
	if e.batchAt == 0 {
		e.mu.Lock()
	}
	switch {
	case !spin:
	case late:
		e.spinner.lost()
	case got:
		e.spinner.won()
	}
	return got, err
}

// read receives until others do. It is called by whoever has the role.
func (e *Endpoint) read() {
	for spin := false; ; {
		got, err := e.receive(spin, true)
		if err != nil {
			e.mu.Unlock()
			if !errors.Is(err, net.ErrClosed) {
				e.fail(err)
			}
			return // with the role, which is of no more use
		}
		e.admits = true
		e.carryOn()
		e.admits = false
		if len(e.jobs) > 0 && !e.runJobs() {
			e.unlock()
			return
		}
		if e.leave && got && e.waiting == 0 {
			e.leave = false
			e.lend()
			e.mu.Unlock()
			return
		}
		// Whoever does something needs the processor more.
		idle := len(e.serving) == 0
		if e.spares {
			idle = e.waiting > 0
		}
		spin = idle && e.spinner.worth()
		e.yield()
		e.mu.Unlock()
	}
}

// runJobs carries out calls that have come, with the lock released and the role lent. It
// reports whether the role is still the caller's.
func (e *Endpoint) runJobs() bool {
	jobs := e.jobs
	e.jobs = nil
	e.lend()
	e.mu.Unlock()
	defer func() {
		for _, j := range jobs { // a handler has ended this goroutine
			j.call.more = false
			j.Go()
		}
	}()
	for len(jobs) > 0 {
		j := jobs[0]
		jobs = jobs[1:]
		j.call.more = len(jobs) > 0
		j.Run()
	}
	e.mu.Lock()
	if e.role.held || e.closed {
		return false
	}
	e.role.take()
	return true
}

// spin receives for a while, for a call that has nothing to read. It is called with the lock
// held, while nobody receives.
func (e *Endpoint) spin(s *stream, before uint64) {
	e.role.take()
	for s.changes == before && !e.closed {
		e.mu.Unlock()
		got, err := e.receive(true, false)
		e.carryOn()
		if !got || err != nil {
			break
		}
		if s.changes == before {
			e.yield()
		}
	}
	e.lend()
	if e.waiting > 0 {
		e.attend()
	}
}

// yield has calls continue that have changed, before another thread wakes up for them. It is
// called with the lock held, and releases it meanwhile.
func (e *Endpoint) yield() {
	if !e.woke {
		return
	}
	e.woke = false
	if e.spares {
		e.mu.Unlock()
		runtime.Gosched()
		e.mu.Lock()
	}
}
