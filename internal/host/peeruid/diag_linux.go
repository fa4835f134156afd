package peeruid

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// struct inet_diag_req_v2 and struct inet_diag_msg of linux/inet_diag.h, behind a
// struct nlmsghdr. Ports and addresses are in network byte order, the rest is in
// the host's.
const (
	reqLen = 56
	msgLen = 72

	sockID    = 8 // the struct inet_diag_sockid in the request
	msgSockID = 4 // and in the reply
	idDst     = 20
	idIf      = 36
	idCookie  = 40
	msgUID    = 64
	msgInode  = 68
)

var host = binary.NativeEndian

// diag asks for the socket at local that is connected to remote.
func diag(local, remote netip.AddrPort) (socket, error) {
	req := request(local, remote, 0, ^uint32(0))
	reply, err := ask(req)
	if errors.Is(err, unix.ENOENT) {
		// There is no such socket, or nobody there who could tell.
		if !diagWorks(local.Addr().Is4()) {
			return socket{}, errNoDiag
		}
		return socket{}, ErrGone
	}
	if err != nil {
		return socket{}, fmt.Errorf("%w: %w", errNoDiag, err)
	}
	return parseDiag(reply, local, remote)
}

// diagWorks asks for all sockets in none of the states, which costs nothing.
func diagWorks(v4 bool) bool {
	a := netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	if v4 {
		a = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
	}
	_, err := ask(request(a, a, unix.NLM_F_DUMP, 0))
	return err == nil
}

func request(local, remote netip.AddrPort, flags uint16, states uint32) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+reqLen)
	host.PutUint32(b[0:], uint32(len(b)))
	host.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	host.PutUint16(b[6:], unix.NLM_F_REQUEST|flags)
	r := b[unix.SizeofNlMsghdr:]
	r[0] = unix.AF_INET6
	if local.Addr().Is4() {
		r[0] = unix.AF_INET
	}
	r[1] = unix.IPPROTO_TCP
	host.PutUint32(r[4:], states)
	id := r[sockID:]
	binary.BigEndian.PutUint16(id[0:], local.Port())
	binary.BigEndian.PutUint16(id[2:], remote.Port())
	copy(id[4:], local.Addr().AsSlice())
	copy(id[idDst:], remote.Addr().AsSlice())
	host.PutUint32(id[idIf:], zone(local.Addr()))
	host.PutUint64(id[idCookie:], ^uint64(0)) // any
	return b
}

// zone is the index of the interface of a link-local address.
func zone(a netip.Addr) uint32 {
	if a.Zone() == "" {
		return 0
	}
	if i, err := net.InterfaceByName(a.Zone()); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(a.Zone(), 10, 32)
	return uint32(n)
}

// ask sends a request and returns the first reply. The kernel has queued it when
// sendto returns, so there is nothing to wait for.
func ask(req []byte) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	b := make([]byte, 4096)
	n, from, err := unix.Recvfrom(fd, b, unix.MSG_DONTWAIT)
	if err != nil {
		return nil, err
	}
	if nl, ok := from.(*unix.SockaddrNetlink); !ok || nl.Pid != 0 {
		return nil, errors.New("a reply that is not the kernel's")
	}
	return body(b[:n])
}

// body is the content of the first message of a reply.
func body(b []byte) ([]byte, error) {
	if len(b) < unix.SizeofNlMsghdr {
		return nil, unix.EBADMSG
	}
	n := host.Uint32(b)
	if n < unix.SizeofNlMsghdr || uint64(n) > uint64(len(b)) {
		return nil, unix.EBADMSG
	}
	body := b[unix.SizeofNlMsghdr:n]
	switch host.Uint16(b[4:]) {
	case unix.NLMSG_ERROR:
		if len(body) < 4 {
			return nil, unix.EBADMSG
		}
		return nil, unix.Errno(-int32(host.Uint32(body)))
	case unix.NLMSG_DONE:
		return nil, nil
	}
	return body, nil
}

// parseDiag checks that the reply is about the socket that was asked for: where
// there is none, the kernel reports a listener at its port.
func parseDiag(m []byte, local, remote netip.AddrPort) (socket, error) {
	if len(m) < msgLen {
		return socket{}, unix.EBADMSG
	}
	id := m[msgSockID:]
	at := func(port, addr int) netip.AddrPort {
		var a netip.Addr
		if m[0] == unix.AF_INET {
			a = netip.AddrFrom4([4]byte(id[addr:]))
		} else {
			a = netip.AddrFrom16([16]byte(id[addr:])).Unmap()
		}
		return netip.AddrPortFrom(a, binary.BigEndian.Uint16(id[port:]))
	}
	if at(0, 4) != noZone(local) || at(2, idDst) != noZone(remote) {
		return socket{}, ErrGone
	}
	return socket{state: m[1], uid: host.Uint32(m[msgUID:]), inode: uint64(host.Uint32(m[msgInode:]))}, nil
}

func noZone(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().WithZone(""), a.Port())
}
