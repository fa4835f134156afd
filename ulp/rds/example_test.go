package rds_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/netip"
	"time"

	"urnic/internal/test/loopback"
	"urnic/rnic"
	"urnic/ulp/rds"
)

// host returns an address of this machine; each process has its own, as the ports of RDS are
// fixed.
func host(i byte) netip.Addr { return loopback.Process().Addr(i) }

// open opens a node over TCP.
func open(addr netip.Addr, events func(rds.Event)) *rds.Node {
	node, err := rds.Open(context.Background(), rds.Config{
		Addr: addr, Transports: []rds.Transport{&rds.TCP{}}, Events: events,
	})
	if err != nil {
		log.Fatal(err)
	}
	return node
}

// Two nodes, which are programs on two hosts as a rule. Nobody connects: nodes do that
// themselves.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	server := open(host(1), nil)
	defer server.Close()
	client := open(host(2), nil)
	defer client.Close()

	echo, err := server.Bind(4000)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			msg, err := echo.Receive(ctx)
			if err != nil {
				return // the node is closed
			}
			if err := echo.SendTo(ctx, append([]byte("echo of "), msg.Data...), msg.Addr); err != nil {
				return
			}
		}
	}()

	socket, err := client.Bind(0) // any port
	if err != nil {
		log.Fatal(err)
	}
	if err := socket.SendTo(ctx, []byte("a message"), echo.Addr()); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	n, from, err := socket.RecvFrom(ctx, buf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, from port %d\n", buf[:n], from.Port)
	// Output: echo of a message, from port 4000
}

// Over iWARP, a node uses an RNIC. What is above it does not change.
func ExampleIWARP() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	var sockets []*rds.Socket
	for i := range byte(2) {
		device, err := rnic.Open(rnic.Config{})
		if err != nil {
			log.Fatal(err)
		}
		defer device.Close()
		node, err := rds.Open(ctx, rds.Config{
			Addr: host(10 + i), Transports: []rds.Transport{&rds.IWARP{Device: device}},
		})
		if err != nil {
			log.Fatal(err)
		}
		defer node.Close() // before its device
		socket, err := node.Bind(4000)
		if err != nil {
			log.Fatal(err)
		}
		sockets = append(sockets, socket)
	}
	if err := sockets[0].SendTo(ctx, []byte("over RDMA"), sockets[1].Addr()); err != nil {
		log.Fatal(err)
	}
	msg, err := sockets[1].Receive(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", msg.Data)
	// Output: over RDMA
}

// A message to a port that nobody has is dropped at the other node, which can tell. Messages
// to a node that can't be reached are lost only if the number of tries is limited.
func ExampleConfig_events() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	events := make(chan rds.Event, 100)
	tell := func(e rds.Event) {
		if e.Kind == rds.NoSocket || e.Kind == rds.MessageLost {
			events <- e // the channel has room: this must not wait
		}
	}
	node := open(host(20), tell)
	defer node.Close()
	few, err := rds.Open(ctx, rds.Config{
		Addr: host(21), Transports: []rds.Transport{&rds.TCP{}}, Attempts: 3, Events: tell,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer few.Close()
	socket, err := few.Bind(0)
	if err != nil {
		log.Fatal(err)
	}

	if err := socket.SendTo(ctx, []byte("anybody?"), rds.Addr{Host: node.Addr(), Port: 4711}); err != nil {
		log.Fatal(err)
	}
	e := <-events
	fmt.Printf("%v: port %d\n", e.Kind, e.Port)

	id, err := socket.Send(ctx, &rds.Message{Data: []byte("anybody?"), Addr: rds.Addr{Host: host(99), Port: 1}})
	if err != nil {
		log.Fatal(err) // it is accepted all the same
	}
	e = <-events
	fmt.Printf("%v: the one that was sent: %v, unreachable: %v\n", e.Kind, e.ID == id, errors.Is(e.Err, rds.ErrUnreachable))
	// Output:
	// no socket: port 4711
	// message lost: the one that was sent: true, unreachable: true
}

// A socket's unread messages stop its senders. Who does not want to wait is told.
func ExampleNoWait() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	node := open(host(30), nil)
	defer node.Close()
	busy, err := node.Bind(4000, rds.ReceiveBuffer(1000))
	if err != nil {
		log.Fatal(err)
	}
	socket, err := node.Bind(0)
	if err != nil {
		log.Fatal(err)
	}
	data := make([]byte, 600)
	for i := range 3 {
		err := socket.SendTo(ctx, data, busy.Addr(), rds.NoWait())
		fmt.Println(i, errors.Is(err, rds.ErrCongested))
	}
	for range 2 {
		if _, err := busy.Receive(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(socket.SendTo(ctx, data, busy.Addr(), rds.NoWait()))
	// Output:
	// 0 false
	// 1 false
	// 2 true
	// <nil>
}

// A program that knows net.PacketConn need not know RDS.
func ExampleSocket_ReadFrom() {
	node := open(host(40), nil)
	defer node.Close()
	a, err := node.Bind(4000)
	if err != nil {
		log.Fatal(err)
	}
	var conn net.PacketConn = a

	if _, err := conn.WriteTo([]byte("to myself"), conn.LocalAddr()); err != nil {
		log.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 100)
	n, _, err := conn.ReadFrom(buf)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", buf[:n])
	// Output: to myself
}

// A socket that is closed takes its messages along. Flush waits until the peer has them.
func ExampleSocket_Flush() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	from, to := open(host(50), nil), open(host(51), nil)
	defer from.Close()
	defer to.Close()
	receiver, err := to.Bind(4000)
	if err != nil {
		log.Fatal(err)
	}
	sender, err := from.Bind(0)
	if err != nil {
		log.Fatal(err)
	}
	if err := sender.SendTo(ctx, []byte("last words"), receiver.Addr()); err != nil {
		log.Fatal(err)
	}
	if err := sender.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	sender.Close()
	msg, err := receiver.TryReceive() // it is there
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", msg.Data)
	// Output: last words
}
