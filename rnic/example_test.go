package rnic_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"urnic/rdmap"
	"urnic/rnic"
)

// Two RNICs of one process connect over loopback: one listens, the other one
// connects.
func ExampleQP_Connect() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	// A queue pair needs a device, a protection domain and completion queues.
	open := func(name string) (*rnic.Device, *rnic.QP) {
		dev, err := rnic.Open(rnic.Config{Name: name})
		if err != nil {
			log.Fatal(err)
		}
		pd, err := dev.AllocPD()
		if err != nil {
			log.Fatal(err)
		}
		cq, err := dev.CreateCQ(rnic.CQAttr{})
		if err != nil {
			log.Fatal(err)
		}
		qp, err := pd.CreateQP(rnic.QPAttr{SendCQ: cq, RecvCQ: cq})
		if err != nil {
			log.Fatal(err)
		}
		return dev, qp
	}
	client, qp := open("client")
	defer client.Close()
	server, peer := open("server")
	defer server.Close()

	listener, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		request, err := listener.Accept(ctx)
		if err == nil {
			fmt.Printf("the client says %q\n", request.PrivateData())
			err = request.Accept(ctx, peer, rnic.ConnParam{PrivateData: []byte("welcome")})
		}
		accepted <- err
	}()
	if err := qp.Connect(ctx, listener.Addr().String(), rnic.ConnParam{PrivateData: []byte("hello")}); err != nil {
		log.Fatal(err)
	}
	if err := <-accepted; err != nil {
		log.Fatal(err)
	}
	params, _ := qp.Params()
	fmt.Printf("the server says %q\n", params.PrivateData)

	if err := qp.Disconnect(ctx); err != nil { // both sides are idle again
		log.Fatal(err)
	}
	fmt.Println(qp.State())
	// Output:
	// the client says "hello"
	// the server says "welcome"
	// Idle
}

// A Send goes into the oldest buffer that the receiver has posted.
func ExampleQP_PostSend() {
	ctx := context.Background()
	a, b := connected()
	defer a.dev.Close()
	defer b.dev.Close()

	buffer := make([]byte, 64)
	region, err := b.pd.Register(buffer, rnic.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	if err := b.qp.PostRecv(rnic.RecvWR{ID: 1, SGL: []rnic.SGE{region.SGE(0, len(buffer))}}); err != nil {
		log.Fatal(err)
	}

	// Little data travel inline: they need not be registered.
	if err := a.qp.PostSend(rnic.SendWR{ID: 2, Op: rnic.OpSend, Flags: rnic.FlagInline, Inline: []byte("message")}); err != nil {
		log.Fatal(err)
	}

	for _, side := range []*exampleSide{a, b} {
		var wc [1]rnic.WC
		if _, err := side.cq.Wait(ctx, wc[:]); err != nil {
			log.Fatal(err)
		}
		if err := wc[0].Err(); err != nil { // each completion has its own status
			log.Fatal(err)
		}
		fmt.Printf("%v %d: %d octets\n", wc[0].Op, wc[0].ID, wc[0].ByteLen)
	}
	fmt.Printf("%s\n", buffer[:7])
	// Output:
	// Send 2: 7 octets
	// Receive 1: 7 octets
	// message
}

// RDMA Write and RDMA Read use memory of the peer, who has nothing to do but to
// open it and to tell where it is.
func ExampleQP_PostSend_writeAndRead() {
	ctx := context.Background()
	a, b := connected()
	defer a.dev.Close()
	defer b.dev.Close()

	shared := []byte("the peer's memory")
	opened, err := b.pd.Register(shared, rnic.LocalWrite|rnic.RemoteWrite|rnic.RemoteRead)
	if err != nil {
		log.Fatal(err)
	}
	// A program sends this to its peer, in a Send or as private data.
	there := opened.Remote(4)

	local := []byte("PEER's")
	region, err := a.pd.Register(local, rnic.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	sgl := []rnic.SGE{region.SGE(0, len(local))}
	err = a.qp.PostSend(
		rnic.SendWR{ID: 1, Op: rnic.OpWrite, SGL: sgl, Remote: there},
		rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: sgl, Remote: opened.Remote(11)},
	)
	if err != nil {
		log.Fatal(err)
	}
	for wc, err := range a.cq.All(ctx) { // in the order in which they were posted
		if err == nil {
			err = wc.Err()
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v: %d octets\n", wc.Op, wc.ByteLen)
		if wc.ID == 2 {
			break
		}
	}
	fmt.Printf("%s\n", local)
	fmt.Printf("the peer counts %+v\n", opened.Stats())
	// Output:
	// RDMA Write: 6 octets
	// RDMA Read: 6 octets
	// memory
	// the peer counts {Accesses:2 OctetsIn:6 OctetsOut:6}
}

// A program that waits for many completion queues has them tell a channel, which
// also has a descriptor for poll or epoll.
func ExampleCompletionChannel() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, b := connected()
	defer a.dev.Close()
	defer b.dev.Close()

	if err := b.cq.Arm(rnic.NextSolicited); err != nil {
		log.Fatal(err)
	}
	if err := b.qp.PostRecv(rnic.RecvWR{ID: 1}, rnic.RecvWR{ID: 2}); err != nil {
		log.Fatal(err)
	}
	err := a.qp.PostSend(
		rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled}, // wakes nobody
		rnic.SendWR{Op: rnic.OpSend, Flags: rnic.FlagUnsignaled | rnic.FlagSolicited},
	)
	if err != nil {
		log.Fatal(err)
	}

	cq, err := b.channel.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	var wcs [8]rnic.WC
	for _, wc := range wcs[:cq.Poll(wcs[:])] {
		fmt.Println(wc.Op, wc.ID, wc.Status, wc.Solicited)
	}

	// Whatever waits ends with its context.
	ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = cq.Wait(ctx, wcs[:])
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// Receive 1 success false
	// Receive 2 success true
	// true
}

