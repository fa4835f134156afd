package carrier

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An incoming is a datagram that has come.
type incoming struct {
	from netip.AddrPort
	to   netip.Addr // the address to which it was sent, or not valid
	data []byte
}

// receive calls each with datagrams that have come, at most batch, and returns how many
// there were. It does not wait. One goroutine may receive at a time.
func (s *socket) receive(each func(*incoming)) (int, error) {
	s.readN, s.readE = 0, 0
	if err := s.orClosed(s.raw.Control(s.readFn)); err != nil {
		return 0, err
	}
	for i := range s.readN {
		h := &s.in.msgs[i]
		if h.Flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
			continue
		}
		s.one = incoming{from: addrOf(&s.in.names[i]), to: destination(s.in.oob[i][:min(int(h.Controllen), oobSize)])}
		s.one.data = s.in.data[i*inboxSize:][:h.n]
		each(&s.one)
	}
	s.prepareIn(s.readN)
	return s.readN, nil
}

func (s *socket) tryRead(fd uintptr) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&s.in.msgs[0])), batch, unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if s.readE = errno; errno == 0 {
			s.readN = int(n)
		}
		return
	}
}

// prepareIn makes the first n messages ready to be filled.
func (s *socket) prepareIn(n int) {
	for i := range n {
		s.in.iov[i].Base = &s.in.data[i*inboxSize]
		s.in.iov[i].SetLen(inboxSize)
		h := &s.in.msgs[i]
		*h = mmsghdr{}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&s.in.names[i])), uint32(unsafe.Sizeof(s.in.names[i]))
		h.Iov = &s.in.iov[i]
		h.SetIovlen(1)
		h.Control = &s.in.oob[i][0]
		h.SetControllen(oobSize)
	}
}

// destination returns the address to which a datagram was sent, or one that is not valid.
func destination(oob []byte) netip.Addr {
	for len(oob) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(oob) {
			return netip.Addr{}
		}
		data := oob[unix.CmsgLen(0):n]
		switch {
		case h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
			return netip.AddrFrom16([16]byte(data[:16])).Unmap()
		case h.Level == unix.IPPROTO_IP && h.Type == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
			return netip.AddrFrom4([4]byte(data[8:12]))
		}
		oob = oob[min(len(oob), unix.CmsgSpace(n-unix.CmsgLen(0))):]
	}
	return netip.Addr{}
}
