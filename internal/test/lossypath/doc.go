// Package lossypath measures RDMA Writes over a path that loses and delays packets: over RDP, and over
// the kernel's TCP. Its test takes minutes and needs Linux with /dev/net/tun, so it has a build tag of its own:
//
//	go test -tags lossypath -v ./internal/test/lossypath
//
// The path is a TUN device in a network of the test's own. A packet that leaves through it comes back
// after the delay with its addresses exchanged, or is lost. So the host at the far end is the same host:
// both ends are in one process, and have one clock. No checksum changes when addresses are exchanged.
package lossypath
