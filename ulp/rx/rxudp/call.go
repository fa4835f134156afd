package rxudp

import (
	"context"
	"sync"

	"urnic/ulp/rx"
	"urnic/ulp/rx/machine"
	"urnic/ulp/rx/wire"
)

// A stream is what both sides of a call have: its two directions.
type stream struct {
	e  *Endpoint
	mc *machine.Call
	// change is notified of all that happens to the call.
	change  sync.Cond
	waits   int    // goroutines that wait
	changes uint64 // so far
	began   bool   // something was read
}

func (s *stream) init(e *Endpoint, mc *machine.Call) {
	s.e, s.mc = e, mc
	s.change.L = &e.mu
}

func (s *stream) changed() {
	s.changes++
	if s.waits > 0 {
		s.e.waiting -= s.waits
		s.waits = 0
		s.e.woke = true
		s.change.Broadcast()
	}
}

// wait waits for a change, with the lock released after what the machine did was carried out.
func (s *stream) wait() {
	before := s.changes
	s.e.carryOn()
	s.park(before)
}

// park waits for a change unless there was one.
func (s *stream) park(before uint64) {
	if s.changes != before {
		return
	}
	s.waits++
	s.e.waiting++
	s.e.attend()
	s.change.Wait()
}

// waitForReply is wait for a client that has read nothing yet. It receives itself if it can: a
// short reply has come then.
func (s *stream) waitForReply() {
	e, before := s.e, s.changes
	e.carryOn()
	if s.changes == before && e.spares && !e.role.held && e.waiting == 0 && !e.closed && e.spinner.worth() {
		e.spin(s, before)
	}
	s.park(before)
}

// Read reads what the other side has written.
func (s *stream) Read(p []byte) (int, error) {
	e := s.e
	e.mu.Lock()
	defer e.unlock()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := s.mc.Read(e.now(), p)
		if n > 0 || err != nil {
			s.began = true
			return n, err
		}
		if s.began {
			s.wait()
		} else {
			s.waitForReply()
		}
	}
}

// Write writes to the other side.
func (s *stream) Write(p []byte) (int, error) {
	e := s.e
	e.mu.Lock()
	defer e.unlock()
	done := 0
	for {
		n, err := s.mc.Write(e.now(), p[done:])
		done += n
		if err != nil || done == len(p) {
			return done, err
		}
		if n == 0 {
			s.wait()
		}
	}
}

// Flush sends what was written, though it fills no packet.
func (s *stream) Flush() error {
	e := s.e
	e.mu.Lock()
	defer e.unlock()
	return s.mc.Flush(e.now())
}

// A call is a client's call.
type call struct {
	stream
	ctx    context.Context
	stop   func() bool
	closed bool
}

func newCall(ctx context.Context, e *Endpoint, mc *machine.Call) *call {
	k := &call{ctx: ctx}
	k.init(e, mc)
	mc.Owner = k
	e.calls++
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
	e := k.e
	e.mu.Lock()
	defer e.unlock()
	return rx.Cancelled(k.ctx, k.mc.CloseWrite(e.now()))
}

// Abort ends the call with a code for the server.
func (k *call) Abort(code int32) error {
	e := k.e
	e.mu.Lock()
	defer e.unlock()
	k.mc.Abort(e.now(), wire.Code(code))
	k.changed()
	return nil
}

// Close ends the call.
func (k *call) Close() error {
	if k.stop != nil {
		k.stop()
	}
	e := k.e
	e.mu.Lock()
	defer e.unlock()
	k.mc.End(e.now())
	k.changed()
	if !k.closed {
		k.closed = true
		e.calls--
		e.leave = e.spares && e.calls == 0 && e.role.held && e.spinner.worth()
	}
	return nil
}
