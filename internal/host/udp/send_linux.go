package udp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A sender is the same for what is sent, whose data is in an Outbox.
type sender struct {
	oob   [batch][oobSize]byte
	names [batch]unix.RawSockaddrInet6
	iov   [batch]unix.Iovec
	msgs  [batch]mmsghdr
}

// Send sends all of an Outbox. What the system refuses is dropped, as the network might.
func (s *Socket) Send(o *Outbox) error {
	s.out, s.sent, s.tries = o, 0, 0
	defer func() { s.out = nil }()
	for s.sent < len(o.messages) {
		if err := s.control(s.writeFn); err != nil {
			return err
		}
	}
	return nil
}

// tryWrite sends what there is room for, and waits a little if there is none.
func (s *Socket) tryWrite(fd uintptr) {
	for s.sent < len(s.out.messages) {
		n := s.prepare(s.out.messages[s.sent:])
		sent()
		done, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&s.sender.msgs[0])), uintptr(n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			s.sent += int(done)
			s.tries = 0
		case unix.EINTR:
		case unix.EAGAIN:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 100)
			return // it may be closed now
		default:
			s.refused(fd, errno)
		}
	}
}

// refused deals with a message that the system does not take.
func (s *Socket) refused(fd uintptr, errno unix.Errno) {
	m := s.out.messages[s.sent]
	switch {
	case m.datagrams > 1 && (errno == unix.EINVAL || errno == unix.EIO || errno == unix.EMSGSIZE || errno == unix.EOPNOTSUPP):
		// It can't join datagrams on the way to there: one at a time, then.
		s.split(fd, m)
	case s.tries == 0:
		s.tries++ // it may be the error of an earlier one, told late
		return
	default:
		s.dropped++
	}
	s.sent++
	s.tries = 0
}

// split sends the datagrams of a message one at a time.
func (s *Socket) split(fd uintptr, m message) {
	var name unix.RawSockaddrInet6
	length := s.put(&name, m.to)
	b := s.out.arena[m.off : m.off+m.n]
	for len(b) > 0 {
		n := min(m.size, len(b))
		sent()
		_, _, errno := unix.Syscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL,
			uintptr(unsafe.Pointer(&name)), uintptr(length))
		if errno != 0 {
			s.dropped++
		}
		b = b[n:]
	}
}

// prepare fills in the headers for messages, and returns for how many.
func (s *Socket) prepare(messages []message) int {
	n := min(len(messages), batch)
	x := &s.sender
	for i, m := range messages[:n] {
		x.iov[i].Base = &s.out.arena[m.off]
		x.iov[i].SetLen(m.n)
		h := &x.msgs[i]
		*h = mmsghdr{}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&x.names[i])), s.put(&x.names[i], m.to)
		h.Iov = &x.iov[i]
		h.SetIovlen(1)
		if m.datagrams > 1 {
			c := (*unix.Cmsghdr)(unsafe.Pointer(&x.oob[i][0]))
			c.Level, c.Type = unix.SOL_UDP, unix.UDP_SEGMENT
			c.SetLen(unix.CmsgLen(2))
			*(*uint16)(unsafe.Pointer(&x.oob[i][unix.CmsgLen(0)])) = uint16(m.size)
			h.Control = &x.oob[i][0]
			h.SetControllen(unix.CmsgSpace(2))
		}
	}
	return n
}
