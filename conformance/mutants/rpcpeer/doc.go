// Package rpcpeer has two ends of RPC-over-RDMA for the conformance tester to judge the
// transport by: a [Service] for servers, and [Call] for clients. They are as small as can
// be, for mutants of the transport to be built with them, and are nobody's server or client
// of files.
package rpcpeer
