// Package loopback gives tests addresses and ports of the loopback interface that no other
// test uses, in this process or in another one.
//
// A port that a test has found free and closed again can be taken by anybody before the test
// uses it, and a fixed address by a second run of the same test. What this package gives is
// held until the test ends:
//
//	net := loopback.Of(t)
//	server, client := net.Addr(1), net.Addr(2) // 127.x.y.1 and 127.x.y.2
//	port := loopback.Port(t)                   // free at every loopback address
//
// Both are reserved by a UDP socket that nobody sends to. Only tests that use this package
// respect it, so ports are outside the range from which the kernel takes those of outgoing
// connections.
package loopback
