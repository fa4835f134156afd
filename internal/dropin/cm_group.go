//go:build linux

package dropin

import "syscall"

// IDJoin tells cmMulticastJoin for a group of an id of RDMA_PS_UDP, which carries the cookie of the group. It is
// the queue pair that joins: see QPAttach.
func (e *Engine) IDJoin(h Handle, group []byte, cookie uint64) Errno {
	a, bad := parseEndpoint(group)
	if bad != ok {
		return e.refuse(bad, "join: that is no address of IP")
	}
	return e.withID(h, func(id *cmID) Errno {
		switch {
		case !id.options.datagram || id.state == cmIdle || id.local.isAny():
			return id.refuse("join")
		case !a.ip.Unmap().IsMulticast():
			return e.refuse(syscall.EINVAL, "join: %v is no multicast group", a.ip)
		}
		id.tell(CMEvent{Type: cmMulticastJoin, QPN: 0xffffff, QKey: udpKey, Group: cookie})
		return ok
	})
}

// IDLeave takes back the event of IDJoin, if nobody has fetched it.
func (e *Engine) IDLeave(h Handle, cookie uint64) Errno {
	return e.withID(h, func(id *cmID) Errno {
		id.channel.take(func(ev *cmEvent) bool { return ev.id == id && ev.Group == cookie })
		return ok
	})
}
