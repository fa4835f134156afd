// Package profile holds the ways to get at a target of the conformance tester.
//
//   - [Raw] needs nothing but a port where an MPA Responder listens, or a target
//     that connects. It can judge start-up, framing, and what is refused.
//   - [Rping] plays rdma-core's rping against a target that runs rping -s or
//     rping -c, which open memory and post receives.
//   - [RPCRDMA] gets at a server or client of RPC-over-RDMA: the cases of RFC 8166, 8797
//     and 8167, and no others, are for it.
//   - [Urnic] uses the test service of package service, and can judge the rest.
package profile
