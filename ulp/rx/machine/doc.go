// Package machine is the protocol of an Rx endpoint without I/O: datagrams, calls and time
// go in; datagrams, effects and the next deadline come out. It has no goroutine, lock,
// timer or socket, so a test can run it under any order of events.
//
// A [Machine] is one UDP port. It holds the connections ([Conn]) that programs have made
// with [Machine.Dial], and those that clients have made to the services that were
// registered with [Machine.Serve]. A [Call] is one exchange on one of a connection's four
// channels: a stream to the server, then a stream back. Client and server use the same
// methods.
//
// # What the owner does
//
// It calls the methods, one at a time, each with the time. It passes each datagram to
// [Machine.Receive]. After each call it carries out [Machine.Effects], and calls
// [Machine.Pull] for datagrams to send until there are no more. It calls [Machine.Advance] at
// the time of [Machine.Deadline].
//
// The owner should pass all datagrams of one burst to Receive before it calls Pull: packets
// that arrive together are acknowledged together.
//
// # What holds
//
// A call delivers exactly the bytes that the peer has written, in their order, or fails
// with an [*AbortError]. Memory is bounded: by [Config.Window] for a call, by
// [Config.MaxConns] for connections of clients, by [Config.Memory] for all data that has
// arrived and was not read.
//
// A call is carried out at most once in the life of a server. A server that restarts during a
// call may carry it out again, as the client retransmits its request, and packets do not
// identify the life of a server.
//
// # Amplification
//
// An attacker that forges a source address makes a server send to it. The table has the bytes
// that a server sends for each byte of such a request, to an address that never answers, until
// it gives up after the dead time of 12 s. TestAmplification measures them:
//
//	version query                    3.3 (93 for 28)
//	debug query                      8.7 (312 for 36), for statistics; the others are shorter
//	abort of what can't be served    1.1 (32 for 28)
//	call that is challenged          9.1, with challenges of 4 bytes; 11.3 with those of rxkad
//	call with Service.Reach         14.4
//	call that anybody may make       191: one packet of the reply, four times, and pings
//
// [Config.Answers] bounds how many of the first three are answered. A service that is open to
// the Internet should have a security class or Service.Reach: then no program serves a call
// before its client has answered.
//
// # Where to read
//
// A datagram arrives in receive.go, and finds its connection in conn.go. call_receive.go
// processes data, acked.go acknowledgements, and congestion.go their effect on the congestion
// window. call_send.go and pull.go build what is sent. Deadlines are in call_timers.go.
// Challenges and responses are in security.go.
package machine
