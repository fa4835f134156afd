package peeruid

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"sync"
)

// A socket is what the kernel reports about one.
type socket struct {
	state uint8
	uid   uint32
	inode uint64 // 0 if no process has it open
}

// errNoDiag says that the kernel can't be asked by sock_diag.
var errNoDiag = errors.New("the kernel has no sock_diag for TCP")

// owner returns the user of the socket at local that is connected to remote.
func owner(local, remote netip.AddrPort) (uint32, error) {
	s, err := diag(local, remote)
	if errors.Is(err, errNoDiag) {
		s, err = listed("/proc/net", local, remote)
	}
	if err != nil {
		return 0, err
	}
	return s.owner(overflow())
}

// owner judges what was reported of a socket. The kernel tells user 0 of a socket
// that no process has open, and of what is left in TIME_WAIT: their inode is 0.
func (s socket) owner(unmapped func(uint32) bool) (uint32, error) {
	switch {
	case s.inode == 0 || !s.connected():
		return 0, ErrGone
	case unmapped(s.uid):
		return 0, ErrUnmapped
	}
	return s.uid, nil
}

// connected reports whether the socket has been connected, and is not gone.
func (s socket) connected() bool {
	const ( // include/net/tcp_states.h
		established = 1
		finWait1    = 4
		finWait2    = 5
		closeWait   = 8
		lastAck     = 9
		closing     = 11
	)
	switch s.state {
	case established, finWait1, finWait2, closeWait, lastAck, closing:
		return true
	}
	return false
}

// overflow returns whether an ID stands for all those that have none in this
// user namespace. Where all have one, it is a user like others.
var overflow = sync.OnceValue(func() func(uint32) bool {
	if m, err := os.ReadFile("/proc/self/uid_map"); err == nil {
		if f := strings.Fields(string(m)); len(f) == 3 && f[0] == "0" && f[2] == "4294967295" {
			return func(uint32) bool { return false }
		}
	}
	id := uint32(65534)
	if b, err := os.ReadFile("/proc/sys/kernel/overflowuid"); err == nil {
		if n, err := parseUint32(strings.TrimSpace(string(b)), 10); err == nil {
			id = n
		}
	}
	return func(uid uint32) bool { return uid == id }
})
