// Package rpc is the conformance tester's own RPC-over-RDMA (RFC 8166, 8797, 8167): a
// second implementation of the RFCs, which shares no code with the stack's.
//
// A [Header] is a transport header, a [Private] the private data of start-up, a [Call]
// and a [Reply] are RPC messages. nfs.go has the part of NFS version 3 (RFC 1813) that
// cases need. All of them encode what they are given, right or wrong, and decode
// strictly. A [Requester] uses a stream of package conformance: it opens memory to the
// target, answers the target's RDMA Reads from it, places its RDMA Writes, and ends
// the case if either is outside that memory. A [Server] is the other end, for targets
// that are clients.
package rpc
