// Package rdp is the Reliable Data Protocol (RFC 908, RFC 1151): reliable datagrams that keep their boundaries and that may
// be delivered in the order in which they arrive.
//
// An [Endpoint] is on a carrier: a UDP socket ([UDP]), a raw IP socket ([RawIP]), or a network in memory with faults
// ([Network]). [Endpoint.Dial] and [Endpoint.Listen] open connections, actively and passively:
//
//	e, err := rdp.Open(ctx, rdp.Config{Carrier: carrier})
//	conn, err := e.Dial(ctx, rdp.DialConfig{Host: peer, Port: 1200})
//	err = conn.Send(ctx, []byte("hello"))
//	err = conn.Flush(ctx) // until the peer has accepted all
//	err = conn.Close()
//
// Close ends a connection at once, as RFC 908 §3.2.5 has it: what the peer has not acknowledged is lost. [Conn.Status]
// reports how much that is, and [Conn.Flush] waits until it is nothing. [Conn.Wait] waits for any change of a
// connection. A byte stream with the usual semantics is package rdpstream.
//
// The protocol itself is package machine, which has no I/O; this package passes it segments and the time, and runs it in
// goroutines. An endpoint has one lock, which is not held during a system call. One goroutine receives. A goroutine whose
// call gives the machine something to send sends it, with all else that there is to send; one goroutine does so at a time
// (run.go).
package rdp
