package rpcrdma_test

import (
	"context"
	"fmt"
	"log"

	"urnic/rnic"
	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
	"urnic/ulp/rpcrdma"
)

// greet is a service: its result is a greeting, which is bulk data.
type greet struct{}

func (greet) Serve(_ context.Context, x *oncrpc.Exchange, reply *xdr.Encoder) error {
	var c oncrpc.Call
	d := x.Call.Decoder()
	if err := c.Decode(d); err != nil {
		return oncrpc.ErrNoReply
	}
	name := d.String(100)
	if err := (&oncrpc.Reply{XID: c.XID}).Encode(reply); err != nil {
		return err
	}
	p := x.Bulk(8000)
	reply.Bulk(p[:copy(p, "good morning, "+name)])
	return nil
}

// A server and a client in one process, each with a device of its own.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	device := func(name string) *rnic.Device {
		dev, err := rnic.Open(rnic.Config{Name: name})
		if err != nil {
			log.Fatal(err)
		}
		return dev
	}
	server, client := device("server"), device("client")
	defer server.Close()
	defer client.Close()

	l, err := server.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- rpcrdma.Serve(ctx, l, greet{}, rpcrdma.Config{}) }()

	conn, err := rpcrdma.Dial(ctx, client, l.Addr().String(), rpcrdma.Config{})
	if err != nil {
		log.Fatal(err)
	}
	var call xdr.Encoder
	if err := (&oncrpc.Call{XID: 1, Program: 0x20000000, Version: 1, Procedure: 1}).Encode(&call); err != nil {
		log.Fatal(err)
	}
	call.String("world")
	sink := make([]byte, 8000) // the responder writes the result there
	reply, err := conn.Do(ctx, &oncrpc.Request{XID: 1, Call: &call, ReplyMost: 28, Sinks: [][]byte{sink}})
	if err != nil {
		log.Fatal(err)
	}
	d := reply.Decoder()
	var r oncrpc.Reply
	if err := r.Decode(d); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", d.Bulk(len(sink)))
	reply.Release()

	if err := conn.Close(); err != nil {
		log.Fatal(err)
	}
	cancel()
	<-over
	// Output: good morning, world
}
