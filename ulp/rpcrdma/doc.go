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
//
// # Calls
//
// Dial returns a Conn, which is an oncrpc.Conn: Do sends a request and returns the reply. The
// request says what may be moved apart from the streams, because the upper layer's binding
// says so (RFC 8166 §6.1): the bulks of its encoder, and the Sinks for results. Whatever the
// network does, memory of a call that is over is neither read nor written: Do returns when it
// is closed.
//
//	conn, err := rpcrdma.Dial(ctx, dev, "server:20049", rpcrdma.Config{})
//	…
//	reply, err := conn.Do(ctx, &oncrpc.Request{XID: xid, Call: call, ReplyMost: 140, Sinks: [][]byte{data}})
//
// How memory is opened is a Registration. All of them open exactly the chunks of a call
// for exactly that call; the STags are of the connection's own protection domain, and
// hard to guess.
//
// # Servers
//
// A Server carries out the calls that come to listeners, by an oncrpc.Service, each in a
// goroutine of its own. What it fetches by RDMA Read lies in memory of the transport until
// the reply is sent. Bulk data of the reply is sent from where it lies: in memory from
// Exchange.Bulk, which is registered, nothing has to be done for that.
//
// A requester decides about much that a server holds: calls in flight (Config.Credits,
// which also are the receives that are posted), bytes of Read chunks (MaxMessage of a call,
// MaxPulled of a connection, MaxPulledAll), bytes of replies that it has not taken
// (MaxReplies of a connection, MaxRepliesAll), segments (Limits), connections
// (MaxConnections, PerHost of a host), and for how long (StallTimeout, Idle).
//
// # The reverse direction
//
// The side that has accepted a connection can make calls too (RFC 8167), by a Peer, which
// Config.Connected and PeerOf return. The side that has dialed carries them out by
// Config.Reverse. Each direction has its own credits, and there are no chunks.
//
// # What goes wrong
//
//   - A call ends with an *oncrpc.LostError if the connection ends first: the server may have
//     carried it out. Send it again on the next one, with its XID.
//   - It ends with a *RefusedError if the responder's transport can't carry it out: not
//     to be sent again. A responder remembers calls whose chunks have ended a connection,
//     and refuses them on the next one (RFC 8166 §4.5.3).
//   - It ends with the context's error when its caller gives up. The responder does not know,
//     and may use the memory of the call, which is closed: that ends the connection, and
//     the other calls are lost with it.
//   - A broken call is answered with an RDMA_ERROR, a broken reply is discarded. More calls
//     than were granted, an STag that is not the reply's to invalidate, and memory that
//     can't be closed end the connection.
package rpcrdma
