//go:build interop

package interop

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"urnic/ulp/rds"
)

// sides are the addresses of a node of ours and of the guest.
type sides struct{ name, ours, theirs string }

// addressPairs are what decides who dials: the node with the lower address.
var addressPairs = []sides{
	{"lower", lowerIPv4, guestIPv4},
	{"higher", upperIPv4, guestIPv4},
	{"IPv6 lower", lowerIPv6, guestIPv6},
	{"IPv6 higher", upperIPv6, guestIPv6},
}

// rdsSizes are of messages: around the fragments of RDS over RDMA, TCP's segments and buffers, and the longest.
var rdsSizes = []int{0, 1, 7, 8, 100, 1447, 4095, 4096, 4097, 65_535, 65_536, 300_000, 1<<20 - 1, 1 << 20}

// The ports of the guest's sockets, and of ours.
const (
	guestPort = 4000
	ourPort   = 5000
)

// overTCP opens a node of RDS over TCP, and has the guest forget what it knew of its address.
func (s sides) overTCP(t *testing.T) *rdsNode {
	t.Helper()
	reloadRDS(t)
	return openRDS(t, rds.Config{Addr: netip.MustParseAddr(s.ours), Transports: []rds.Transport{&rds.TCP{}}})
}

// reloadRDS loads Linux's RDS over TCP anew.
func reloadRDS(t *testing.T) {
	t.Helper()
	theGuest.run(t, `[ ! -e /sys/module/rds_tcp ] || rmmod rds_tcp rds; modprobe rds_tcp`)
}

// rdspeer starts a command of rdspeer.
func (s sides) rdspeer(t testing.TB, format string, args ...any) *process {
	t.Helper()
	return theGuest.start(t, fmt.Sprintf("exec rdspeer -a %s ", s.theirs)+fmt.Sprintf(format, args...))
}

func sizeList(sizes []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(sizes), " ", ","), "[]")
}

func TestRDSOverTCPWithLinux(t *testing.T) {
	linked(t, func(t *testing.T) {
		for _, s := range addressPairs {
			t.Run(s.name, func(t *testing.T) {
				t.Run("we ask first", s.weAsk)
				t.Run("Linux asks first", s.linuxAsks)
				t.Run("hundreds of sockets", s.hundreds)
				t.Run("pings", s.pings)
				t.Run("types of service", s.oneForAllTypes)
				t.Run("Linux is congested", s.linuxCongested)
				t.Run("we are congested", s.linuxWaits)
				if s.ours == lowerIPv4 || s.ours == upperIPv4 {
					t.Run("connections are cut", s.cut)
					t.Run("Linux restarts", s.linuxRestarts)
					t.Run("we restart", s.weRestart)
				}
				if s.ours == lowerIPv4 {
					t.Run("the network loses and changes packets", s.lossy)
				}
			})
		}
	})
}

// weAsk sends messages of all sizes to Linux, which echoes them.
func (s sides) weAsk(t *testing.T) {
	n := s.overTCP(t)
	p := s.rdspeer(t, "-p %d echo", guestPort)
	p.expect("ready")
	n.echoes(n.bind(ourPort, 1, rds.SendBuffer(4<<20))[0], at(s.theirs, guestPort))
	n.wantNone(rds.PeerViolation, rds.MessageLost, rds.NoSocket, rds.PeerRestarted)
}

// echoes sends a message of each size, by default all of rdsSizes, and wants it back.
func (n *rdsNode) echoes(socket *rds.Socket, to rds.Addr, sizes ...int) {
	n.t.Helper()
	if len(sizes) == 0 {
		sizes = rdsSizes
	}
	ctx, cancel := n.patient()
	defer cancel()
	for i, size := range sizes {
		b := rdsMessage(size, uint64(i))
		if err := socket.SendTo(ctx, b, to); err != nil {
			n.t.Fatal(err)
		}
		msg, err := socket.Receive(ctx)
		if err != nil {
			n.t.Fatal(err)
		}
		if !bytes.Equal(msg.Data, b) || msg.Addr != to {
			n.t.Errorf("%d bytes came back as %d bytes from %v", size, len(msg.Data), msg.Addr)
		}
	}
	n.flush([]*rds.Socket{socket})
}

// linuxAsks has Linux send messages of all sizes, which we echo.
func (s sides) linuxAsks(t *testing.T) {
	n := s.overTCP(t)
	socket := n.bind(ourPort, 1, rds.SendBuffer(4<<20))[0]
	p := s.rdspeer(t, "-p %d -A %s -P %d -s %s ask", guestPort, s.ours, ourPort, sizeList(rdsSizes))
	ctx, cancel := n.patient()
	defer cancel()
	for range rdsSizes {
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := socket.SendTo(ctx, msg.Data, msg.Addr); err != nil {
			t.Fatal(err)
		}
	}
	p.expect(fmt.Sprintf("end echoes=%d", len(rdsSizes)))
	p.wait()
	n.wantNone(rds.PeerViolation, rds.MessageLost, rds.NoSocket, rds.PeerRestarted)
}
