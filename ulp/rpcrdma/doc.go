// Package rpcrdma carries remote procedure calls by RDMA: RPC-over-RDMA version 1 (RFC 8166),
// with the private data of RFC 8797.
//
// A call and its reply are streams of XDR (package ulp/oncrpc/xdr). Short ones travel in
// a Send behind a Header, the transport header; bulk data is taken out of the streams
// and travels by RDMA, in chunks of the requester's memory that the Header names:
//
//   - a Read chunk is bulk data of the call, which the responder fetches;
//   - a Write chunk is where the responder places bulk data of the reply;
//   - the Read chunk at position zero is a whole call that is too long for a Send,
//     and the Reply chunk is where a reply goes that is.
//
// The requester alone opens memory, for the time of one call; the responder alone
// carries out RDMA operations.
package rpcrdma
