package peeruid

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The two ways to ask, which must agree.
var ways = map[string]func(local, remote netip.AddrPort) (socket, error){
	"sock_diag": diag,
	"proc": func(local, remote netip.AddrPort) (socket, error) {
		return listed("/proc/net", local, remote)
	},
}

// pair is a connection: what was accepted, and its peer.
func pair(t *testing.T, listenOn, laddr, raddr string) (accepted, peer *net.TCPConn) {
	t.Helper()
	network := "tcp"
	ln, err := net.Listen(network, listenOn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(laddr)}}
	to := net.JoinHostPort(raddr, fmt.Sprint(ln.Addr().(*net.TCPAddr).Port))
	c, err := d.DialContext(t.Context(), network, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	a, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a.(*net.TCPConn), c.(*net.TCPConn)
}

func owned(way func(local, remote netip.AddrPort) (socket, error), c net.Conn) (uint32, error) {
	s, err := way(plain(c.RemoteAddr().(*net.TCPAddr)), plain(c.LocalAddr().(*net.TCPAddr)))
	if err != nil {
		return 0, err
	}
	return s.owner(overflow())
}

func TestTheUserOfThePeersSocket(t *testing.T) {
	for name, tc := range map[string]struct{ listen, from, to string }{
		"IPv4":                  {"127.0.0.1:0", "127.0.0.1", "127.0.0.1"},
		"another loopback":      {"127.0.0.1:0", "127.0.0.9", "127.0.0.1"},
		"IPv6":                  {"[::1]:0", "::1", "::1"},
		"IPv4 to both":          {"[::]:0", "127.0.0.1", "127.0.0.1"},
		"IPv6 to both":          {"[::]:0", "::1", "::1"},
		"an address of its own": {"127.1.2.3:0", "127.1.2.3", "127.1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := pair(t, tc.listen, tc.from, tc.to)
			if uid, err := Of(a); err != nil || uid != uint32(os.Getuid()) {
				t.Errorf("user %d, %v; want %d", uid, err, os.Getuid())
			}
			for way, f := range ways {
				if uid, err := owned(f, a); err != nil || uid != uint32(os.Getuid()) {
					t.Errorf("%s: user %d, %v; want %d", way, uid, err, os.Getuid())
				}
			}
		})
	}
}

// An IPv6 socket that is connected to an IPv4 address is found as well.
func TestTheUserOfAnIPv6SocketWithIPv4Addresses(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	fd, err := syscall.Socket(syscall.AF_INET6, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	to := &syscall.SockaddrInet6{Port: ln.Addr().(*net.TCPAddr).Port}
	copy(to.Addr[:], net.ParseIP("::ffff:127.0.0.1").To16())
	if err := syscall.Connect(fd, to); err != nil {
		t.Fatal(err)
	}
	a, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	for way, f := range ways {
		if uid, err := owned(f, a); err != nil || uid != uint32(os.Getuid()) {
			t.Errorf("%s: user %d, %v; want %d", way, uid, err, os.Getuid())
		}
	}
}

// The kernel says user 0 of a socket that was closed: to be taken for root, it
// would suffice to connect, send and close.
func TestASocketThatWasClosedHasNoUser(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, accepted, peer *net.TCPConn){
		"closed": func(t *testing.T, a, p *net.TCPConn) { // FIN_WAIT2
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			readEOF(t, a)
		},
		"closed by both": func(t *testing.T, a, p *net.TCPConn) { // TIME_WAIT
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			readEOF(t, a)
			if err := a.CloseWrite(); err != nil {
				t.Fatal(err)
			}
		},
		"reset": func(t *testing.T, a, p *net.TCPConn) {
			if err := errors.Join(p.SetLinger(0), p.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for way, f := range ways {
				a, p := pair(t, "127.0.0.1:0", "127.0.0.1", "127.0.0.1")
				end(t, a, p)
				if uid, err := owned(f, a); !errors.Is(err, ErrGone) {
					t.Errorf("%s: user %d, %v", way, uid, err)
				}
			}
		})
	}
}

func readEOF(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
}

// For a connection that isn't there, the kernel tells of the listener at its port.
func TestAListenerIsNobodysPeer(t *testing.T) {
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	at := plain(ln.Addr().(*net.TCPAddr))
	for way, f := range ways {
		if s, err := f(at, netip.MustParseAddrPort("127.0.0.1:1")); !errors.Is(err, ErrGone) {
			t.Errorf("%s: %+v, %v", way, s, err)
		}
	}
}

