// Package server offers the test service of package service over package rnic.
// Its only function is [Serve].
//
// # Whose memory it is
//
// A client may read registered memory while the peer writes to it: some cases
// test just that. Goroutines of the RNIC place the peer's data, and nothing in
// Go would order the two. So regions are in a memory file that is mapped only
// for the RNIC. The service reads and writes them through the kernel, by file
// offset, as if a device wrote to them by DMA. A read sees what has been placed
// before it, and any part of what is placed at the same time.
//
// Receives without a region have buffers in Go memory. The service reads those
// only after the completion, which orders the accesses.
package server
