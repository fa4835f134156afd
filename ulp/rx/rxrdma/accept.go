package rxrdma

import (
	"context"
	"errors"
	"fmt"
	"time"

	"urnic/rnic"
	"urnic/ulp/rx"
	"urnic/ulp/rx/rxrdma/machine"
	"urnic/ulp/rx/rxrdma/wire"
	"urnic/ulp/rx/secure"
	rxwire "urnic/ulp/rx/wire"
)

// accept takes requests until the listener is closed.
func (e *Endpoint) accept() {
	for {
		req, err := e.listener.Accept(e.ctx)
		if err != nil {
			return
		}
		n := e.cfg.credits(e.cfg.Channels) * e.cfg.Receive
		if !e.take(n) {
			e.refused()
			_ = e.hurry(req) // no goroutine waits for one that there are too many of
			continue
		}
		e.wg.Go(func() {
			if !e.requested(req) {
				e.give(n)
			}
		})
	}
}

// hurry rejects a request without waiting for the peer.
func (e *Endpoint) hurry(req *rnic.ConnRequest) error {
	ctx, cancel := context.WithTimeout(e.ctx, hurryTime)
	defer cancel()
	return req.Reject(ctx, wire.AppendRefusal(nil, restarting))
}

// hurryTime is how long the refusal of one request too many may hold up others.
const hurryTime = 100 * time.Millisecond

// take takes a place for a connection whose receives have n bytes.
func (e *Endpoint) take(n int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.taken >= e.cfg.MaxConns || e.memory+int64(n) > e.cfg.Memory {
		return false
	}
	e.taken++
	e.memory += int64(n)
	return true
}

func (e *Endpoint) give(n int) {
	e.mu.Lock()
	e.taken--
	e.memory -= int64(n)
	e.mu.Unlock()
}

func (e *Endpoint) refused() {
	e.mu.Lock()
	e.stats.Refused++
	e.mu.Unlock()
}

// A refusal is why a request is rejected.
type refusal struct {
	code rxwire.Code
	err  error
}

// requested decides about a request, and reports whether there is a connection.
func (e *Endpoint) requested(req *rnic.ConnRequest) bool {
	ctx, cancel := context.WithTimeout(e.ctx, e.cfg.SetUpTime)
	defer cancel()
	cfg, service, why := e.judge(req.PrivateData())
	if why != nil {
		e.refused()
		if why.err != nil {
			e.violated(Violation{Peer: addrPort(req.RemoteAddr()), Rule: machine.RuleSetUp, Err: why.err})
		}
		_ = req.Reject(ctx, wire.AppendRefusal(nil, int32(why.code))) // it may be gone
		return false
	}
	l, err := e.newLink(e.cfg.Channels)
	if err != nil {
		e.refused()
		e.cfg.Log.Warn("rxrdma: no connection can be made", "peer", req.RemoteAddr(), "error", err)
		_ = req.Reject(ctx, wire.AppendRefusal(nil, restarting))
		return false
	}
	l.service = service
	err = req.Accept(ctx, l.qp, param(&cfg.Own))
	if err == nil {
		err = e.add(l)
	}
	if err != nil {
		e.refused()
		_ = l.release()
		return false
	}
	e.mu.Lock()
	e.stats.Accepted++
	e.mu.Unlock()
	l.begin(cfg)
	return true
}

// judge looks at what a client has said of itself, and makes the answer.
func (e *Endpoint) judge(b []byte) (cfg machine.Config, service uint16, why *refusal) {
	peer, err := wire.ParsePrivate(b)
	if err != nil {
		return cfg, 0, &refusal{rxwire.ProtocolError, err}
	}
	s, ok := e.services[peer.Service]
	if !ok {
		return cfg, 0, &refusal{code: rxwire.InvalidOperation}
	}
	if e.draining.Load() {
		return cfg, 0, &refusal{code: restarting}
	}
	own := e.cfg.private(e.cfg.Channels)
	if up := e.services[s.Upgrade]; peer.Features&wire.FeatureUpgrade != 0 && s.Upgrade != 0 {
		s = up
		own.Features |= wire.FeatureUpgrade
	}
	own.Service, own.Epoch, own.ConnID, own.Security = s.ID, peer.Epoch, peer.ConnID, peer.Security
	own.Channels = min(own.Channels, peer.Channels)
	if peer.Security != 0 {
		own.Channels = min(own.Channels, securityChannels)
	}
	if err := enough(&peer, own.Channels); err != nil {
		return cfg, 0, &refusal{rxwire.ProtocolError, err}
	}
	cfg = machine.Config{Own: own, Peer: peer, DeadTime: s.DeadTime, IdleDead: s.IdleDead, HardDead: s.HardDead}
	cfg.Peer.Channels = own.Channels
	if cfg.ServerSecurity, err = secured(&s, &peer); err != nil {
		return cfg, 0, &refusal{code: rxwire.InvalidOperation}
	}
	return cfg, s.ID, nil
}

// enough returns an error if a side has not the receives for its windows (docs/rx-rdma.md,
// "Credits").
func enough(p *wire.Private, channels uint8) error {
	if least := int(channels)*int(p.Window) + 2; int(p.Credits) < least {
		return fmt.Errorf("%d receives for %d channels with a window of %d: there must be %d", p.Credits, channels, p.Window, least)
	}
	return nil
}

var errNoClass = errors.New("the service has no such security class")

// secured makes the server's side of a security class; nil for index 0.
func secured(s *rx.Service, p *wire.Private) (secure.ServerConn, error) {
	if p.Security == 0 {
		if s.NoNull {
			return nil, errNoClass
		}
		return nil, nil
	}
	for _, class := range s.Security {
		if class.Index() == p.Security {
			return class.NewConn(secure.Conn{Epoch: p.Epoch, ID: p.ConnID, Index: p.Security, Checksum: true})
		}
	}
	return nil, errNoClass
}

// param says how a connection is made. There are no RDMA Reads.
func param(own *wire.Private) rnic.ConnParam {
	return rnic.ConnParam{PrivateData: own.Append(nil), IRD: -1, ORD: -1}
}
