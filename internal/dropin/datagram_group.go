//go:build linux

package dropin

import "syscall"

// QPAttach has a UD queue pair take what comes for a multicast group.
func (e *Engine) QPAttach(h Handle, gid *[16]byte) Errno {
	q := e.qps.get(h)
	if q == nil || gid == nil {
		return syscall.EINVAL
	}
	group := addressOf(*gid)
	if q.datagram == nil || q.datagram.kind != qptUD || !group.IsMulticast() {
		return e.refuse(syscall.EINVAL, "attach: QP 0x%x is not of the type IBV_QPT_UD, or %v is no group", q.num, group)
	}
	return e.fail(q.datagram.port.Attach(q.datagram, group))
}

// QPDetach undoes QPAttach.
func (e *Engine) QPDetach(h Handle, gid *[16]byte) Errno {
	q := e.qps.get(h)
	if q == nil || gid == nil || q.datagram == nil || !q.datagram.port.Detach(q.datagram, addressOf(*gid)) {
		return syscall.EINVAL
	}
	return ok
}
