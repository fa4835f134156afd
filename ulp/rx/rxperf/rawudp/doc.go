// Package rawudp measures UDP without Rx: datagrams there and back, and streams of them. It
// is what Rx over UDP is compared with.
//
//	server, err := rawudp.Listen(ctx, addr)
//	services := []rx.Service{rxperf.Service(), server.Service()}
//
//	client := rawudp.NewClient(endpoint, addr, rx.DialConfig{})
//	result, err := client.Run(ctx, rawudp.Options{Command: rxperf.Send, Duration: time.Second})
//
// It is a plain program: one system call for each datagram, and nothing is sent again. A
// stream is kept from overrunning the receiver by counts of what has come: a sender is at
// most 128 KiB ahead.
//
// # The protocol
//
// A client asks service 148 at the server's Rx endpoint, by a call without a request, for the
// UDP port (4 bytes) and a token (8). The token shows that the client has the address that it
// sends from: other datagrams get no answer, so a forged address gets none.
//
// A datagram begins with 24 bytes, big-endian:
//
//	 0 token(8)
//	 8 kind(4)    0 echo, 1 data, 2 count, 3 pull
//	12 number(4)  of data, from 1; of a count: the last number that came; of a pull: up to
//	              which number the server may send
//	16 amount(8)  of a count: bytes that came in all
//
// An echo goes back as it is. The server counts data that it receives, and reports the count
// after each 16 and whenever data requests that by an amount of 1. A pull makes the server
// send data of the length that its amount says, 16384 bytes at most, and 64 datagrams at most
// beyond those that it has sent.
package rawudp
