// Package service is the test service: it lets another program, over a control
// connection, do with an RNIC what a conformance case needs of its target. The
// protocol is published, in docs/conform-service.md, so that makers of other
// RNICs can offer it too; nothing in it depends on Go.
//
// One TCP connection is one session. It has a device of its own, and all that it
// has opened is gone when the connection ends. The client sends a request in a
// line of JSON and waits for the answer, a line too:
//
//	{"id":1,"op":"listen","args":{"private_data":"0102"}}
//	{"id":1,"result":{"listener":1,"address":"127.0.0.1:40123"}}
//
// [Dial] returns a [Client], which has a method for each operation; [Serve] is
// the server, over package rnic.
//
// # Whose memory it is
//
// A client may read registered memory while the peer writes to it: that is what
// cases are about. The peer's data are placed by goroutines of the RNIC, and
// nothing in Go would order the two. So regions lie in a file in memory, which is
// mapped for the RNIC alone; the service reads and writes them through the
// kernel, by file offset, as it would if a device wrote to them by DMA. A read
// sees what has been placed before it, and of what is placed at the same time
// any part.
//
// Receives without a region have buffers in Go memory. Those are read after the
// completion only, which orders it.
package service
