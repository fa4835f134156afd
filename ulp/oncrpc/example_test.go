package oncrpc_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"

	"urnic/ulp/oncrpc"
	"urnic/ulp/oncrpc/xdr"
)

// A server with one procedure, which adds, and a client that calls it over TCP.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const program, version, add = 0x20000000, 1, 1
	server := oncrpc.NewServer(oncrpc.ServerConfig{})
	err := server.Register(&oncrpc.Program{Number: program, Name: "adder", Versions: []oncrpc.ProgramVersion{{
		Number: version,
		Procedures: map[uint32]oncrpc.Procedure{add: {Name: "add", Handle: func(_ context.Context, in *oncrpc.Incoming) error {
			a, b := in.Args.Int32(), in.Args.Int32()
			if err := in.Args.End(); err != nil {
				return err
			}
			in.Results.Int32(a + b)
			return nil
		}}},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- server.ServeTCP(ctx, l) }()

	client := oncrpc.NewClient(oncrpc.OverTCP(l.Addr().String(), oncrpc.TCPConfig{}), oncrpc.ClientConfig{})
	var sum int32
	err = client.Call(ctx, &oncrpc.Invocation{
		Program: program, Version: version, Procedure: add,
		Args: func(e *xdr.Encoder) {
			e.Int32(20)
			e.Int32(22)
		},
		Results: func(d *xdr.Decoder) error {
			sum = d.Int32()
			return d.End()
		},
		ResultsMost: 4,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)

	if err := errors.Join(client.Close(), server.Shutdown(ctx)); err != nil {
		log.Fatal(err)
	}
	<-over
	// Output: 42
}
