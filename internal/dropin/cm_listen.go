//go:build linux

package dropin

import (
	"errors"
	"net/netip"
	"syscall"

	"urnic/mpa"
	"urnic/rnic"
)

// maxBacklog is how many requests may wait to be fetched, if a program does not
// say so or says more, as in Linux.
const maxBacklog = 1024

// IDListen makes an id listen, which is bound, or gets any address and a free
// port. At most backlog requests wait to be fetched; further ones are rejected.
func (e *Engine) IDListen(h Handle, backlog uint32) Errno {
	return e.withID(h, func(id *cmID) Errno {
		if id.state == cmIdle {
			if bad := id.bind(endpoint{ip: netip.IPv4Unspecified()}); bad != ok {
				return bad
			}
		}
		if id.state != cmBound {
			return id.refuse("listen")
		}
		if id.backlog = int(backlog); backlog == 0 || backlog > maxBacklog {
			id.backlog = maxBacklog
		}
		if id.options.datagram {
			return id.listenForServices()
		}
		n, err := listenOn(id.socket, id.backlog)
		if err != nil {
			return e.fail(err)
		}
		id.socket = nil
		l, err := e.device.ListenOn(n)
		if err != nil {
			id.state = cmOver // the socket is gone
			return e.fail(err)
		}
		id.listener, id.state = l, cmListening
		id.background.Go(func() { id.serve(l) })
		return ok
	})
}

// serve reports the requests that come, until the listener is closed.
func (id *cmID) serve(l *rnic.Listener) {
	for {
		r, err := l.Accept(id.engine.ctx)
		if err != nil {
			return
		}
		if !id.offer(r) {
			id.engine.turnAway(r)
		}
	}
}

// newChild returns an id for a request, or nil if there is no room for it. The caller holds mu.
func (id *cmID) newChild() *cmID {
	if id.gone || id.channel == nowhere || id.pending >= id.backlog {
		return nil
	}
	return id.engine.newID(id.channel)
}

// offer gives a request an id and reports it, if there is room.
func (id *cmID) offer(r *rnic.ConnRequest) bool {
	id.mu.Lock()
	defer id.mu.Unlock()
	child := id.newChild()
	if child == nil {
		return false
	}
	child.mu.Lock()
	defer child.mu.Unlock()
	child.state, child.request, child.options = cmAsked, r, id.options
	child.local, child.peer = endpointAt(r.LocalAddr(), id.local.family()), endpointAt(r.RemoteAddr(), id.local.family())
	id.pending++
	ev := CMEvent{Type: cmConnectRequest}
	// What the peer sends is what this side needs of the other kind.
	ev.InitiatorDepth, ev.ResponderResources = id.engine.depthsOf(r.MPA())
	ev.setPrivateData(r.PrivateData())
	id.tellOf(ev, child)
	return true
}

// depthsOf returns the IRD and ORD of a Request, at most what the device has; that,
// if the Request does not say.
func (e *Engine) depthsOf(r *mpa.Request) (ird, ord uint32) {
	a := e.device.Attr()
	ird, ord = uint32(a.MaxIRD), uint32(a.MaxORD)
	if r.Frame.Enhanced { // "not negotiated" is more than any depth
		ird, ord = min(ird, uint32(r.Enhanced.IRD)), min(ord, uint32(r.Enhanced.ORD))
	}
	if e.settings.acknowledges() && r.Frame.Enhanced { // the peer's library may have some of these for itself
		ird, ord = max(ird-min(ird, extraReads), min(ird, 1)), max(ord-min(ord, extraReads), min(ord, 1))
	}
	return ird, ord
}

func (ev *CMEvent) setPrivateData(b []byte) {
	ev.PrivateDataLen = uint32(copy(ev.PrivateData[:], b))
}

// turnAway rejects a request that has no id, or whose id is gone.
func (e *Engine) turnAway(r *rnic.ConnRequest) {
	if err := r.Reject(e.ctx, nil); err != nil {
		e.log.printf(logInfo, "reject: %v", err) // the peer has gone
	}
}

// IDAccept answers a request with a Reply that accepts, and tells cmEstablished.
func (e *Engine) IDAccept(h Handle, p *ConnParam) Errno {
	c, bad := e.connParam(p)
	if bad != ok {
		return bad
	}
	return e.withID(h, func(id *cmID) Errno {
		if id.state != cmAsked || id.request == nil {
			return id.refuse("accept")
		}
		if !c.isFree() {
			return e.refuse(syscall.EINVAL, "accept: QP 0x%x is in state %v", c.qp.num, c.qp.verbs.State())
		}
		if err := id.request.Accept(e.ctx, c.qp.verbs, c.param); err != nil {
			if _, again := errors.AsType[*mpa.ConfigError](err); again {
				return e.fail(err)
			}
			id.request, id.state = nil, cmOver
			return e.refuse(syscall.ECONNRESET, "%v", err) // nearly always it is the peer that has gone
		}
		id.request = nil
		id.established(c.qp)
		return ok
	})
}

// IDReject answers a request with a Reply that rejects.
func (e *Engine) IDReject(h Handle, privateData []byte) Errno {
	return e.withID(h, func(id *cmID) Errno {
		if id.state != cmAsked {
			return id.refuse("reject")
		}
		if id.service != nil {
			return id.refuseService(privateData)
		}
		err := id.request.Reject(e.ctx, privateData)
		if _, again := errors.AsType[*mpa.ConfigError](err); again {
			return e.fail(err)
		}
		id.request, id.state = nil, cmOver
		if err != nil {
			return e.refuse(syscall.ECONNRESET, "%v", err)
		}
		return ok
	})
}
