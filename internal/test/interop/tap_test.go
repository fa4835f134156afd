//go:build interop

package interop

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"urnic/internal/test/ownnet"
)

// QEMU's user-mode network ends TCP connections and makes its own. Peers of RDS must see each
// other's true addresses, so a guest can have a second interface, whose other end is a tap
// device of a network that the test has for itself.
const (
	tap       = "tap0"
	tapMAC    = "02:00:00:00:09:01"
	guestMAC  = "02:00:00:00:09:02"
	guestIPv4 = "10.9.0.2"
	guestIPv6 = "fd09::2"
	lowerIPv4 = "10.9.0.1" // ours: below the guest's, and above
	upperIPv4 = "10.9.0.3"
	lowerIPv6 = "fd09::1"
	upperIPv6 = "fd09::3"
)

// linked runs a test in a network of its own, in a process that boots a guest for itself:
// there, theGuest is at 10.9.0.2 and fd09::2.
func linked(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if !ownnet.Inside() {
		if err := tunDevice(); err != nil {
			t.Fatal(err)
		}
	}
	ownnet.Run(t, func(t *testing.T) {
		if err := makeTap(); err != nil {
			t.Fatal(err)
		}
		var err error
		if theGuest, err = boot("interop", nil, "-t", tap); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := theGuest.down(); err != nil {
				t.Error(err)
			}
		})
		f(t)
	})
}

// tunDevice makes /dev/net/tun, which containers lack.
func tunDevice() error {
	const name = "/dev/net/tun"
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll("/dev/net", 0o755); err != nil {
		return err
	}
	if err := unix.Mknod(name, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	return nil
}

// makeTap makes the tap device.
func makeTap() error {
	commands := []string{
		"tuntap add dev " + tap + " mode tap",
		"link set " + tap + " address " + tapMAC + " up",
	}
	for _, a := range []string{lowerIPv4 + "/24", upperIPv4 + "/24"} {
		commands = append(commands, "addr add "+a+" dev "+tap)
	}
	for _, a := range []string{lowerIPv6 + "/64", upperIPv6 + "/64"} {
		commands = append(commands, "addr add "+a+" dev "+tap+" nodad")
	}
	for _, a := range []string{guestIPv4, guestIPv6} {
		commands = append(commands, "neigh add "+a+" lladdr "+guestMAC+" dev "+tap)
	}
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making %s: %w: %s", tap, err, out)
	}
	return nil
}

// Both ends of a connection see the true addresses.
func TestAddressesOverTheTap(t *testing.T) {
	linked(t, func(t *testing.T) {
		for _, pair := range [][2]string{
			{lowerIPv4, guestIPv4},
			{upperIPv4, guestIPv4},
			{lowerIPv6, guestIPv6},
			{upperIPv6, guestIPv6},
		} {
			ours, theirs := netip.MustParseAddr(pair[0]), netip.MustParseAddr(pair[1])
			listen := fmt.Sprintf("TCP4-LISTEN:%d,reuseaddr,bind=%v", portOps, theirs)
			if theirs.Is6() {
				listen = fmt.Sprintf("TCP6-LISTEN:%d,reuseaddr,bind=[%v]", portOps, theirs)
			}
			// socat puts the addresses into variables.
			p := theGuest.start(t, "socat '"+listen+"' 'SYSTEM:echo $SOCAT_PEERADDR'")
			theGuest.listens(t, portOps)
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: ours.AsSlice()}}
			c, err := d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(theirs, portOps).String())
			if err != nil {
				t.Fatal(err)
			}
			line, err := io.ReadAll(c)
			if err != nil {
				t.Error(err)
			}
			_ = c.Close()
			seen, err := netip.ParseAddr(strings.Trim(string(line), "[]\n"))
			if err != nil || seen != ours {
				t.Errorf("the guest takes %v for %q", ours, line)
			}
			p.wait()
		}
	})
}
