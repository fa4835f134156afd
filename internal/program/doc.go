// Package program has no code. Below it are programs on top of the stack, without their command
// lines, which are in cmd/urnic:
//
//	demo     every verb, exercised between two RNICs
//	dissect  iWARP connections in captures
//	perf     how fast RDMA goes between two programs
//	rping    the ping-pong of rdma-core
package program
