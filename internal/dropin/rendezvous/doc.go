// Package rendezvous connects queue pairs whose programs know nothing of connection
// management: they have told each other a queue pair number and an address by some
// way of their own, and modify their queue pairs to RTR and RTS
// (docs/rendezvous.md).
//
// A [Matchmaker] is a process's part in it. It has a port of its own, its slot, which
// the numbers of its queue pairs name; so an address and a number lead to a listener,
// and no directory is needed. The port is closed until [Matchmaker.Listen]. An
// [Endpoint] is a queue pair there. When
// its program names the peer ([Endpoint.Connect]), one of the two dials the other
// one's listener, and sends a [Message] with both numbers as private data of the MPA
// Request. The other side keeps the request until its program names a peer, and takes
// it if it has shown that it is that peer's (judge.go).
package rendezvous
