package rendezvous

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A host is a network namespace, with a thread in it that does what must be done there.
type host struct {
	todo  chan func()
	addrs []netip.Addr
	tid   int
}

// newHost makes a host. It lasts as long as the test.
func newHost(t *testing.T, addrs ...string) *host {
	t.Helper()
	h := &host{todo: make(chan func())}
	for _, a := range addrs {
		h.addrs = append(h.addrs, netip.MustParseAddr(a))
	}
	begun := make(chan error)
	over := make(chan struct{})
	go func() {
		defer close(over)
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		h.tid = unix.Gettid()
		begun <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range h.todo {
			f()
		}
	}()
	if err := <-begun; err != nil {
		t.Fatalf("a network namespace: %v", err)
	}
	t.Cleanup(func() {
		close(h.todo)
		<-over
	})
	return h
}

// do carries f out at the host.
func (h *host) do(f func()) {
	done := make(chan struct{})
	h.todo <- func() { defer close(done); f() }
	<-done
}

// ip runs the command ip at the host.
func (h *host) ip(t *testing.T, line string) {
	t.Helper()
	var out []byte
	var err error
	h.do(func() { out, err = exec.CommandContext(t.Context(), "ip", strings.Fields(line)...).CombinedOutput() })
	if err != nil {
		t.Fatalf("ip %s: %v\n%s", line, err, out)
	}
}

// twoHosts makes two hosts with one link. Each has two addresses of each family there.
func twoHosts(t *testing.T) (a, b *host) {
	t.Helper()
	needsRoot(t, "to make two hosts")
	if _, err := exec.LookPath("ip"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("this needs iproute2, to make two hosts")
		}
		t.Skip("this needs iproute2, to make two hosts")
	}
	a = newHost(t, "192.0.2.1", "192.0.2.3", "2001:db8::1", "2001:db8::3")
	b = newHost(t, "192.0.2.2", "192.0.2.4", "2001:db8::2", "2001:db8::4")
	// In a process of its own namespace only the thread is there, hence its ID.
	a.ip(t, "link add name wire type veth peer name wire netns "+strconv.Itoa(b.tid))
	for _, h := range []*host{a, b} {
		h.ip(t, "link set lo up")
		h.ip(t, "link set wire up")
		for _, addr := range h.addrs {
			if addr.Is4() {
				h.ip(t, "addr add "+addr.String()+"/24 dev wire")
			} else {
				h.ip(t, "addr add "+addr.String()+"/64 dev wire nodad")
			}
		}
	}
	return a, b
}

// config makes a matchmaker one of the host.
func (h *host) config(c *Config) {
	c.Reserve = func(ctx context.Context, address string) (p Port, err error) {
		h.do(func() { p, err = reserveTCP(ctx, address) })
		return p, err
	}
	c.Dial = func(ctx context.Context, from netip.Addr, to netip.AddrPort) (conn net.Conn, err error) {
		h.do(func() { conn, err = dialTCP(ctx, from, to) })
		return conn, err
	}
	c.Local = func(a netip.Addr) bool { return a.IsLoopback() || slices.Contains(h.addrs, a) }
	c.SameUser = func(local, remote net.Addr) (same bool) {
		h.do(func() { same = sameUser(local, remote) })
		return same
	}
}

// Between two hosts, the address that the program has named is the peer's, and no other
// one, even if its owner knows the PSN. On one host, any address of it is.
func TestAddressesOfTwoHosts(t *testing.T) {
	one, two := twoHosts(t)
	for name, tt := range map[string]struct {
		far      *host
		from, at string // of the peer: where it is, as the program says, and where the stranger is
		stranger *host
		as       string
	}{
		"IPv4":                    {two, "192.0.2.1", "192.0.2.2", two, "192.0.2.4"},
		"IPv6":                    {two, "2001:db8::1", "2001:db8::2", two, "2001:db8::4"},
		"not first":               {two, "192.0.2.3", "192.0.2.2", two, "192.0.2.4"},
		"one host":                {one, "192.0.2.1", "192.0.2.1", two, "192.0.2.2"},
		"one host, two addresses": {one, "192.0.2.1", "192.0.2.3", two, "192.0.2.2"},
		"one host, IPv6":          {one, "2001:db8::1", "2001:db8::3", two, "2001:db8::2"},
		"one host, no GID":        {one, "", "", two, "192.0.2.2"},
	} {
		for _, psn := range []uint32{0, 0xabcdef} {
			t.Run(name, func(t *testing.T) {
				a, b := newReal(t, 5, one.config), newReal(t, psn, tt.far.config)
				port, _ := a.m.cfg.port(a.num)
				var c net.Conn
				var err error
				as, to := netip.MustParseAddr(tt.as), one.addrs[0]
				if as.Is6() {
					to = one.addrs[2]
				}
				tt.stranger.do(func() { c, err = dialTCP(t.Context(), as, netip.AddrPortFrom(to, port)) })
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				frame, err := askFrame(Message{Kind: Ask, From: b.num, To: a.num, HasPSN: true, PSN: psn})
				if err == nil {
					_, err = c.Write(frame)
				}
				if err != nil {
					t.Fatal(err)
				}
				a.holds(t, 1)
				var from, at netip.Addr
				if tt.at != "" {
					from, at = netip.MustParseAddr(tt.from), netip.MustParseAddr(tt.at)
				}
				a.up(t, b, from, at)
				b.up(t, a, at, from)
				wantTogether(t, a, b)
				a.ep.Close()
				if accepted(c) {
					t.Error("the stranger was accepted")
				}
			})
		}
	}
}

// A process that can be called at one address only is not called at others.
func TestOneAddressOfAHost(t *testing.T) {
	one, two := twoHosts(t)
	at := one.addrs[1]
	a := newReal(t, 5, func(c *Config) { one.config(c); c.Address = at })
	b := newReal(t, 6, two.config)
	port, _ := a.m.cfg.port(a.num)
	for _, addr := range one.addrs {
		var err error
		two.do(func() {
			var c net.Conn
			if c, err = dialTCP(t.Context(), netip.Addr{}, netip.AddrPortFrom(addr, port)); err == nil {
				_ = c.Close()
			}
		})
		if (err == nil) != (addr == at) {
			t.Errorf("a call at %v: %v", addr, err)
		}
	}
	a.up(t, b, at, two.addrs[0])
	b.up(t, a, two.addrs[0], at)
	wantTogether(t, a, b)
}
