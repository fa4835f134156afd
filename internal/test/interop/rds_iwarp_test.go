//go:build interop

package interop

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"urnic/ulp/rds"
)

// TestRDSOverIWARPWithLinux has rds_rdma over siw as the peer.
func TestRDSOverIWARPWithLinux(t *testing.T) {
	linked(t, func(t *testing.T) {
		theGuest.run(t, "rds-iwarp.sh up")
		for _, s := range iwarpSides {
			t.Run(s.name, func(t *testing.T) {
				atLinux(t, "we dial", s.weDial)
				atLinux(t, "Linux dials", s.linuxDials)
			})
		}
		s := iwarpSides[0]
		atLinux(t, "ping", s.ping)
		atLinux(t, "hundreds of sockets", s.hundredsOfSockets)
		atLinux(t, "Linux is congested", s.linuxIsCongested)
		atLinux(t, "we are congested", s.weAreCongested)
		atLinux(t, "Linux offers memory", s.linuxOffers)
		atLinux(t, "we offer memory", s.weOffer)
		atLinux(t, "types of service", s.typesOfService)
		t.Run("scarce credits", s.scarceCredits)
		t.Run("duel", s.duel)
		t.Run("duel that Linux wins", iwarpSides[2].duel)
		wantHealthy(t)
	})
}

// atLinux runs a test against Linux on siw, which is on either side of connections. When a connection has
// broken, Linux may reject all others for ever, and then its module can't be removed. So the next run is
// with a guest that has just booted.
func atLinux(t *testing.T, name string, f func(t testing.TB)) {
	t.Run(name, func(t *testing.T) {
		withSIWRevived(t, anySide, func() {
			if err := errors.Join(theGuest.kill(), theGuest.up()); err != nil {
				t.Fatal(err)
			}
			theGuest.run(t, "rds-iwarp.sh up")
		}, f)
	})
}

// Over RDMA it is not the addresses that decide who dials, unless both do at once.
var iwarpSides = []sides{{"IPv4", lowerIPv4, guestIPv4}, {"IPv6", lowerIPv6, guestIPv6}, {"higher", upperIPv4, guestIPv4}}

