// Package rxrdma carries Rx's calls over the verbs of an RNIC: an [Endpoint] is an
// rx.Endpoint, so that a service written once runs on it as on UDP (package rxudp).
//
//	dev, err := rnic.Open(rnic.Config{})
//	e, err := rxrdma.Open(ctx, dev, rxrdma.Config{Addr: addr, Services: services})
//	conn, err := e.Dial(ctx, server, 2077, rx.DialConfig{})
//
// A connection is a queue pair. Data travels in Sends as long as a receive; a Read with
// much room offers its memory to the peer, which writes there by RDMA Write. Both are
// specified in docs/rx-rdma.md.
//
// # Memory that a peer writes to
//
// A peer can write to the slice of a Read only while that Read waits, by an STag that works
// on that connection alone. Read returns once the STag is closed, whatever has happened to
// the connection, so that nothing is written there afterwards.
//
// # The parts
//
// Package wire has the codecs, package machine the protocol without I/O. Here, link.go has
// the queue pair of a connection with its goroutine, transmit.go what is posted, call.go
// what callers and handlers see, bulk.go the memory that is written to by RDMA, and
// endpoint.go, accept.go and conn.go how connections come and go.
package rxrdma
