package peeruid

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listed finds the socket in the tables under dir. It reads them twice: a socket
// could be closed while its line is made, with the user of a socket that nobody
// has and the inode of before. One that still has its inode afterwards was open.
func listed(dir string, local, remote netip.AddrPort) (socket, error) {
	first, err := find(dir, local, remote)
	if err != nil {
		return socket{}, err
	}
	second, err := find(dir, local, remote)
	if err != nil {
		return socket{}, err
	}
	if first.uid != second.uid || first.inode != second.inode {
		return socket{}, ErrGone
	}
	return second, nil
}

func find(dir string, local, remote netip.AddrPort) (socket, error) {
	tables := []string{"tcp6"}
	if local.Addr().Is4() {
		tables = []string{"tcp", "tcp6"} // an IPv6 socket may have IPv4 addresses
	}
	for _, name := range tables {
		s, err := findIn(filepath.Join(dir, name), noZone(local), noZone(remote))
		switch {
		case errors.Is(err, ErrGone):
		case name == "tcp6" && errors.Is(err, os.ErrNotExist): // a system without IPv6
		default:
			return s, err
		}
	}
	return socket{}, ErrGone
}

func findIn(table string, local, remote netip.AddrPort) (socket, error) {
	f, err := os.Open(table)
	if err != nil {
		return socket{}, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		s, l, r, err := parseLine(lines.Text())
		if err == nil && l == local && r == remote {
			return s, nil
		}
	}
	if err := lines.Err(); err != nil {
		return socket{}, fmt.Errorf("%s: %w", table, err)
	}
	return socket{}, ErrGone
}

// parseLine reads one line of /proc/net/tcp or /proc/net/tcp6.
func parseLine(line string) (s socket, local, remote netip.AddrPort, err error) {
	f := strings.Fields(line) // sl local remote st queues timer retransmits uid timeout inode ...
	if len(f) < 10 {
		return s, local, remote, strconv.ErrSyntax
	}
	local, lerr := parseAddr(f[1])
	remote, rerr := parseAddr(f[2])
	state, serr := strconv.ParseUint(f[3], 16, 8)
	uid, uerr := parseUint32(f[7], 10)
	inode, ierr := strconv.ParseUint(f[9], 10, 64)
	return socket{uint8(state), uid, inode}, local, remote, errors.Join(lerr, rerr, serr, uerr, ierr)
}

// parseAddr reads an address as the kernel prints it: words of 32 bits in hex, in
// host byte order, a colon and the port.
func parseAddr(s string) (netip.AddrPort, error) {
	a, p, _ := strings.Cut(s, ":")
	port, err := strconv.ParseUint(p, 16, 16)
	if err != nil {
		return netip.AddrPort{}, err
	}
	b, err := hex.DecodeString(a)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, strconv.ErrSyntax
	}
	for w := b; len(w) > 0; w = w[4:] {
		n := uint32(w[0])<<24 | uint32(w[1])<<16 | uint32(w[2])<<8 | uint32(w[3])
		host.PutUint32(w, n)
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), nil
}

func parseUint32(s string, base int) (uint32, error) {
	n, err := strconv.ParseUint(s, base, 32)
	return uint32(n), err
}