// A peer that finds something wrong ends the stream with a Terminate message.
// The program sees it in the completion of the request, in an event of the
// device, and in the error of the queue pair.
func ExampleQP_Err() {
	ctx := context.Background()
	a, b := connected()
	defer a.dev.Close()
	defer b.dev.Close()

	secret, err := b.pd.Register(make([]byte, 16), rnic.LocalWrite) // no right for peers
	if err != nil {
		log.Fatal(err)
	}
	region, err := a.pd.Register(make([]byte, 16), rnic.LocalWrite)
	if err != nil {
		log.Fatal(err)
	}
	err = a.qp.PostSend(
		rnic.SendWR{ID: 1, Op: rnic.OpRead, SGL: []rnic.SGE{region.SGE(0, 16)}, Remote: secret.Remote(0)},
		rnic.SendWR{ID: 2, Op: rnic.OpRead, SGL: []rnic.SGE{region.SGE(0, 16)}, Remote: secret.Remote(0)},
	)
	if err != nil {
		log.Fatal(err) // a mistake of this side's, which has ended nothing
	}

	event, err := a.dev.WaitEvent(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("event:", event.Type)
	for range 2 { // every request completes, this way or that
		var wc [1]rnic.WC
		if _, err := a.cq.Wait(ctx, wc[:]); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("request %d: %v\n", wc[0].ID, wc[0].Status)
	}
	if peer, ok := errors.AsType[*rdmap.PeerError](a.qp.Err()); ok {
		fmt.Println("the peer says:", peer.Terminate.Code)
	}
	fmt.Println("state:", a.qp.State())
	// Output:
	// event: Terminate message received
	// request 1: remote termination
	// request 2: flushed
	// the peer says: RDMAP: access rights violation (0x0102)
	// state: Error
}

// An exampleSide is one side of the connection that connected returns.
type exampleSide struct {
	dev     *rnic.Device
	pd      *rnic.PD
	channel *rnic.CompletionChannel
	cq      *rnic.CQ
	qp      *rnic.QP
}

// connected returns two queue pairs that are connected over loopback, as in the
// example of Connect.
func connected() (a, b *exampleSide) {
	check := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	a, b = new(exampleSide), new(exampleSide)
	for _, e := range []*exampleSide{a, b} {
		var err error
		e.dev, err = rnic.Open(rnic.Config{})
		check(err)
		e.pd, err = e.dev.AllocPD()
		check(err)
		e.channel, err = e.dev.CreateCompletionChannel()
		check(err)
		e.cq, err = e.dev.CreateCQ(rnic.CQAttr{Channel: e.channel})
		check(err)
		e.qp, err = e.pd.CreateQP(rnic.QPAttr{SendCQ: e.cq, RecvCQ: e.cq})
		check(err)
	}
	ctx := context.Background()
	listener, err := b.dev.Listen(ctx, "127.0.0.1:0")
	check(err)
	accepted := make(chan error, 1)
	go func() {
		request, err := listener.Accept(ctx)
		if err == nil {
			err = request.Accept(ctx, b.qp, rnic.ConnParam{})
		}
		accepted <- err
	}()
	check(a.qp.Connect(ctx, listener.Addr().String(), rnic.ConnParam{}))
	check(<-accepted)
	return a, b
}
