//go:build linux

package dropin

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A port is up while an interface that is up has one of its addresses: then it has a GID.

// A portWatch tells a program when ports of its context's device go down and come back.
type portWatch struct {
	socket *os.File
	ended  chan struct{}
}

// watchedGroups are what Linux reports that changes the addresses of a host which work.
const watchedGroups = unix.RTMGRP_LINK | unix.RTMGRP_IPV4_IFADDR | unix.RTMGRP_IPV6_IFADDR

// watchPorts begins to watch the ports of a context. A process that may have no netlink socket goes without the events.
func (c *rdmaContext) watchPorts() {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: watchedGroups}); err != nil {
			_ = unix.Close(fd) // nothing was written
		}
	}
	if err != nil {
		c.engine.log.printf(logInfo, "ports are not watched, and their events not reported: %v", err)
		return
	}
	c.ports = portWatch{socket: os.NewFile(uintptr(fd), "rtnetlink"), ended: make(chan struct{})}
	up := c.portsUp() // what changes from now on is in the socket
	go c.hearPorts(up)
}

// close ends the watch, and returns when no event is told any more.
func (w *portWatch) close() {
	if w.socket != nil {
		_ = w.socket.Close() // nothing was written
		<-w.ended
	}
}

// hearPorts tells the program of ports that were up, or down, and are not any more.
func (c *rdmaContext) hearPorts(up []bool) {
	defer close(c.ports.ended)
	buf := make([]byte, 1<<12) // what was changed is read anew, so messages may be cut
	for {
		if _, err := c.ports.socket.Read(buf); err != nil && !errors.Is(err, unix.ENOBUFS) { // some may be lost: the state is read anew all the same
			return
		}
		c.engine.gids.forget()
		for i, now := range c.portsUp() {
			if now == up[i] {
				continue
			}
			up[i] = now
			typ := eventPortErr
			if now {
				typ = eventPortActive
			}
			c.tell(typ, uint64(i+1), func() bool { return true })
		}
	}
}

// portsUp reports of each port of the device whether it is up.
func (c *rdmaContext) portsUp() []bool {
	up := make([]bool, len(c.engine.devices[c.device].ports))
	for i := range up {
		up[i] = len(c.engine.portGIDs(c.device, uint32(i+1))) > 0
	}
	return up
}
