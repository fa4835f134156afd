//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"urnic/ulp/rds"
)

// Ports of sockets for what Linux sends and we receive.
const (
	guestSends = 6000
	weReceive  = 7000
)

// hundreds exchanges messages over hundreds of sockets, both ways at once.
func (s sides) hundreds(t *testing.T) {
	const sockets, messages = 200, 25
	n := s.overTCP(t)
	f := n.flows(s, sockets, messages, []int{0, 1, 64, 1000, 4096, 20_000})
	f.run()
	n.wantOnePath()
	n.wantNone(rds.PeerViolation, rds.MessageLost, rds.NoSocket, rds.PeerRestarted)
}

// flows are messages between sockets of ours and of Linux, both ways.
type flows struct {
	n            *rdsNode
	messages     int // from each socket
	sizes        []int
	ours, theirs []*rds.Socket // that send, and that receive
	recv, send   *process
	to           rds.Addr
}

// flows binds the sockets.
func (n *rdsNode) flows(s sides, sockets, messages int, sizes []int) *flows {
	n.t.Helper()
	f := &flows{n: n, messages: messages, sizes: sizes, to: at(s.theirs, guestPort)}
	f.ours, f.theirs = n.bind(ourPort, sockets), n.bind(weReceive, sockets)
	f.recv = s.rdspeer(n.t, "-p %d -n %d -c %d recv", guestPort, sockets, sockets*messages)
	f.recv.expect("ready")
	f.send = s.rdspeer(n.t, "-p %d -n %d -c %d -s %s -A %s -P %d send", guestSends, sockets, messages, sizeList(sizes), s.ours, weReceive)
	return f
}

// run exchanges the messages, and checks that each has come once and in order.
func (f *flows) run() {
	f.n.t.Helper()
	sent := make(chan map[rdsPair]*rdsFlow, 1)
	go func() {
		sent <- f.n.sendNumbered(f.ours, f.to, f.messages, f.sizes)
	}()
	received := f.n.recvNumbered(f.theirs, f.messages)
	ours := <-sent
	if f.n.t.Failed() {
		f.n.t.FailNow()
	}
	f.n.flush(f.ours)
	f.recv.wait()
	wantSame(f.n.t, ours, f.recv)
	f.send.expect("sent messages=")
	wantSame(f.n.t, received, f.send)
	// A message that came twice would be there now: Linux has sent all.
	for _, s := range f.theirs {
		if msg, err := s.TryReceive(); !errors.Is(err, rds.ErrEmpty) {
			f.n.t.Errorf("one message more has come to port %d: %v, %v", s.Addr().Port, msg, err)
		}
	}
}

// wantOnePath checks that one path is up, as Linux 6.1 tells no generation, and that it has carried messages both ways.
func (n *rdsNode) wantOnePath() {
	n.t.Helper()
	for _, c := range n.Info(0).Connections {
		if c.Negotiated != 1 || len(c.Paths) != 1 {
			n.t.Errorf("%d paths are agreed on, and %d are there; want 1", c.Negotiated, len(c.Paths))
		}
		if p := c.Paths[0]; p.State != "up" || p.NextRX < 2 || n.counter("sent") == 0 {
			n.t.Errorf("the path is %s; %d messages were sent, and %d received", p.State, n.counter("sent"), p.NextRX-1)
		}
	}
}

// pings sends pings both ways: messages to port 0, which a node answers itself.
func (s sides) pings(t *testing.T) {
	const pings = 20
	n := s.overTCP(t)
	socket := n.bind(ourPort, 1)[0]
	ctx, cancel := n.patient()
	defer cancel()
	for range pings {
		if err := socket.SendTo(ctx, []byte("ignored"), at(s.theirs, 0)); err != nil {
			t.Fatal(err)
		}
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(msg.Data) != 0 || msg.Addr != at(s.theirs, 0) {
			t.Errorf("the answer has %d bytes and comes from %v", len(msg.Data), msg.Addr)
		}
	}
	out := s.rdspeer(t, "-p %d -A %s -c %d ping", guestPort, s.ours, pings).wait()
	if k := strings.Count(out, "pong size=0 port=0 "); k != pings {
		t.Errorf("Linux has got %d answers of the right kind to %d pings:\n%s", k, pings, out)
	}
	n.wantNone(rds.PeerViolation, rds.MessageLost)
}

