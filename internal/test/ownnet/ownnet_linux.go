package ownnet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// again runs the test once more, in a process with a network of its own.
func again(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{mapping(os.Getuid())},
		GidMappings: []syscall.SysProcIDMap{mapping(os.Getgid())},
	}
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	switch {
	case err != nil && !errors.As(err, &ended) && os.Getenv("CI") == "":
		t.Skipf("no process can have a network of its own: allow user namespaces: %v", err)
	case err != nil:
		t.Fatalf("in a network of its own: %v\n%s", err, out)
	case !strings.Contains(string(out), "--- PASS: "+t.Name()+" "):
		t.Fatalf("in a network of its own, the test was not run:\n%s", out)
	default:
		t.Logf("in a network of its own:\n%s", out)
	}
}

// mapping makes a user or group root in the process's namespace. Root keeps its others, too: a
// file server may give files away.
func mapping(id int) syscall.SysProcIDMap {
	if id == 0 {
		return syscall.SysProcIDMap{Size: 1 << 16}
	}
	return syscall.SysProcIDMap{HostID: id, Size: 1}
}

// up makes the loopback interface work, and gives it addresses.
func up(addresses []string) error {
	// A machine may have switched it off for all new networks.
	for _, name := range []string{"all", "default", "lo"} {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0); err != nil {
			return fmt.Errorf("the kernel has no IPv6: %w", err)
		}
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_LOOPBACK | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("the loopback interface: %w", err)
	}
	for i, a := range addresses {
		ip, err := netip.ParseAddr(a)
		if err != nil {
			return err
		}
		if ip.Is6() {
			if err := add6(ip); err != nil {
				return fmt.Errorf("the address %s: %w", a, err)
			}
			continue
		}
		alias, err := unix.NewIfreq(fmt.Sprintf("lo:%d", i))
		if err != nil {
			return err
		}
		if err := alias.SetInet4Addr(ip.AsSlice()); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, alias); err != nil {
			return fmt.Errorf("the address %s: %w", a, err)
		}
	}
	return nil
}

// add6 gives the loopback interface an address of IPv6, and waits until it can be used, which
// is when there is a route. It is the one interface there is.
func add6(ip netip.Addr) error {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written that is not acknowledged
	if err := unix.Bind(s, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.RTNLGRP_IPV6_ROUTE - 1)}); err != nil {
		return err
	}
	const loopback, length = 1, unix.SizeofNlMsghdr + unix.SizeofIfAddrmsg + unix.SizeofRtAttr + 16
	order := binary.NativeEndian
	b := order.AppendUint32(nil, length)
	b = order.AppendUint16(b, unix.RTM_NEWADDR)
	b = order.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	b = append(b, make([]byte, 8)...) // sequence number and port
	b = append(b, unix.AF_INET6, 128, unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE)
	b = order.AppendUint32(b, loopback)
	b = order.AppendUint16(b, unix.SizeofRtAttr+16)
	b = order.AppendUint16(b, unix.IFA_LOCAL)
	b = append(b, ip.AsSlice()...)
	if err := unix.Sendto(s, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	reply := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(s, reply, 0)
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(reply[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch m.Header.Type {
			case unix.NLMSG_ERROR:
				if errno := int32(order.Uint32(m.Data)); errno != 0 {
					return syscall.Errno(-errno)
				}
			case unix.RTM_NEWROUTE:
				if table := m.Data[4]; table == unix.RT_TABLE_LOCAL && bytes.Contains(m.Data, ip.AsSlice()) {
					return nil
				}
			}
		}
	}
}
