package udp

import (
	"errors"
	"net/netip"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An inbox is memory for the messages of one system call.
type inbox struct {
	data  [batch][inboxSize]byte
	oob   [batch][oobSize]byte
	names [batch]unix.RawSockaddrInet6
	iov   [batch]unix.Iovec
	msgs  [batch]mmsghdr
}

// inboxes are shared, so that an idle endpoint has none.
var inboxes = sync.Pool{New: func() any { return new(inbox) }}

// Receive calls each with datagrams that have come, and reports whether there were any.
// unreachable is notified of datagrams whose destinations can't be reached: where they went, and up to their first 128 bytes. If nothing has come yet, it tries
// again and again for as long as spin says, and then waits if that is wanted; late reports
// that spin was not long enough. One goroutine may receive at a time.
func (s *Socket) Receive(spin time.Duration, wait bool, each func(Datagram), unreachable func(to netip.AddrPort, datagram []byte)) (got, late bool, err error) {
	s.until = time.Time{}
	if spin > 0 {
		s.until = time.Now().Add(spin)
	}
	s.in = inboxes.Get().(*inbox)
	s.in.prepare()
	defer func() {
		if s.in != nil {
			inboxes.Put(s.in)
			s.in = nil
		}
	}()
	for {
		s.readN, s.readE = 0, 0
		if err := s.control(s.readFn); err != nil {
			return false, late, err
		}
		switch s.readE {
		case 0:
			for i := range s.readN {
				s.give(i, each)
			}
			return s.readN > 0, late, nil
		case unix.EAGAIN:
		default:
			return false, late, s.errors(unreachable)
		}
		late = spin > 0
		if !wait {
			return false, late, nil
		}
		inboxes.Put(s.in) // an idle endpoint has none
		s.in, s.until = nil, time.Time{}
		s.armed, s.waitE = false, nil
		if err := errors.Join(s.orClosed(s.watch.Read(s.waitFn)), s.waitE); err != nil {
			return false, late, err
		}
		if s.events&unix.EPOLLERR != 0 {
			if err := s.errors(unreachable); err != nil {
				return false, late, err
			}
		}
		s.in = inboxes.Get().(*inbox)
		s.in.prepare()
	}
}

// tryRead reads what there is, or comes before the spin ends.
func (s *Socket) tryRead(fd uintptr) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&s.in.msgs[0])), batch, unix.MSG_DONTWAIT, 0, 0)
		switch {
		case errno == 0:
			received()
			s.readN, s.readE = int(n), 0
			return
		case errno == unix.EINTR:
		case errno != unix.EAGAIN || s.until.IsZero() || time.Now().After(s.until):
			s.readE = errno
			return
		}
	}
}

// wait reports whether there is something to read, or waitE. If there is not, the runtime's
// poller waits.
func (s *Socket) wait(epfd uintptr) bool {
	if !s.armed {
		s.armed = true
		var failed error
		err := s.control(func(fd uintptr) {
			failed = unix.EpollCtl(int(epfd), unix.EPOLL_CTL_MOD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT})
		})
		s.waitE = errors.Join(err, failed)
		return s.waitE != nil
	}
	var e [1]unix.EpollEvent
	for {
		n, err := unix.EpollWait(int(epfd), e[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			s.waitE = err
			return true
		}
		s.events = e[0].Events
		return n > 0
	}
}

func (in *inbox) prepare() {
	for i := range in.msgs {
		in.iov[i].Base = &in.data[i][0]
		in.iov[i].SetLen(inboxSize)
		h := &in.msgs[i]
		*h = mmsghdr{}
		h.Name, h.Namelen = (*byte)(unsafe.Pointer(&in.names[i])), uint32(unsafe.Sizeof(in.names[i]))
		h.Iov = &in.iov[i]
		h.SetIovlen(1)
		h.Control = &in.oob[i][0]
		h.SetControllen(oobSize)
	}
}

// give hands the datagrams of a message on.
func (s *Socket) give(i int, each func(Datagram)) {
	h := &s.in.msgs[i]
	if h.Flags&unix.MSG_TRUNC != 0 {
		return // longer than any packet
	}
	data := s.in.data[i][:h.n]
	from := addrOf(&s.in.names[i])
	size := segment(s.in.oob[i][:h.Controllen])
	if size <= 0 {
		each(Datagram{from, data})
		return
	}
	for len(data) > 0 {
		n := min(size, len(data))
		each(Datagram{from, data[:n:n]})
		data = data[n:]
	}
}

// segment returns the size of the datagrams that the kernel has joined, or 0.
func segment(oob []byte) int {
	for len(oob) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
		n := int(h.Len)
		if n < unix.SizeofCmsghdr || n > len(oob) {
			return 0
		}
		if h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && n >= unix.CmsgLen(2) {
			if n >= unix.CmsgLen(4) {
				return int(*(*int32)(unsafe.Pointer(&oob[unix.CmsgLen(0)])))
			}
			return int(*(*uint16)(unsafe.Pointer(&oob[unix.CmsgLen(0)])))
		}
		oob = oob[min(len(oob), unix.CmsgSpace(n-unix.CmsgLen(0))):]
	}
	return 0
}
