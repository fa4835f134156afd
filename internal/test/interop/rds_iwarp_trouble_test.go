//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"urnic/internal/test/loopback"
	"urnic/ulp/rds"
)

// What happens to RDS's connection or its peer must not harm messages that were accepted.
func TestRDSOverIWARPWithLinuxInTrouble(t *testing.T) {
	linked(t, func(t *testing.T) {
		s := iwarpSides[0]
		theGuest.run(t, "rds-iwarp.sh up flow_control=1")
		t.Run("the module is reloaded", s.moduleIsReloaded)
		noBugs(t)
	})
}

// Some of what Linux on siw should survive, it does not always: then its krdsd waits for completions
// for ever, and rejects all requests. So this is a proof on demand.
func TestLinuxRDSOverIWARPAtItsLimits(t *testing.T) {
	linked(t, func(t *testing.T) {
		s := iwarpSides[0]
		theGuest.run(t, "rds-iwarp.sh up flow_control=1")
		t.Run("the connection is reset", s.connectionIsReset)
		t.Run("the device is removed", s.deviceIsRemoved)
		noBugs(t)
	})
}

// noBugs fails the test if the guest's kernel has complained of itself. siw warns when a device goes
// that is in use.
func noBugs(t *testing.T) {
	t.Helper()
	if out := theGuest.run(t, "dmesg | grep -A20 -E 'BUG:|BUG at|Oops|general protection' || true"); out != "" {
		t.Errorf("the guest's kernel complains:\n%s", out)
	}
}

// A cutter forwards connections to an address, and resets each of the first ones after some
// bytes from Linux: a reset before siw has accepted a connection trips a bug of the kernel.
type cutter struct {
	net.Listener
	dial  func() (net.Conn, error)
	dials bool         // Linux dials
	left  atomic.Int64 // how many are still to be reset
}

func (c *cutter) serve() {
	random := rand.New(rand.NewPCG(1, 2))
	for {
		in, err := c.Accept()
		if err != nil {
			return
		}
		after := int64(math.MaxInt64)
		if c.left.Load() > 0 {
			after = 20_000 + random.Int64N(200_000)
		}
		go c.forward(in, after)
	}
}

func (c *cutter) forward(in net.Conn, after int64) {
	out, err := c.dial()
	if err == nil {
		done := make(chan error, 2)
		carry := func(to, from net.Conn, most int64) {
			_, err := io.CopyN(to, from, most)
			done <- err
		}
		linux, ours := out, in
		if c.dials {
			linux, ours = in, out
		}
		go carry(ours, linux, after)
		go carry(linux, ours, math.MaxInt64)
		if <-done == nil {
			c.left.Add(-1)
		}
		reset(out)
	}
	reset(in)
}

// reset ends a connection without its last bytes.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0) // it may have ended
	_ = c.Close()
}

// newCutter makes a cutter that is ended with the test.
func newCutter(t *testing.T, listen, to string, dials bool, cuts int) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(lowerIPv4)}}
	c := &cutter{Listener: l, dial: func() (net.Conn, error) { return dialer.Dial("tcp", to) }, dials: dials}
	c.left.Store(int64(cuts))
	t.Cleanup(func() { _ = l.Close() })
	go c.serve()
	return c
}

// connectionIsReset resets connections of both sides in the midst of messages.
func (s sides) connectionIsReset(t *testing.T) {
	port := int(loopback.Port(t))
	own := net.JoinHostPort(s.ours, strconv.Itoa(port))
	const cuts = 6
	in := newCutter(t, net.JoinHostPort(s.ours, strconv.Itoa(rds.RDMAPort4)), own, true, cuts)
	out := newCutter(t, net.JoinHostPort(s.ours, "0"), net.JoinHostPort(s.theirs, strconv.Itoa(rds.RDMAPort4)), false, cuts)
	n := s.overIWARP(t, func(w *rds.IWARP) {
		w.Address, w.AnySource = own, true
		w.PeerAddress = func(netip.Addr) string { return out.Addr().String() }
	})
	s.bothWays(t, n, 5, 40, []int{100_000, 8, 4097, 30_000})
	if in.left.Load() == cuts && out.left.Load() == cuts {
		t.Error("no connection was reset")
	}
	s.wantDelivered(n)
}

