//go:build linux

package dropin

import (
	"syscall"
)

// IDBind gives an id a source address and a port: a free one, if addr leaves it
// open. addr is a struct sockaddr.
func (e *Engine) IDBind(h Handle, addr []byte) Errno {
	a, bad := parseEndpoint(addr)
	if bad != ok {
		return e.refuse(bad, "bind: that is no address of IP")
	}
	return e.withID(h, func(id *cmID) Errno {
		if id.state != cmIdle {
			return id.refuse("bind")
		}
		return id.bind(a)
	})
}

// bind brings an idle id to state bound.
func (id *cmID) bind(a endpoint) Errno {
	if a.wantsScope() {
		return id.engine.refuse(syscall.EINVAL, "bind to %v: a link-local address needs its interface", a)
	}
	socket, got, err := bindSocket(a, id.options)
	if err != nil {
		return id.engine.fail(err)
	}
	id.socket, id.local, id.state = socket, got, cmBound
	return ok
}

// IDResolveAddr finds the source address for a destination, unless the id is bound
// to one, binds to it or to src, and tells cmAddrResolved or cmAddrError. Both are
// structs sockaddr; src can be empty.
func (e *Engine) IDResolveAddr(h Handle, src, dst []byte) Errno {
	to, bad := parseEndpoint(dst)
	if bad != ok {
		return e.refuse(bad, "resolve address: the destination is no address of IP")
	}
	var from endpoint
	if !isNone(src) {
		if from, bad = parseEndpoint(src); bad != ok {
			return e.refuse(bad, "resolve address: the source is no address of IP")
		}
	}
	return e.withID(h, func(id *cmID) Errno { return id.resolve(from, to) })
}

func (id *cmID) resolve(from, to endpoint) Errno {
	e := id.engine
	switch id.state {
	case cmIdle:
	case cmBound:
		from = id.local
	default:
		return id.refuse("resolve address")
	}
	if from.ip.IsValid() && from.family() != to.family() {
		return e.refuse(syscall.EINVAL, "resolve address: %v can't reach %v: one is IPv4, the other IPv6", from, to)
	}
	if to.wantsScope() {
		to.scope = from.scope
	}
	if to.wantsScope() {
		return e.refuse(syscall.EINVAL, "resolve address: %v is link-local and needs its interface", to)
	}
	if id.state == cmIdle && from.ip.IsValid() {
		if bad := id.bind(from); bad != ok {
			return bad
		}
		from = id.local
	}
	source, err := sourceFor(from, to)
	if err == nil && id.state == cmIdle {
		if bad := id.bind(source); bad != ok {
			err = bad
		}
	}
	if err != nil {
		e.log.printf(logInfo, "resolve address: no route to %v: %v", to, err)
		id.tell(CMEvent{Type: cmAddrError, Status: -int32(errno(err))})
		return ok
	}
	id.local.ip, id.local.scope = source.ip, source.scope
	if id.peer = to; to.isAny() { // that is this host
		id.peer.ip, id.peer.scope = source.ip, source.scope
	}
	id.state = cmAddrKnown
	id.tell(CMEvent{Type: cmAddrResolved})
	return ok
}

// IDResolveRoute tells cmRouteResolved: TCP finds its own way.
func (e *Engine) IDResolveRoute(h Handle) Errno {
	return e.withID(h, func(id *cmID) Errno { return id.resolveRoute("resolve route") })
}

func (id *cmID) resolveRoute(op string) Errno {
	if id.state != cmAddrKnown {
		return id.refuse(op)
	}
	id.state = cmRouteKnown
	id.tell(CMEvent{Type: cmRouteResolved})
	return ok
}

// Levels and names of options (rdma/rdma_cma.h).
const (
	cmLevelID = 0
	cmLevelIB = 1

	cmOptionTOS        = 0
	cmOptionReuseAddr  = 1
	cmOptionAFOnly     = 2
	cmOptionACKTimeout = 3

	cmOptionPath = 1
)

// maxTimeout is the largest timeout of a queue pair: it has 5 bits.
const maxTimeout = 31

// pathDataLen is the size of struct ibv_path_data.
const pathDataLen = 72

// IDSetOption sets an option of an id. It returns ENOSYS for those that there are
// not, and EINVAL for values of another size, or if it is too late.
func (e *Engine) IDSetOption(h Handle, level, name uint32, value []byte) Errno {
	return e.withID(h, func(id *cmID) Errno {
		switch level {
		case cmLevelID:
			return id.setOption(name, value)
		case cmLevelIB:
			if name != cmOptionPath {
				return syscall.ENOSYS
			}
			if len(value) == 0 || len(value)%pathDataLen != 0 {
				return syscall.EINVAL
			}
			return id.resolveRoute("set path") // which TCP finds itself
		}
		return syscall.ENOSYS
	})
}

func (id *cmID) setOption(name uint32, value []byte) Errno {
	sizes := [...]int{cmOptionTOS: 1, cmOptionReuseAddr: 4, cmOptionAFOnly: 4, cmOptionACKTimeout: 1}
	switch {
	case name >= uint32(len(sizes)):
		return syscall.ENOSYS
	case len(value) != sizes[name]:
		return syscall.EINVAL
	}
	on := false
	for _, b := range value {
		on = on || b != 0
	}
	switch name {
	case cmOptionTOS:
		id.options.tos = int(value[0])
		id.onSocket(func(fd int) { setTOS(fd, id.local, id.options.tos) })
	case cmOptionReuseAddr:
		if id.state != cmIdle && (!on || id.state == cmListening) {
			return id.refuse("set REUSEADDR")
		}
		id.options.reuse = on
		id.onSocket(func(fd int) { setReuse(fd, on) })
	case cmOptionAFOnly:
		if id.state != cmIdle && id.state != cmBound {
			return id.refuse("set AFONLY")
		}
		if id.options.v6only == on {
			return ok
		}
		id.options.v6only = on
		return id.rebind()
	case cmOptionACKTimeout: // TCP waits as it does: this is what the queue pair says when it is connected
		if value[0] > maxTimeout || id.options.datagram {
			return syscall.EINVAL
		}
		id.ackTimeout = uint32(value[0])
	}
	return ok
}

// onSocket calls f with the descriptor of the socket that is bound, if there is one.
func (id *cmID) onSocket(f func(fd int)) {
	if id.socket != nil {
		_ = withFD(id.socket, func(fd int) error { f(fd); return nil }) // nobody else closes it
	}
}

// rebind binds anew, if the id is bound to an address of IPv6: the system takes
// AFONLY only before.
func (id *cmID) rebind() Errno {
	if id.socket == nil || !id.local.ip.Is6() {
		return ok
	}
	_ = id.socket.Close() // it was only bound
	id.socket, id.state = nil, cmIdle
	return id.bind(id.local)
}