// oneForAllTypes sends with types of service, all of which are one connection over TCP.
func (s sides) oneForAllTypes(t *testing.T) {
	n := s.overTCP(t)
	socket := n.bind(ourPort, 1)[0]
	s.rdspeer(t, "-p %d echo", guestPort).expect("ready")
	ctx, cancel := n.patient()
	defer cancel()
	for i, tos := range []uint8{0, 3, 255} {
		to := at(s.theirs, guestPort)
		to.TOS = tos
		b := rdsMessage(1000, uint64(i))
		if err := socket.SendTo(ctx, b, to); err != nil {
			t.Fatal(err)
		}
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if string(msg.Data) != string(b) {
			t.Errorf("with type %d, another message came back", tos)
		}
	}
	for _, tos := range []int{3, 255} {
		p := s.rdspeer(t, "-p %d -A %s -P %d -s 1000 -T %d ask", guestSends, s.ours, ourPort, tos)
		msg, err := socket.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := socket.SendTo(ctx, msg.Data, msg.Addr); err != nil {
			t.Fatal(err)
		}
		p.expect("end echoes=1")
		p.wait()
	}
	if c := n.Info(0).Connections; len(c) != 1 {
		t.Errorf("there are %d connections: %+v", len(c), c)
	}
	n.wantNone(rds.PeerViolation, rds.MessageLost)
}

// linuxCongested fills a socket of Linux's that does not read: the node learns that its
// port is congested, and when it is free again.
func (s sides) linuxCongested(t *testing.T) {
	const messages, size = 400, 1000
	n := s.overTCP(t)
	socket := n.bind(ourPort, 1)[0]
	p := s.rdspeer(t, "-p %d -b 8192 -c %d recv & echo pid=$!; wait $!", guestPort, messages)
	var pid int
	if _, err := fmt.Sscanf(p.expect("pid="), "pid=%d", &pid); err != nil {
		t.Fatal(err)
	}
	p.expect("ready")
	s.rdspeer(t, "-p %d echo", guestPort+1).expect("ready")
	theGuest.run(t, fmt.Sprintf("kill -STOP %d", pid))
	ctx, cancel := n.patient()
	defer cancel()
	flow, to := &rdsFlow{}, at(s.theirs, guestPort)
	send := func(options ...rds.SendOption) error {
		b := rdsMessage(size, flow.next)
		err := socket.SendTo(ctx, b, to, options...)
		if err == nil {
			flow.add(b)
		}
		return err
	}
	for flow.messages < messages {
		if err := send(rds.NoWait()); errors.Is(err, rds.ErrCongested) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		n.flush([]*rds.Socket{socket})
	}
	if flow.messages <= 8 || flow.messages == messages {
		t.Fatalf("of %d messages to a socket that has room for 8, %d were accepted", messages, flow.messages)
	}
	t.Logf("the port is congested after %d messages of %d bytes", flow.messages, size)
	short, over := context.WithCancel(ctx)
	over()
	if err := socket.SendTo(short, nil, to); !errors.Is(err, context.Canceled) {
		t.Errorf("a send that may wait: %v", err)
	}
	n.echoes(n.bind(ourPort+1, 1)[0], at(s.theirs, guestPort+1), 100, 1000) // another port is free
	n.wantNone(rds.Uncongested)
	theGuest.run(t, fmt.Sprintf("kill -CONT %d", pid))
	for flow.messages < messages {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
	n.until(rds.Uncongested, 1)
	p.wait()
	wantSame(t, map[rdsPair]*rdsFlow{{ourPort, guestPort}: flow}, p)
	n.wantNone(rds.PeerViolation, rds.MessageLost)
}

// linuxWaits does not read: Linux's sender learns that, and when it may go on.
func (s sides) linuxWaits(t *testing.T) {
	const messages, size = 400, 1000
	n := s.overTCP(t)
	socket := n.bind(weReceive, 1, rds.ReceiveBuffer(8192))
	p := s.rdspeer(t, "-p %d -A %s -P %d -c %d -s %d -B 20000 send", guestSends, s.ours, weReceive, messages, size)
	var sent int
	if _, err := fmt.Sscanf(p.expect("congested socket=0"), "congested socket=0 sent=%d", &sent); err != nil {
		t.Fatal(err)
	}
	if sent < 9 || sent == messages {
		t.Errorf("Linux has sent %d messages of %d bytes before it has learnt that the port is congested", sent, size)
	}
	if c := n.Info(0).Congested; len(c) != 1 || c[0] != weReceive {
		t.Errorf("congested ports of ours: %v", c)
	}
	received := n.recvNumbered(socket, messages)
	p.expect("sent messages=")
	wantSame(t, received, p)
	// Linux tells the program of the ports modulo 64 that are free again.
	if line := p.expect("update ports="); !regexp.MustCompile(fmt.Sprintf("update ports=%#x$", uint64(1)<<(weReceive%64))).MatchString(line) {
		t.Errorf("port %d is free again: %s", weReceive, line)
	}
	p.expect("uncongested socket=0")
	n.wantNone(rds.PeerViolation, rds.MessageLost)
}
