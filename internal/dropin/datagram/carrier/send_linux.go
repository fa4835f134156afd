package carrier

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sendPatience is how many milliseconds a full queue of an interface is waited for, each time.
const sendPatience = 100

// room returns memory for one more datagram of n bytes. It sends what is in the way.
func (s *socket) room(n int) []byte {
	if arenaSize-s.out.used < n {
		s.flush()
	}
	return s.out.arena[s.out.used:][:n:n]
}

// add takes the datagram that was put into what room returned.
func (s *socket) add(n int, to netip.AddrPort, from netip.Addr) {
	if from == to.Addr() { // the system chooses it, too
		from = netip.Addr{}
	}
	s.out.list = append(s.out.list, leaving{s.out.used, n, to, from})
	s.out.used += n
}

// flush sends all that was added. What the system refuses is dropped, as the network might.
func (s *socket) flush() {
	for len(s.out.list) > 0 {
		if s.raw.Control(s.writeFn) != nil { // it is closed
			break
		}
	}
	s.out.used, s.out.list = 0, s.out.list[:0]
}

// tryWrite sends what there is room for, and waits a little if there is none. The system call itself never waits: the
// runtime need not know of it.
func (s *socket) tryWrite(fd uintptr) {
	list, tries := s.out.list, 0
	for len(list) > 0 && tries < 3 {
		n := s.prepareOut(list)
		done, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&s.out.msgs[0])), uintptr(n), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			list, tries = list[done:], 0
		case unix.EINTR:
		case unix.EAGAIN:
			tries++
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, sendPatience)
		case unix.EADDRNOTAVAIL, unix.EINVAL:
			if list[0].from.IsValid() { // the address has gone: from another one, then
				list[0].from = netip.Addr{}
				continue
			}
			fallthrough
		default:
			s.dropped++
			list = list[1:]
		}
	}
	s.dropped += uint64(len(list))
	s.out.list = s.out.list[:0]
}

// prepareOut fills in the headers for datagrams, and returns for how many.
func (s *socket) prepareOut(list []leaving) int {
	n := min(len(list), batch)
	x := &s.out.messages
	for i := range n {
		l := &list[i]
		x.iov[i].Base = &s.out.arena[l.off]
		x.iov[i].SetLen(l.n)
		h := &x.msgs[i]
		*h = mmsghdr{}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&x.names[i])), s.put(&x.names[i], l.to)
		h.Iov = &x.iov[i]
		h.SetIovlen(1)
		if l.from.IsValid() {
			h.Control = &x.oob[i][0]
			h.SetControllen(s.putFrom(&x.oob[i], l.from))
		}
	}
	return n
}

// putFrom fills in the control message that says from where a datagram leaves.
func (s *socket) putFrom(oob *[oobSize]byte, from netip.Addr) int {
	*oob = [oobSize]byte{}
	c := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	data := oob[unix.CmsgLen(0):]
	if !s.six {
		c.Level, c.Type = unix.IPPROTO_IP, unix.IP_PKTINFO
		c.SetLen(unix.CmsgLen(unix.SizeofInet4Pktinfo))
		a := four(from)
		copy(data[4:8], a[:]) // ipi_spec_dst
		return unix.CmsgSpace(unix.SizeofInet4Pktinfo)
	}
	c.Level, c.Type = unix.IPPROTO_IPV6, unix.IPV6_PKTINFO
	c.SetLen(unix.CmsgLen(unix.SizeofInet6Pktinfo))
	a := from.As16()
	copy(data, a[:])
	if z := from.Zone(); z != "" {
		*(*uint32)(unsafe.Pointer(&data[16])) = scope(z)
	}
	return unix.CmsgSpace(unix.SizeofInet6Pktinfo)
}
