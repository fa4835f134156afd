// Package mpa implements MPA, Marker PDU Aligned Framing (RFC 5044), and its
// enhanced connection set-up (RFC 6581): it turns a TCP connection, or any
// other net.Conn, into a connection that preserves the boundaries of the ULPDUs
// that DDP sends. Each ULPDU has its own CRC.
//
// # Start-up
//
// The Initiator sends a Request, and the Responder answers with a Reply. Both
// are plain bytes in the TCP stream (RFC 5044 §7.1.1):
//
//	 0                         16  17   18          20
//	+-------------------------+----+---+-----------+--------------+
//	| "MPA ID Req Frame"      |MCRS|Rev| PD_Length | Private Data |
//	| "MPA ID Rep Frame"      |    |   |           |              |
//	+-------------------------+----+---+-----------+--------------+
//
// M requests markers in what the sender of the frame will receive. C requests
// CRCs in both directions. R rejects. S says that the Private Data begins with
// the enhanced block of RFC 6581 §9. It says which ready-to-receive indications
// (RTR) of the peer-to-peer model may be used, and how many RDMA Reads may be
// outstanding in each direction (IRD and ORD):
//
//	+-+-+------------+-+-+------------+
//	|A|B| IRD        |C|D| ORD        |
//	+-+-+------------+-+-+------------+
//
// [Frame] and [Enhanced] are the codecs. [Initiate] is the Initiator's side of
// the exchange. [Dial] is too, and falls back to revision 1 for peers that
// don't support revision 2. [ReceiveRequest] with [Request.Accept] and
// [Request.Reject] is the Responder's side. Both sides take a [Config], whose
// zero value is ready for use, and return a [Conn], whose [Params] are the
// result of the negotiation. Each phase has a time limit, and the calls end
// with their context.
//
// # Full operation
//
// After start-up, the stream is a sequence of FPDUs (RFC 5044 §4):
//
//	 0              2                 2+n       to a multiple of 4
//	+--------------+-----------------+---------+-------------+
//	| ULPDU_Length | ULPDU (n bytes) | PAD     | CRC32c      |
//	+--------------+-----------------+---------+-------------+
//
// If markers were requested, there is a marker of four bytes at every 512th
// byte of the stream, wherever that falls. It points back to the beginning of
// its FPDU. [Framer] and [Deframer] are the codecs of one direction; they
// allocate nothing.
//
// A Conn is a lower layer for package ddp. Post and Flush send. Receive passes
// what arrives to a callback, which may leave a ULPDU for later. A Conn does
// not copy payload that it can send from where it is. One goroutine may send
// while another receives. The Responder may not send before the Initiator has
// (§7.1.2 rule 4): Flush holds such FPDUs back until then, and [Conn.MaySend]
// reports whether it still does.
//
// An FPDU should fit into one TCP segment, so [Conn.MULPDU] follows the segment
// size that the system reports. This package depends on no such alignment when it
// receives: TCP's order is all it needs.
//
// # Errors and the end
//
// An [*Error] has the code of RFC 5044 §8 or RFC 6581 §8 and the clause that
// was broken. [Error.TermWord] returns the code as in a Terminate. A
// [*RejectedError] has the Responder's private data. A [*ConfigError] reports a
// mistake of the caller; nothing was sent.
//
// CloseWrite ends one direction gracefully (§7.2), Close both, and Abort resets
// the connection. Calls that block in full operation take no context: Close and
// Abort, from any goroutine, end them.
//
// # What is not there
//
// MPA runs only over byte streams: TCP segments that arrive out of order are
// not placed directly (RFC 5044 §6 and appendix A allow that to implementations
// that include TCP). A Responder with [Config.Revision] set to 2 refuses
// Requests of revision 1. RFC 6581 §6 does not provide for that; it is for
// tests.
package mpa
