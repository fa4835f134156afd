package rxrdma

import (
	"context"
	"net/netip"

	"urnic/ulp/rx"
	"urnic/ulp/rx/internal/work"
	"urnic/ulp/rx/rxrdma/machine"
	"urnic/ulp/rx/secure"
	rxwire "urnic/ulp/rx/wire"
)

// A serverCall is a call of a client, as its handler sees it.
type serverCall struct {
	stream
	life work.Life
}

var _ work.Call = (*serverCall)(nil)

// Begun is machine.Host's: it has a call served.
func (l *link) Begun(mc *machine.Call) {
	s := &serverCall{}
	s.init(l, mc)
	mc.Owner = s
	l.begun = append(l.begun, s)
}

// offer has calls served that have begun. The link is locked.
func (l *link) offer() {
	for _, s := range l.begun {
		code, ok := int32(restarting), false
		if !l.e.draining.Load() {
			code, ok = l.e.pool.Offer(l.service, s)
		}
		if !ok {
			s.mc.Abort(l.now(), rxwire.Code(code))
			s.mc.End(l.now())
		}
	}
	clear(l.begun)
	l.begun = l.begun[:0]
}

// Caller is who makes the call.
func (s *serverCall) Caller() secure.Caller {
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	return s.mc.Conn().Caller()
}

// Peer is the client's address.
func (s *serverCall) Peer() netip.AddrPort { return s.l.peer }

// Service is the ID of the service.
func (s *serverCall) Service() uint16 { return s.l.service }

// Context is the call's context.
func (s *serverCall) Context() context.Context { return &s.life }

// Finish ends the reply, or aborts the call.
func (s *serverCall) Finish(err error) {
	l := s.l
	l.mu.Lock()
	defer l.leave()
	now := l.now()
	if err != nil {
		s.mc.Abort(now, rxwire.Code(rx.AbortCode(err)))
	}
	s.mc.End(now)
	s.life.End()
}
