// Package udp has UDP sockets whose system calls carry many datagrams: with recvmmsg and sendmmsg on Linux, where the
// kernel also joins datagrams of one size and takes them apart (UDP_SEGMENT, UDP_GRO). Elsewhere, a system call carries one
// datagram.
//
// An Outbox collects what is to leave. One goroutine at a time receives, and one sends; a receiver may try again and
// again for a while before it sleeps, as waking a thread takes longer than a short exchange.
package udp
