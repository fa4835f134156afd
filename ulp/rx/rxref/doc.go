// Package rxref is the reference service of Rx: its operations use calls in every way that
// there is, and check what arrives. It is there for tests and for measuring.
//
// The program rxr, on OpenAFS's library, and rxrpc, on Linux's AF_RXRPC, serve and call the
// same interface: internal/test/interop/lab/rx/rxr/rxr.xg. It is service 2077, at UDP port 7077.
//
//	endpoint, err := rxudp.Open(ctx, rxudp.Config{Addr: addr, Services: []rx.Service{{ID: rxref.ID, Handler: rxref.Handler()}}})
//
//	conn, err := endpoint.Dial(ctx, server, rxref.ID, rx.DialConfig{})
//	client := rxref.NewClient(conn)
//	seen, err := client.Put(ctx, rxref.How{Length: 1 << 20})
//
// Byte i of a stream is i·31 + i/256 modulo 256, in both directions. [Checks] are calls that
// show that a client, a server and all between them work.
package rxref
