// Package work carries out the calls of services with a bounded number of goroutines.
package work

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"urnic/ulp/rx"
)

// A Call is a call that a transport offers to a pool.
type Call interface {
	rx.ServerCall

	// Context ends when the call has failed.
	Context() context.Context

	// Finish is called when the handler has returned: it ends the reply, or aborts the call
	// with rx.AbortCode(err).
	Finish(err error)
}

// A Pool carries out calls. Its methods may be called at the same time.
type Pool struct {
	log *slog.Logger

	mu     sync.Mutex
	lanes  map[uint16]*lane
	closed bool
	busy   int // calls that handlers serve, and that wait
	idle   *sync.Cond
	stats  Stats
}

// Stats are what a pool is about.
type Stats struct {
	Serving int // calls that handlers serve
	Waiting int // calls that wait for a worker
	Waited  int // calls that ever had to
	Idle    int // calls that could be served besides
	Busy    int // calls that were refused, as too many waited
	Panics  int // handlers that panicked
}

// A lane is a service.
type lane struct {
	rx.Service
	pace    pace
	serving int
	queue   []Call // the oldest first, from head on
	head    int
}

// New makes a pool for services, which have their defaults (see rx.CheckServices). log is
// told of handlers that panic; nil is slog.Default.
func New(services []rx.Service, log *slog.Logger) *Pool {
	p := &Pool{log: log, lanes: make(map[uint16]*lane, len(services))}
	p.idle = sync.NewCond(&p.mu)
	for _, s := range services {
		p.lanes[s.ID] = &lane{Service: s}
		p.stats.Idle += s.Workers
	}
	return p
}

// Offer has a call of a service carried out, now or once a worker is free. If it can't be,
// Offer returns the code to abort it with, and Finish is not called.
func (p *Pool) Offer(service uint16, c Call) (code int32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, code, ok := p.take(service, c)
	if l != nil {
		go p.work(l, c)
	}
	return code, ok
}

// A Job is a call that whoever offers it is to carry out.
type Job struct {
	p *Pool
	l *lane
	c Call
}

// Admit is Offer for a goroutine that can carry out the call itself. If the handlers of the
// service have been brief so far, Admit returns a job, which is to be run. Else the call is
// carried out as Offer has it, and the job is nil.
func (p *Pool) Admit(service uint16, c Call) (j *Job, code int32, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, code, ok := p.take(service, c)
	switch {
	case l == nil:
	case l.pace.brief():
		j = &Job{p, l, c}
	default:
		go p.work(l, c)
	}
	return j, code, ok
}

// Run carries out the call, and learns how long that takes.
func (j *Job) Run() {
	took := time.Duration(0)
	defer func() { // even if the handler ends its goroutine
		if c := j.p.next(j.l, took); c != nil {
			go j.p.work(j.l, c)
		}
	}()
	took = max(j.p.carryOut(j.l, j.c), 1)
}

// Go has a worker carry out the call.
func (j *Job) Go() { go j.p.work(j.l, j.c) }

// take takes a call in. It returns the lane if the call is to be carried out now.
func (p *Pool) take(service uint16, c Call) (now *lane, code int32, ok bool) {
	l := p.lanes[service]
	switch {
	case l == nil || p.closed:
		return nil, rx.UserAbort, false
	case l.serving < l.Workers:
		l.serving++
		p.busy++
		p.stats.Serving++
		p.stats.Idle--
		return l, 0, true
	case len(l.queue)-l.head < l.Queue:
		l.push(c)
		p.busy++
		p.stats.Waiting++
		p.stats.Waited++
		return nil, 0, true
	default:
		p.stats.Busy++
		return nil, l.Busy, false
	}
}

// work carries out calls until none waits.
func (p *Pool) work(l *lane, c Call) {
	defer func() {
		if c == nil {
			return
		}
		if c = p.next(l, 0); c != nil { // the handler has ended its goroutine
			go p.work(l, c)
		}
	}()
	for c != nil {
		p.carryOut(l, c)
		c = p.next(l, 0)
	}
}

// carryOut has the handler serve a call, and returns how long it took.
func (p *Pool) carryOut(l *lane, c Call) (took time.Duration) {
	var err error
	begun := time.Now()
	defer func() {
		took = time.Since(begun)
		if v := recover(); v != nil {
			err = &PanicError{v}
			p.panicked(l, v)
		}
		c.Finish(err)
	}()
	err = l.Handler.Serve(c.Context(), c)
	return 0 // it is known when all is done
}

// A PanicError is that of a call whose handler has panicked.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("the handler panicked: %v", e.Value) }

func (p *Pool) panicked(l *lane, v any) {
	p.mu.Lock()
	p.stats.Panics++
	p.mu.Unlock()
	log := p.log
	if log == nil {
		log = slog.Default()
	}
	log.Error("the handler of a call panicked", "service", l.ID, "panic", v, "stack", string(debug.Stack()))
}

// next notes that a call was carried out, by whoever has offered it if took is not 0, and
// returns the next one of its service.
func (p *Pool) next(l *lane, took time.Duration) Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	if took > 0 {
		l.pace.took(took)
	}
	if p.busy--; p.busy == 0 {
		p.idle.Broadcast()
	}
	if l.head == len(l.queue) {
		l.serving--
		p.stats.Serving--
		p.stats.Idle++
		return nil
	}
	p.stats.Waiting--
	return l.pop()
}

// Close has calls refused from now on.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
}

// Wait waits until no call is carried out, or waits for a worker.
func (p *Pool) Wait() {
	p.mu.Lock()
	for p.busy > 0 {
		p.idle.Wait()
	}
	p.mu.Unlock()
}

// Stats returns what the pool does.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

func (l *lane) push(c Call) {
	if l.head > 32 && l.head > len(l.queue)/2 {
		n := copy(l.queue, l.queue[l.head:])
		clear(l.queue[n:])
		l.queue, l.head = l.queue[:n], 0
	}
	l.queue = append(l.queue, c)
}

func (l *lane) pop() Call {
	c := l.queue[l.head]
	l.queue[l.head] = nil
	if l.head++; l.head == len(l.queue) {
		l.queue, l.head = l.queue[:0], 0
	}
	return c
}
