// Package rpc is the conformance tester's own RPC-over-RDMA (RFC 8166, 8797, 8167):
// a second reading of the RFCs, which shares nothing with the stack's.
//
// A [Header] is a transport header, a [Private] what start-up carries, a [Call] and a
// [Reply] what is inside; nfs.go has as much of NFS version 3 (RFC 1813) as cases
// need. All of them write down what they are given, right or wrong, and parse what
// comes strictly. A [Requester] speaks over a stream of package conformance: it lends
// memory to the target, serves the target's RDMA Reads from it, takes its RDMA
// Writes, and ends the case if either reaches beyond. A [Server] is the other end, for
// targets that are clients.
package rpc
