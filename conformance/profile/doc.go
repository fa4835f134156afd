// Package profile has the ways in which the conformance tester connects to a
// target and controls it.
//
//   - [Raw] needs only a port where an MPA Responder listens, or a target that
//     connects. It can test start-up, framing, and refusals.
//   - [Rping] plays rdma-core's rping against a target that runs rping -s or
//     rping -c, which open memory and post receives.
//   - [RPCRDMA] is for a server or client of RPC-over-RDMA. It runs only the
//     cases of RFC 8166, 8797 and 8167.
//   - [Urnic] uses the test service of package service, and can test the rest.
package profile