// overIWARP opens a node of RDS over iWARP.
func (s sides) overIWARP(t testing.TB, change func(*rds.IWARP)) *rdsNode {
	t.Helper()
	iwarp := &rds.IWARP{Device: newDevice(t)}
	if change != nil {
		change(iwarp)
	}
	return openRDS(t, rds.Config{Addr: netip.MustParseAddr(s.ours), Transports: []rds.Transport{iwarp}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

// reloadRDMA loads Linux's RDS over RDMA anew, so that it knows no peer, with settings of
// net.rds.ib.
func reloadRDMA(t testing.TB, settings ...string) {
	t.Helper()
	theGuest.run(t, "rds-iwarp.sh down && rds-iwarp.sh up "+strings.Join(settings, " "))
}

// connected returns how often Linux says that it has connected, as the active side or the passive one.
func connected(t testing.TB, role string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(theGuest.run(t, "dmesg | grep -c '"+role+" conn connected' || true")))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// wantHealthy checks that the guest's kernel has complained of nothing.
func wantHealthy(t testing.TB) {
	t.Helper()
	if out := theGuest.run(t, "dmesg | grep -A20 -E 'WARNING:|BUG:|Oops|general protection' || true"); out != "" {
		t.Errorf("the guest's kernel complains:\n%s", out)
	}
}

// wantDelivered is wantQuiet where Linux's map changes: Linux sends it from where it changes it,
// and siw's CRC may then be that of another map.
func (s sides) wantDelivered(n *rdsNode) {
	n.t.Helper()
	n.wantNone(rds.MessageLost, rds.PeerRestarted)
}

func (s sides) wantQuiet(n *rdsNode) {
	n.t.Helper()
	n.wantNone(rds.PeerViolation, rds.MessageLost, rds.PeerRestarted)
}

func (s sides) weDial(t testing.TB) {
	reloadRDMA(t)
	passive := connected(t, "Passive")
	n := s.overIWARP(t, nil)
	p := s.rdspeer(t, "-p %d echo", guestPort)
	p.expect("ready")
	n.echoes(n.bind(ourPort, 1, rds.SendBuffer(4<<20))[0], at(s.theirs, guestPort))
	s.wantQuiet(n)
	if got := connected(t, "Passive") - passive; got != 1 {
		t.Errorf("we have connected %d times; want 1", got)
	}
}

func (s sides) linuxDials(t testing.TB) {
	reloadRDMA(t)
	active := connected(t, "Active")
	n := s.overIWARP(t, nil)
	s.answersLinux(t, n, rdsSizes)
	s.wantQuiet(n)
	if got := connected(t, "Active") - active; got != 1 {
		t.Errorf("Linux has connected %d times; want 1", got)
	}
}

// answersLinux echoes messages of all sizes that Linux sends.
func (s sides) answersLinux(t testing.TB, n *rdsNode, sizes []int) {
	t.Helper()
	socket := n.bind(ourPort, 1, rds.SendBuffer(4<<20))[0]
	p := s.rdspeer(t, "-p %d -A %s -P %d -s %s ask", guestPort, s.ours, ourPort, sizeList(sizes))
	ctx, cancel := n.patient()
	defer cancel()
	for range sizes {
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := socket.SendTo(ctx, msg.Data, msg.Addr); err != nil {
			t.Fatal(err)
		}
	}
	p.expect(fmt.Sprintf("end echoes=%d", len(sizes)))
	p.wait()
}

func (s sides) ping(t testing.TB) {
	n := s.overIWARP(t, nil)
	ctx, cancel := n.patient()
	defer cancel()
	socket := n.bind(ourPort, 1)[0]
	for range 5 {
		if err := socket.SendTo(ctx, []byte("ignored"), at(s.theirs, 0)); err != nil {
			t.Fatal(err)
		}
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(msg.Data) != 0 || msg.Addr != at(s.theirs, 0) {
			t.Errorf("a ping is answered by %d bytes from %v", len(msg.Data), msg.Addr)
		}
	}
	out := s.rdspeer(t, "-A %s -c 5 ping", s.ours).wait()
	if got := strings.Count(out, "pong size=0 port=0"); got != 5 {
		t.Errorf("%d of Linux's 5 pings are answered:\n%s", got, out)
	}
	s.wantQuiet(n)
}

// bothWays has both sides send at the same time, from each of so many sockets to one of the
// other side. It calls meanwhile when the guest has its sockets.
func (s sides) bothWays(t testing.TB, n *rdsNode, sockets, count int, sizes []int, meanwhile ...func()) {
	t.Helper()
	const apart = 1000 // from the ports of the other direction
	recv := s.rdspeer(t, "-p %d -n %d -c %d recv", guestPort, sockets, sockets*count)
	recv.expect("ready")
	from, to := n.bind(ourPort, sockets, rds.SendBuffer(4<<20)), n.bind(ourPort+apart, sockets)
	send := s.rdspeer(t, "-p %d -n %d -c %d -s %s -A %s -P %d send", guestPort+apart, sockets, count, sizeList(sizes), s.ours, ourPort+apart)
	if send.expect("ready"); len(meanwhile) > 0 {
		meanwhile[0]()
	}
	came := make(chan map[rdsPair]*rdsFlow)
	go func() { came <- n.recvNumbered(to, count) }()
	sent := n.sendNumbered(from, at(s.theirs, guestPort), count, sizes)
	n.flush(from)
	recv.expect(fmt.Sprintf("end messages=%d pairs=%d", sockets*count, sockets))
	wantSame(t, sent, recv)
	got := <-came
	send.expect("sent messages=")
	wantSame(t, got, send)
	send.end()
	for _, socket := range append(from, to...) {
		if err := socket.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (s sides) hundredsOfSockets(t testing.TB) {
	n := s.overIWARP(t, nil)
	s.bothWays(t, n, 300, 20, []int{8, 100, 5000, 0, 64})
	s.wantDelivered(n)
}

func (s sides) linuxIsCongested(t testing.TB) {
	n := s.overIWARP(t, nil)
	ctx, cancel := n.patient()
	defer cancel()
	const count = 200
	recv := s.rdspeer(t, "-p %d -c %d -b 8192 -w 1500 recv", guestPort, count)
	recv.expect("ready")
	// A small send buffer has the sender wait for acknowledgements, with which the map comes.
	socket := n.bind(ourPort, 1, rds.SendBuffer(16<<10))[0]
	refused := 0
	for i := range uint64(count) {
		msg := &rds.Message{Addr: at(s.theirs, guestPort), Data: rdsMessage(1000, i)}
		_, err := socket.Send(ctx, msg, rds.NoWait())
		for errors.Is(err, rds.ErrBufferFull) {
			n.flush([]*rds.Socket{socket})
			_, err = socket.Send(ctx, msg, rds.NoWait())
		}
		if errors.Is(err, rds.ErrCongested) {
			refused++
			_, err = socket.Send(ctx, msg) // waits
		}
		if err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	n.flush([]*rds.Socket{socket})
	if refused == 0 {
		t.Error("the port has never been congested")
	}
	n.until(rds.Uncongested, 1)
	if out := recv.wait(); !strings.Contains(out, fmt.Sprintf("messages=%d bytes=%d first=0 lost=0 doubled=0 wrong=0", count, count*1000)) {
		t.Errorf("%s", out)
	}
	s.wantDelivered(n)
}

func (s sides) weAreCongested(t testing.TB) {
	n := s.overIWARP(t, nil)
	const count = 200
	socket := n.bind(ourPort, 1, rds.ReceiveBuffer(8192))[0]
	send := s.rdspeer(t, "-p %d -c %d -s 1000 -B 16384 -A %s -P %d send", guestPort, count, s.ours, ourPort)
	send.expect("congested socket=0")
	got := n.recvNumbered([]*rds.Socket{socket}, count)
	send.expect("uncongested socket=0")
	send.expect("sent messages=")
	wantSame(t, got, send)
	send.end()
	s.wantDelivered(n)
}

func (s sides) typesOfService(t testing.TB) {
	reloadRDMA(t)
	n := s.overIWARP(t, nil)
	ctx, cancel := n.patient()
	defer cancel()
	echo := s.rdspeer(t, "-p %d echo", guestPort)
	echo.expect("ready")
	socket := n.bind(ourPort, 1)[0]
	for _, tos := range []uint8{0, 3, 200} {
		to := at(s.theirs, guestPort)
		to.TOS = tos
		if err := socket.SendTo(ctx, []byte("served"), to); err != nil {
			t.Fatal(err)
		}
		// An echo has the type of service of the socket that sends it.
		msg, err := socket.Receive(ctx)
		if err != nil || !bytes.Equal(msg.Data, []byte("served")) || msg.Addr != at(s.theirs, guestPort) {
			t.Errorf("type of service %d: %+v, %v", tos, msg, err)
		}
	}
	echo.end()
	for _, tos := range []uint8{5, 3} { // a connection of Linux's own, and one that we have made
		p := s.rdspeer(t, "-p %d -A %s -P %d -T %d ask", guestPort+int(tos), s.ours, ourPort, tos)
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if msg.Addr.TOS != tos {
			t.Errorf("Linux's message with type of service %d has %d here", tos, msg.Addr.TOS)
		}
		if err := socket.SendTo(ctx, msg.Data, msg.Addr); err != nil {
			t.Fatal(err)
		}
		p.wait()
	}
	for _, tos := range []int{0, 3, 5, 200} {
		line := fmt.Sprintf("conn connected <::ffff:%s,::ffff:%s,%d>", s.theirs, s.ours, tos)
		if out := theGuest.run(t, "dmesg | tail -n 60"); !strings.Contains(out, line) {
			t.Errorf("Linux does not say %q:\n%s", line, out)
		}
	}
	s.wantQuiet(n)
}

// scarceCredits has 32 receives on either side, for messages of up to 15 fragments.
func (s sides) scarceCredits(t *testing.T) {
	sizes := []int{8, 4097, 60_000, 0}
	for name, change := range map[string]func(*rds.IWARP){
		"as many":         func(w *rds.IWARP) { w.Receives = 32 },
		"few":             func(w *rds.IWARP) { w.Receives = 8 },
		"no flow control": func(w *rds.IWARP) { w.NoCredits = true },
	} {
		atLinux(t, name, func(t testing.TB) {
			settings := []string{"max_recv_wr=32", "flow_control=1"}
			if name == "no flow control" {
				settings = []string{"max_recv_wr=1024", "flow_control=1"}
			}
			reloadRDMA(t, settings...)
			n := s.overIWARP(t, change)
			s.bothWays(t, n, 3, 12, sizes)
			s.wantDelivered(n)
			flow := strings.Contains(theGuest.run(t, "dmesg | grep 'conn connected' | tail -n 1"), "flow control")
			if want := name != "no flow control"; flow != want {
				t.Errorf("flow control: %v; want %v", flow, want)
			}
		})
	}
}

// duel has both sides send their first message at once. Of two connections one is left, and siw must not
// have lost its listener with the other.
func (s sides) duel(t *testing.T) {
	for range 3 {
		atLinux(t, "", func(t testing.TB) {
			reloadRDMA(t)
			n := s.overIWARP(t, nil)
			s.bothWays(t, n, 3, 3, []int{8, 5000})
			s.wantQuiet(n)
			theGuest.run(t, fmt.Sprintf("ss -tln | grep '%%eth1:%d '", rds.RDMAPort4))
		})
	}
}
