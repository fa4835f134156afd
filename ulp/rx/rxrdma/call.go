package rxrdma

import (
	"context"
	"sync"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma/machine"
	rxwire "urnic/ulp/rx/wire"
)

// A stream is what both sides of a call have: its two directions.
type stream struct {
	l  *link
	mc *machine.Call

	readable, writable event
	reading, writing   sync.Mutex // one Read and one Write at a time: parts keep their order
}

func (s *stream) init(l *link, mc *machine.Call) {
	s.l, s.mc = l, mc
	s.readable.cond.L, s.writable.cond.L = &l.mu, &l.mu
	l.counts.calls++
}

// An event is what may happen to a stream that somebody waits for.
type event struct {
	cond sync.Cond
	n    int // how often it has happened
}

func (e *event) happens() {
	e.n++
	e.cond.Broadcast()
}

// wait sends what there is, and waits for an event. The link is locked, and is so again.
func (s *stream) wait(e *event) {
	n := e.n
	s.l.leave()
	s.l.mu.Lock()
	for e.n == n {
		e.cond.Wait()
	}
}

// Flush sends what was written, though it fills no message.
func (s *stream) Flush() error {
	s.l.mu.Lock()
	defer s.l.leave()
	return s.mc.Flush(s.l.now())
}

// A call is a client's call.
type call struct {
	stream
	ctx  context.Context
	stop func() bool
}

func newCall(ctx context.Context, l *link, mc *machine.Call) *call {
	k := &call{ctx: ctx}
	k.init(l, mc)
	mc.Owner = &k.stream
	return k
}

// watch has the call aborted when its context ends.
func (k *call) watch() {
	if k.ctx.Done() != nil {
		k.stop = context.AfterFunc(k.ctx, func() { k.Abort(rx.UserAbort) }) //nolint:errcheck // it has no error
	}
}

// Read reads the reply.
func (k *call) Read(p []byte) (int, error) {
	n, err := k.stream.Read(p)
	return n, rx.Cancelled(k.ctx, err)
}

// Write sends a part of the request.
func (k *call) Write(p []byte) (int, error) {
	n, err := k.stream.Write(p)
	return n, rx.Cancelled(k.ctx, err)
}

// CloseWrite ends the request.
func (k *call) CloseWrite() error {
	k.l.mu.Lock()
	defer k.l.leave()
	return rx.Cancelled(k.ctx, k.mc.CloseWrite(k.l.now()))
}

// Abort ends the call with a code for the server.
func (k *call) Abort(code int32) error {
	k.l.mu.Lock()
	defer k.l.leave()
	k.mc.Abort(k.l.now(), rxwire.Code(code))
	return nil
}

// Close ends the call.
func (k *call) Close() error {
	if k.stop != nil {
		k.stop()
	}
	k.l.mu.Lock()
	defer k.l.leave()
	k.mc.End(k.l.now())
	return nil
}

// streamOf returns who waits for a call.
func streamOf(k *machine.Call) *stream {
	switch o := k.Owner.(type) {
	case *stream:
		return o
	case *serverCall:
		return &o.stream
	}
	return nil
}

// Readable is machine.Host's.
func (l *link) Readable(k *machine.Call) {
	if s := streamOf(k); s != nil {
		s.readable.happens()
	}
}

// Writable is machine.Host's.
func (l *link) Writable(k *machine.Call) {
	if s := streamOf(k); s != nil {
		s.writable.happens()
	}
}

// Failed is machine.Host's.
func (l *link) Failed(k *machine.Call) {
	if s, ok := k.Owner.(*serverCall); ok {
		s.life.End()
	}
}

// Vacant is machine.Host's.
func (l *link) Vacant() {
	if l.mc == nil {
		return // it is about to begin
	}
	if l.mc.Active() == 0 {
		l.idle = l.now()
	}
	l.wake(l.mc.Closing())
}

// wake has the first one that waits for a channel try again, or all.
func (l *link) wake(all bool) {
	n := min(1, len(l.waiting))
	if all {
		n = len(l.waiting)
	}
	for _, ch := range l.waiting[:n] {
		close(ch)
	}
	l.waiting = l.waiting[n:]
}
