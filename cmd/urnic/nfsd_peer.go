package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"urnic/internal/host/listen"
	"urnic/internal/host/peeruid"
	"urnic/ulp/nfs/nfsd"
)

// identify finds out who has made a connection to the server: which user, if it comes from
// this host.
func identify(local, remote net.Addr) (nfsd.Peer, error) {
	uid, err := peeruid.Between(local, remote)
	switch {
	case errors.Is(err, peeruid.ErrRemote):
		return nfsd.Peer{}, nil
	case errors.Is(err, errors.ErrUnsupported): // this system does not tell
		return nfsd.Peer{Local: true}, nil
	case err != nil:
		return nfsd.Peer{}, err
	}
	return nfsd.Peer{Local: true, Known: true, UID: uid, Groups: groupsOf(uid)}, nil
}

// groupsOf returns the groups of a user, the first of which is the user's own: those that
// this host knows of, and those of this process if it is of that user.
func groupsOf(uid uint32) []uint32 {
	var groups []uint32
	add := func(gid uint64) {
		if !slices.Contains(groups, uint32(gid)) {
			groups = append(groups, uint32(gid))
		}
	}
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		ids, _ := u.GroupIds() // what can't be found out is not believed
		for _, id := range append([]string{u.Gid}, ids...) {
			if gid, err := strconv.ParseUint(id, 10, 32); err == nil {
				add(gid)
			}
		}
	}
	if int64(os.Geteuid()) == int64(uid) {
		ids, _ := os.Getgroups()
		for _, gid := range append([]int{os.Getegid()}, ids...) {
			add(uint64(gid))
		}
	}
	return groups
}

// An admittingNetwork closes connections of peers that no export is for when they come,
// before any more is done about them.
type admittingNetwork struct{ program *nfsd.Server }

func (admittingNetwork) Dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func (n admittingNetwork) Listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := listen.TCP(ctx, address)
	if err != nil {
		return nil, err
	}
	return &admittingListener{l, n.program}, nil
}

type admittingListener struct {
	net.Listener
	program *nfsd.Server
}

func (l *admittingListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.program.Allows(c.RemoteAddr()) {
			return c, err
		}
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // leaves nothing behind
		}
		_ = c.Close()
	}
}

// loopbackOnly reports whether only this host may mount what is exported.
func (o *nfsdOptions) loopbackOnly() bool {
	if len(o.allowed) == 0 {
		return false
	}
	for _, p := range o.allowed {
		// A prefix of IPv4's 127.0.0.0/8, or ::1 alone.
		if a := p.Masked().Addr(); !a.IsLoopback() || a.Is4() && p.Bits() < 8 || !a.Is4() && p.Bits() < 128 {
			return false
		}
	}
	return true
}

// addresses returns where to listen: at an address that was given, or else at all of this
// host, or at its loopback addresses if no other host may mount anything.
func (o *nfsdOptions) addresses(address string, given bool) []string {
	host, port, err := net.SplitHostPort(address)
	if given || err != nil || host != "" || !o.loopbackOnly() {
		return []string{address}
	}
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("::1", port)}
}

// listenAll listens at addresses, of which those after the first are left out if this host
// has no such.
func listenAll[L interface{ Addr() net.Addr }](addresses []string, listen func(address string) (L, error)) (all []L, err error) {
	for i, address := range addresses {
		l, err := listen(address)
		if i > 0 && (errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)) {
			continue
		}
		if err != nil {
			return all, err
		}
		all = append(all, l)
	}
	return all, nil
}
