// Package rxudp is Rx over UDP: an [Endpoint] is a socket, from which calls are made and at
// which services are called. Its peers are OpenAFS, Linux's AF_RXRPC and kAFS, and itself.
//
//	e, err := rxudp.Open(ctx, rxudp.Config{Addr: netip.MustParseAddrPort("127.0.0.1:7077"), Services: services})
//	defer e.Close()
//
// The protocol is package machine, and this package runs it: it reads and writes the socket,
// keeps the time, and wakes what waits. The machine has one lock, which is not held during a
// system call. A goroutine whose call gives the machine something to send sends it, with all
// else that there is to send; one goroutine does so at a time.
//
// One goroutine at a time receives, and a short call wakes no other one while calls come fast.
// It is the caller that waits for the reply, at an endpoint without services; at one with
// services it carries out the call, if the service's handlers have been brief. It tries to
// receive for 100 µs before it waits, for as long as that pays.
//
// Where the kernel can, a system call carries many datagrams (recvmmsg, sendmmsg), and a
// datagram within the kernel many packets (UDP_SEGMENT, UDP_GRO).
package rxudp
