package rx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"

	"urnic/ulp/rx"
	"urnic/ulp/rx/rpc"
	"urnic/ulp/rx/rxudp"
)

// The interface: a service ID, and operations with their opcodes and types.
const wordsID = 4242

type text struct{ Words string }

func (t *text) XDR(x *rpc.XDR) { x.String(&t.Words, 1000) }

type size struct{ Bytes uint64 }

func (s *size) XDR(x *rpc.XDR) { x.Uint64(&s.Bytes) }

var (
	echoOp  = rpc.NewOp[text, text](1, "Echo")
	storeOp = rpc.NewOp[text, size](2, "Store") // data follows the arguments

	wordsCodes = rpc.NewCodes("words")
	errNoName  = wordsCodes.Define(7001, "WORDSNONAME", "the name is empty")
)

// wordsService serves the operations.
func wordsService() rx.Service {
	mux := rpc.NewMux("words")
	echoOp.Handle(mux, func(_ context.Context, t *text) (text, error) { return *t, nil })
	storeOp.HandleStream(mux, func(_ context.Context, name *text, data io.ReadWriter) (size, error) {
		if name.Words == "" {
			return size{}, errNoName
		}
		n, err := io.Copy(io.Discard, data)
		return size{uint64(n)}, err
	})
	return rx.Service{ID: wordsID, Handler: rx.Stream(mux.Serve)}
}

// A service with two operations, and a client that calls them. Both run on an endpoint of any
// transport.
func Example() {
	ctx := context.Background()
	loopback := netip.MustParseAddrPort("127.0.0.1:0")
	server, err := rxudp.Open(ctx, rxudp.Config{Addr: loopback, Services: []rx.Service{wordsService()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	endpoint, err := rxudp.Open(ctx, rxudp.Config{Addr: loopback})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer endpoint.Close()

	conn, err := endpoint.Dial(ctx, server.Addr(), wordsID, rx.DialConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &rpc.Client{Begin: rpc.Over(conn.Begin), Codes: wordsCodes}

	reply, err := echoOp.Call(ctx, client, &text{"hello"})
	fmt.Println(reply.Words, err)

	stream, err := storeOp.Start(ctx, client, &text{"numbers"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 1000 {
		fmt.Fprintln(stream, i)
	}
	stored, err := stream.Finish()
	fmt.Println(stored.Bytes, err)

	_, err = storeOp.Call(ctx, client, &text{})
	fmt.Println(err, errors.Is(err, errNoName))

	// Output:
	// hello <nil>
	// 3890 <nil>
	// words.Store: the name is empty (WORDSNONAME, 7001) true
}
