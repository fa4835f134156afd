// Package test has no code. Below it is what only tests use, and tests that are packages of their own:
//
//	simnet      a network in memory, on a fake clock
//	cutnet      loopback whose reads and writes are cut into pieces
//	ownnet      tests in a network of their own
//	loopback    addresses and ports that no other run of tests uses
//	leakcheck   goroutines that a test leaves behind
//	hang        tests that hang
//	selfcopy    a test's program where other users can run it
//	tshark      Wireshark as a judge of captures
//	mutants     whether a package's tests notice faults in it
//	dropintest  programs in C on the drop-in library
//	interop     Linux siw and others in a guest
//	lossypath   RDMA Writes over a path that loses packets, over RDP and TCP
package test
