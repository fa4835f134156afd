package rdp_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"urnic/ulp/rdp"
	"urnic/ulp/rdp/congestion"
	"urnic/ulp/rdp/machine"
)

// Two endpoints exchange messages over UDP.
func Example() {
	ctx := context.Background()
	endpoint := func() *rdp.Endpoint {
		carrier, err := rdp.UDP(ctx, netip.MustParseAddrPort("127.0.0.1:0"))
		check(err)
		e, err := rdp.Open(ctx, rdp.Config{Carrier: carrier})
		check(err)
		return e
	}
	server, client := endpoint(), endpoint()
	defer server.Close()
	defer client.Close()

	l, err := server.Listen(rdp.ListenConfig{Port: 1200})
	check(err)
	go func() {
		c, err := l.Accept(ctx)
		check(err)
		for {
			msg, err := c.Receive(ctx)
			if err != nil {
				return // the client has closed
			}
			check(c.Send(ctx, append([]byte("you said "), msg.Data...)))
		}
	}()

	cubic, err := congestion.ByName("cubic")
	check(err)
	c, err := client.Dial(ctx, rdp.DialConfig{
		Host: server.LocalAddr(), Port: 1200,
		Params: rdp.Params{Sequenced: true, Congestion: cubic},
	})
	check(err)
	check(c.Send(ctx, []byte("hello")))
	msg, err := c.Receive(ctx)
	check(err)
	fmt.Println(string(msg.Data))
	check(c.Flush(ctx)) // the peer has accepted all
	check(c.Close())
	if _, err := c.Receive(ctx); err != nil {
		fmt.Println(err)
	}

	_, err = client.Dial(ctx, rdp.DialConfig{Host: server.LocalAddr(), Port: 1201})
	fmt.Println(errors.Is(err, machine.ErrRefused))
	// Output:
	// you said hello
	// EOF
	// true
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
