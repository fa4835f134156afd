// Package rpcpeer has two ends of RPC-over-RDMA with which the conformance tester tests the
// transport: a [Service] for servers, and [Call] for clients. They are minimal, as mutants
// of the transport are built with them. They don't serve or use files.
package rpcpeer