func TestWhatIsToldOfASocketIsJudged(t *testing.T) {
	none := func(uint32) bool { return false }
	all := func(uint32) bool { return true }
	for _, tc := range []struct {
		s        socket
		unmapped func(uint32) bool
		want     error
	}{
		{socket{state: 1, uid: 5, inode: 7}, none, nil},
		{socket{state: 8, uid: 5, inode: 7}, none, nil},
		{socket{state: 1, uid: 5, inode: 0}, none, ErrGone},
		{socket{state: 2, uid: 5, inode: 7}, none, ErrGone},  // SYN_SENT: connected to nothing yet
		{socket{state: 6, uid: 0, inode: 7}, none, ErrGone},  // TIME_WAIT
		{socket{state: 10, uid: 5, inode: 7}, none, ErrGone}, // LISTEN
		{socket{state: 12, uid: 0, inode: 7}, none, ErrGone}, // NEW_SYN_RECV
		{socket{state: 1, uid: 65534, inode: 7}, all, ErrUnmapped},
	} {
		if uid, err := tc.s.owner(tc.unmapped); !errors.Is(err, tc.want) || err == nil && uid != tc.s.uid {
			t.Errorf("%+v: user %d, %v; want %v", tc.s, uid, err, tc.want)
		}
	}
}

func TestTablesThatMakeNoSense(t *testing.T) {
	for _, line := range []string{
		"",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
		"0: 0100007F:0016 0100007F:D431 01 00000000:00000000 00:00000000 00000000 -1 0 1 1",
		"0: 0100007F:0016 0100007F:D431 01 00000000:00000000 00:00000000 00000000 4294967296 0 1 1",
		"0: 0100007:0016 0100007F:D431 01 00000000:00000000 00:00000000 00000000 1 0 1 1",
		"0: 0100007F 0100007F:D431 01 00000000:00000000 00:00000000 00000000 1 0 1 1",
	} {
		if s, _, _, err := parseLine(line); err == nil {
			t.Errorf("%q is %+v", line, s)
		}
	}
	for _, reply := range [][]byte{nil, make([]byte, 15), {255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 16)} {
		if m, err := body(reply); err == nil {
			t.Errorf("%x has the body %x", reply, m)
		}
	}
	a := netip.MustParseAddrPort("127.0.0.1:1")
	if s, err := parseDiag(make([]byte, msgLen-1), a, a); err == nil {
		t.Errorf("a reply that is too short: %+v", s)
	}
}

// TestHelper is run in another process, with a connection as descriptor 3.
func TestHelper(t *testing.T) {
	want := os.Getenv("URNIC_PEERUID_WANT")
	if want == "" {
		t.Skip("this is for other tests to start")
	}
	f := os.NewFile(3, "connection")
	c, err := net.FileConn(f)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = c.Close(), f.Close() }()
	for way, f := range ways {
		uid, err := owned(f, c)
		got := fmt.Sprint(uid)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", way, got, want)
		}
	}
}

// Another user's socket is told as theirs; where that user has no ID, as nobody's;
// and in another network namespace it isn't found at all.
func TestTheUserIsTheOneOfThisNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("this needs root, to make a socket another user's")
		}
		t.Skip("this needs root, to make a socket another user's")
	}
	const other = 4242
	a, p := pair(t, "127.0.0.1:0", "127.0.0.1", "127.0.0.1")
	give(t, p, other)
	if uid, err := Of(a); err != nil || uid != other {
		t.Errorf("user %d, %v; want %d", uid, err, other)
	}
	one := []syscall.SysProcIDMap{{HostID: 0, Size: 1}}
	two := []syscall.SysProcIDMap{{HostID: 0, Size: 1}, {ContainerID: 77, HostID: other, Size: 1}}
	for name, tc := range map[string]struct {
		attr syscall.SysProcAttr
		want string
	}{
		"here":                           {syscall.SysProcAttr{}, "4242"},
		"where the user has another ID":  {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: two, GidMappings: one}, "77"},
		"where the user has no ID":       {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: one, GidMappings: one}, ErrUnmapped.Error()},
		"in another network's namespace": {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}, ErrGone.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := a.File()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+regexp.QuoteMeta("TestHelper")+"$", "-test.v")
			cmd.Env = append(os.Environ(), "URNIC_PEERUID_WANT="+tc.want)
			cmd.ExtraFiles = []*os.File{f}
			cmd.SysProcAttr = &tc.attr
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.EPERM) && os.Getenv("CI") == "" {
				t.Skipf("namespaces are not allowed here: %v", err)
			}
			if err != nil || !strings.Contains(string(out), "--- PASS: TestHelper") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// give makes a socket another user's, as if that user had connected.
func give(t *testing.T, c *net.TCPConn, uid int) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var cerr error
	if err := raw.Control(func(fd uintptr) { cerr = syscall.Fchown(int(fd), uid, -1) }); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
}
