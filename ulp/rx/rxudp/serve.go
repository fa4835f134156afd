package rxudp

import (
	"context"
	"errors"
	"io"
	"net/netip"

	"urnic/ulp/rx"
	"urnic/ulp/rx/internal/work"
	"urnic/ulp/rx/machine"
	"urnic/ulp/rx/secure"
	"urnic/ulp/rx/wire"
)

// A serverCall is a call of a client, as its handler sees it.
type serverCall struct {
	stream
	service uint16
	life    work.Life
	more    bool // whoever carries it out continues with another one, and sends later
}

// A job is a call that whoever has received it carries out.
type job struct {
	*work.Job
	call *serverCall
}

var _ work.Call = (*serverCall)(nil)

// incoming has a call served.
func (e *Endpoint) incoming(mc *machine.Call) {
	s := &serverCall{service: mc.Conn().Service()}
	s.init(e, mc)
	mc.Owner = s
	code, ok := wire.Code(restarting), false
	if !e.closed && !e.draining {
		var c int32
		if c, ok = e.admit(s); !ok {
			code = wire.Code(c)
		}
	}
	if !ok {
		mc.Abort(e.now(), code)
		mc.End(e.now())
		return
	}
	e.serving[s] = struct{}{}
}

// mostJobs is how many calls a goroutine carries out before it receives more.
const mostJobs = 4

// admit has a call carried out by whoever has received it, or by a worker.
func (e *Endpoint) admit(s *serverCall) (code int32, ok bool) {
	if !e.admits || len(e.jobs) == mostJobs {
		return e.pool.Offer(s.service, s)
	}
	j, code, ok := e.pool.Admit(s.service, s)
	if j != nil {
		e.jobs = append(e.jobs, job{j, s})
	}
	return code, ok
}

// changed is called with the lock held when something has happened to the call.
func (s *serverCall) changed() {
	if s.mc.Err() != nil {
		s.life.End()
	}
	s.stream.changed()
}

// Caller is who makes the call.
func (s *serverCall) Caller() secure.Caller {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.mc.Caller()
}

// Peer is the client's address.
func (s *serverCall) Peer() netip.AddrPort { return s.mc.Conn().Peer() }

// Service is the ID of the service.
func (s *serverCall) Service() uint16 { return s.service }

// Context is the call's context.
func (s *serverCall) Context() context.Context { return &s.life }

// Finish ends the reply, or aborts the call.
func (s *serverCall) Finish(err error) {
	e := s.e
	e.mu.Lock()
	defer s.sendLater()
	delete(e.serving, s)
	now := e.now()
	if err == nil {
		err = s.finish()
		now = e.now()
	}
	if err != nil {
		s.mc.Abort(now, wire.Code(rx.AbortCode(err)))
	}
	s.mc.End(now)
	s.life.End()
}

// sendLater is unlock for whoever may send more at once.
func (s *serverCall) sendLater() {
	e := s.e
	if !s.more {
		e.unlock()
		return
	}
	e.carryOut()
	e.arm()
	e.mu.Unlock()
}

// Write sends a part of the reply.
func (s *serverCall) Write(p []byte) (int, error) {
	n, err := s.stream.Write(p)
	if !errors.Is(err, machine.ErrOrder) {
		return n, err
	}
	s.e.mu.Lock()
	err = s.skip()
	s.e.unlock()
	if err != nil {
		return 0, err
	}
	return s.stream.Write(p)
}

// finish ends the reply.
func (s *serverCall) finish() error {
	err := s.mc.CloseWrite(s.e.now())
	if !errors.Is(err, machine.ErrOrder) {
		return err
	}
	if err := s.skip(); err != nil {
		return err
	}
	return s.mc.CloseWrite(s.e.now())
}

// skip drops what the handler did not read of the request. A reply can't begin before the
// request is complete: its client takes the first packet of it for an acknowledgement of all
// that it has sent.
func (s *serverCall) skip() error {
	var drop [4096]byte
	for {
		n, err := s.mc.Read(s.e.now(), drop[:])
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == 0:
			s.wait()
		}
	}
}
