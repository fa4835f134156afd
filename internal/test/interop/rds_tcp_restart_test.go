//go:build interop

package interop

import (
	"fmt"
	"net/netip"
	"testing"

	"urnic/ulp/rds"
)

// linuxRestarts unloads Linux's RDS over TCP and loads it again while messages are sent to it.
// Its sockets are gone with it; a new one receives what is sent from then on, in order and nothing twice.
func (s sides) linuxRestarts(t *testing.T) {
	const messages, size = 300, 5000
	n := s.overTCP(t)
	sockets := n.bind(ourPort, 1)
	before := s.rdspeer(t, "-p %d -c %d recv", guestPort, 1<<30)
	before.expect("ready")
	sent := make(chan map[rdsPair]*rdsFlow, 1)
	n.sendNumbered(sockets, at(s.theirs, guestPort), 1, []int{size}) // both know each other
	n.flush(sockets)
	go func() { sent <- n.sendNumbered(sockets, at(s.theirs, guestPort), messages, []int{size}) }()
	before.end()
	reloadRDS(t)
	after := s.rdspeer(t, "-p %d -c %d recv", guestPort, 1<<30)
	after.expect("ready")
	<-sent
	// What comes after the restart comes whole.
	n.flush(sockets)
	marked := n.bind(ourPort+1, 1)
	flow := n.sendNumbered(marked, at(s.theirs, guestPort), messages, []int{size})
	n.flush(marked)
	out := after.end()
	want := fmt.Sprintf("pair from=%d to=%d messages=%d bytes=%d first=0 lost=0 doubled=0 wrong=0 sha256=%s",
		ourPort+1, guestPort, messages, messages*size, flow[rdsPair{ourPort + 1, guestPort}].sha256())
	if !containsAll(out, []string{want}) {
		t.Errorf("want %q:\n%s", want, out)
	}
	n.wantNone(rds.PeerViolation)
}

// weRestart closes the node while Linux sends to it, and opens it again: Linux goes on, and
// what it sends to either node comes in order, and nothing twice.
func (s sides) weRestart(t *testing.T) {
	const messages, size = 400, 5000
	first := s.overTCP(t)
	socket := first.bind(weReceive, 1)[0]
	// A small send buffer keeps Linux from having sent all before the restart.
	p := s.rdspeer(t, "-p %d -A %s -P %d -c %d -s %d -B 60000 send", guestSends, s.ours, weReceive, messages, size)
	ctx, cancel := first.patient()
	defer cancel()
	flow := &rdsFlow{}
	for range messages / 4 {
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		flow.add(msg.Data)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := openRDS(t, rds.Config{Addr: netip.MustParseAddr(s.ours), Transports: []rds.Transport{&rds.TCP{}}})
	socket = again.bind(weReceive, 1)[0]
	// What the first node had and nobody had read is lost with it. What it had not acknowledged any more
	// comes again, even if it was read: the second node cannot know. From its first message on, all come.
	second := &rdsFlow{}
	for second.next < messages {
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatalf("after message %d: %v", second.next, err)
		}
		second.add(msg.Data)
		if second.messages == 1 || second.next <= flow.next+1 { // what the first node has received need not come again
			second.lost = 0
		}
	}
	if flow.lost+flow.doubled+flow.wrong > 0 {
		t.Errorf("before the restart, of %d messages %d are lost, %d doubled, %d changed", flow.next, flow.lost, flow.doubled, flow.wrong)
	}
	if second.lost+second.doubled+second.wrong > 0 || flow.messages+second.messages < messages/2 {
		t.Errorf("after the restart came %d of %d messages: %d are lost, %d doubled, %d changed", second.messages, messages, second.lost, second.doubled, second.wrong)
	}
	p.expect("sent messages=")
	again.wantNone(rds.PeerViolation)
}
