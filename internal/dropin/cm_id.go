//go:build linux

package dropin

import (
	"context"
	"os"
	"sync"
	"syscall"

	"urnic/rnic"
)

// The states of an id, as those of rdma_cm in Linux.
type cmState uint8

const (
	cmIdle          cmState = iota
	cmBound                 // it has a source address and a port
	cmAddrKnown             // and the destination's
	cmRouteKnown            // it can connect
	cmListening             // it gets requests
	cmAsked                 // it is a request that waits for an answer
	cmConnecting            // the peer is being asked
	cmConnected             // there is a connection
	cmDisconnecting         // it is being closed
	cmOver                  // there is none any more, or none has come about
)

var cmStateNames = [...]string{
	"idle", "bound", "resolved", "routed", "listening", "a request", "connecting", "connected", "disconnecting", "over",
}

// String names the state.
func (s cmState) String() string { return cmStateNames[s] }

// A cmID is one end of connection management: struct rdma_cm_id.
type cmID struct {
	engine *Engine
	handle Handle

	mu      sync.Mutex // taken before that of a child
	channel *eventChannel
	cookie  uint64
	state   cmState
	gone    bool // destroyed
	options socketOptions

	local, peer endpoint
	socket      *os.File // that has the local endpoint, until it listens or connects, or nil

	listener *rnic.Listener
	backlog  int // requests that may wait to be fetched
	pending  int // requests that do
	request  *rnic.ConnRequest

	services *serviceListener // as listener, of RDMA_PS_UDP
	service  *serviceRequest  // as request

	qp         *qp
	ackTimeout uint32             // RDMA_OPTION_ID_ACK_TIMEOUT, or 0
	cancel     context.CancelFunc // of what happens in the background
	disconnect bool               // as soon as it is connected
	background sync.WaitGroup
}

// IDCreate makes an id that tells its events at a channel.
func (e *Engine) IDCreate(evch Handle, cookie uint64) (Handle, Errno) {
	ch := e.evchs.get(evch)
	if ch == nil {
		return 0, syscall.EINVAL
	}
	id := e.newID(ch)
	if id == nil {
		return 0, e.refuse(syscall.ENOMEM, "create id: there are too many")
	}
	id.cookie = cookie
	return id.handle, ok
}

// newID returns an id that has a handle, or nil if there are too many.
func (e *Engine) newID(ch *eventChannel) *cmID {
	id := &cmID{engine: e, channel: ch, options: socketOptions{tos: -1}}
	e.usesCM.Store(true)
	id.mu.Lock() // until it is whole
	defer id.mu.Unlock()
	if id.handle = e.ids.add(id); id.handle == 0 {
		return nil
	}
	return id
}

// withID calls f with an id locked, if there is such an id.
func (e *Engine) withID(h Handle, f func(id *cmID) Errno) Errno {
	id := e.ids.get(h)
	if id == nil {
		return syscall.EINVAL
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.gone {
		return syscall.EINVAL
	}
	return f(id)
}

// refuse says that an id is in the wrong state for a call.
func (id *cmID) refuse(op string) Errno {
	return id.engine.refuse(syscall.EINVAL, "%s: id %d is %v", op, id.handle, id.state)
}

// IDSetCookie says what the events of an id carry from now on.
func (e *Engine) IDSetCookie(h Handle, cookie uint64) Errno {
	return e.withID(h, func(id *cmID) Errno {
		id.cookie = cookie
		return ok
	})
}

// IDMigrate moves an id to another channel, with the events that nobody has
// fetched.
func (e *Engine) IDMigrate(h, evch Handle) Errno {
	ch := e.evchs.get(evch)
	if ch == nil {
		return syscall.EINVAL
	}
	return e.withID(h, func(id *cmID) Errno {
		old := id.channel
		if old == ch {
			return ok
		}
		id.channel = ch
		for _, ev := range old.take(func(ev *cmEvent) bool { return ev.id == id }) {
			if ev.child != nil { // it goes where its request is told
				ev.child.mu.Lock()
				ev.child.channel = ch
				ev.child.mu.Unlock()
			}
			ch.queue.push(ev)
		}
		return ok
	})
}

// CMAddrs is struct urnic_addrs.
type CMAddrs struct{ Local, Peer [128]byte }

// IDAddrs tells the endpoints of an id, as far as they are known.
func (e *Engine) IDAddrs(h Handle, out *CMAddrs) Errno {
	if out == nil {
		return syscall.EINVAL
	}
	return e.withID(h, func(id *cmID) Errno {
		id.local.put(&out.Local)
		id.peer.put(&out.Peer)
		return ok
	})
}

// IDDestroy gives an id up, in whatever state. Its port is free when it returns; a
// request that has no answer is rejected, and so are those of a listener that
// nobody has fetched; a connection is closed, and reset if that takes too long.
func (e *Engine) IDDestroy(h Handle) Errno {
	id := e.ids.get(h)
	if id == nil || !id.destroy() {
		return syscall.EINVAL
	}
	return ok
}

// destroy reports whether it was the first to do so.
func (id *cmID) destroy() bool {
	e := id.engine
	if e.ids.remove(id.handle) == nil {
		return false
	}
	id.mu.Lock()
	id.gone = true
	state := id.state
	events := id.channel.take(func(ev *cmEvent) bool { return ev.id == id || ev.child == id })
	if id.socket != nil {
		_ = id.socket.Close() // it was only bound
		id.socket = nil
	}
	l, services, r, q, cancel := id.listener, id.services, id.request, id.qp, id.cancel
	id.request = nil
	if id.service != nil {
		id.refuseService(nil)
	}
	id.mu.Unlock()
	for _, ev := range events {
		if ev.child != nil && ev.child != id {
			ev.child.destroy()
		}
	}
	if r != nil {
		e.turnAway(r)
	}
	if l != nil {
		_ = l.Close() // the socket is of no use any more
	}
	if services != nil {
		_ = services.conn.Close() // likewise
	}
	switch {
	case q == nil: // there is no connection
	case state == cmConnected:
		e.wg.Go(func() {
			q.settle()
			q.toError()
		})
		return true
	case state == cmDisconnecting: // in its own time
		return true
	}
	if cancel != nil {
		cancel()
	}
	id.background.Wait()
	return true
}

// closeIDs destroys all ids and event channels, when the engine ends.
func (e *Engine) closeIDs() {
	e.ids.each(func(_ Handle, id *cmID) { id.destroy() })
	e.evchs.each(func(h Handle, _ *eventChannel) { e.EvchDestroy(h) })
}
