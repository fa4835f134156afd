// Package carrier has the UDP sockets of package datagram: a [Port] is what a process
// has for all its UD and UC queue pairs (docs/datagrams.md).
//
// A system call carries many datagrams, by recvmmsg and sendmmsg. Who polls a completion
// queue receives; a goroutine of the port receives only while nobody polls, as waking it
// takes longer than a short exchange.
package carrier