// deviceIsRemoved takes the guest's siw device away from a connection that is up. Both sides
// accept messages meanwhile, which arrive when it is back. While messages are under way, Linux
// may wait for ever for the device to go.
func (s sides) deviceIsRemoved(t *testing.T) {
	n := s.overIWARP(t, nil)
	for i := range 3 {
		var back *process
		s.bothWays(t, n, 5, 40, []int{20_000, 8, 4097, 0}, func() {
			if i > 0 {
				theGuest.run(t, "rdma link delete siw1")
				back = theGuest.start(t, "sleep 0.5; rdma link add siw1 type siw netdev eth1")
			}
		})
		if i > 0 {
			back.wait()
			n.until(rds.Disconnected, i)
		}
	}
	s.wantDelivered(n)
}

// moduleIsReloaded ends the guest's programs, and RDS with all that it knows, and begins anew.
func (s sides) moduleIsReloaded(t *testing.T) {
	n := s.overIWARP(t, nil)
	ctx, cancel := n.patient()
	defer cancel()
	first := s.rdspeer(t, "-p %d -c 1000000 recv", guestPort)
	first.expect("ready")
	from, to := n.bind(ourPort, 1, rds.SendBuffer(64<<10))[0], n.bind(ourPort+1, 1)[0]
	sending, stop := context.WithCancel(ctx)
	sent := make(chan uint64)
	go func() {
		var i uint64
		for ; ; i++ {
			if err := from.SendTo(sending, rdsMessage(2000, i), at(s.theirs, guestPort)); err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				break
			}
		}
		sent <- i
	}()
	send := s.rdspeer(t, "-p %d -c 1000000 -s 3000 -A %s -P %d send", guestPort+1, s.ours, ourPort+1)
	flows := map[uint16]*rdsFlow{}
	receive := func(port uint16, count int) {
		for flows[port] == nil || flows[port].messages < count {
			msg, err := to.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			f := flows[msg.Addr.Port]
			if f == nil {
				f = &rdsFlow{}
				flows[msg.Addr.Port] = f
			}
			f.add(msg.Data)
		}
	}
	receive(guestPort+1, 100)
	send.end()
	first.end()
	reloadRDMA(t, "flow_control=1")

	const count = 200
	second := s.rdspeer(t, "-p %d -c %d recv", guestPort, count)
	second.expect("ready")
	again := s.rdspeer(t, "-p %d -c %d -s 3000 -A %s -P %d send", guestPort+2, count, s.ours, ourPort+1)
	receive(guestPort+2, count)
	for port, f := range flows {
		if f.lost+f.doubled+f.wrong > 0 {
			t.Errorf("of %d messages from port %d, %d are lost, %d doubled, %d changed", f.messages, port, f.lost, f.doubled, f.wrong)
		}
	}
	again.end()
	// What came while nobody had the port was dropped. From then on nothing is missing.
	var bytes, began, lost, doubled, wrong int
	_, line, _ := strings.Cut(second.expect("pair "), "messages=")
	if _, err := fmt.Sscanf(line, strconv.Itoa(count)+" bytes=%d first=%d lost=%d doubled=%d wrong=%d", &bytes, &began, &lost, &doubled, &wrong); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if lost != began || doubled+wrong > 0 || began == 0 {
		t.Errorf("after the reload came: %s", line)
	}
	stop()
	t.Logf("%d messages sent, the first after the reload is %d", <-sent, began)
	n.flush([]*rds.Socket{from})
	s.wantDelivered(n)
}
