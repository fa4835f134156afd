// Package mpa implements MPA, Marker PDU Aligned Framing (RFC 5044), and its
// enhanced connection set-up (RFC 6581): it turns a TCP connection, or any other
// net.Conn, into a connection that keeps the bounds of the ULPDUs that DDP sends,
// each with a CRC of its own.
//
// # Start-up
//
// The Initiator sends a Request, the Responder answers with a Reply, both plain
// octets in the TCP stream (RFC 5044 §7.1.1):
//
//	 0                         16  17   18          20
//	+-------------------------+----+---+-----------+--------------+
//	| "MPA ID Req Frame"      |MCRS|Rev| PD_Length | Private Data |
//	| "MPA ID Rep Frame"      |    |   |           |              |
//	+-------------------------+----+---+-----------+--------------+
//
// M asks for markers in what the sender of the frame will receive, C for CRCs in
// both directions, R rejects, and S says that the Private Data begins with the
// enhanced block of RFC 6581 §9: which of the peer-to-peer model's
// ready-to-receive indications (RTR) may be used, and how many RDMA Reads may be
// in progress each way (IRD and ORD):
//
//	+-+-+------------+-+-+------------+
//	|A|B| IRD        |C|D| ORD        |
//	+-+-+------------+-+-+------------+
//
// [Frame] and [Enhanced] are the codecs. [Initiate] and [Dial], which falls back
// to revision 1 for peers that know nothing else, are one side of the exchange;
// [ReceiveRequest] with [Request.Accept] and [Request.Reject] is the other. Both
// go by a [Config], whose zero value is ready for use, and end in a [Conn], whose
// [Params] say what was settled. Each phase has a time limit, and the calls end
// with their context.
//
// # Full operation
//
// From then on the stream is a row of FPDUs (RFC 5044 §4):
//
//	 0              2                 2+n       to a multiple of 4
//	+--------------+-----------------+---------+-------------+
//	| ULPDU_Length | ULPDU (n octets)| PAD     | CRC32c      |
//	+--------------+-----------------+---------+-------------+
//
// If markers were asked for, one of four octets stands in every 512 of the
// stream, wherever that falls, and points back to the beginning of its FPDU.
// [Framer] and [Deframer] are the codecs of one direction; they allocate nothing.
//
// A Conn sends what Post and Flush are given and hands what arrives to Receive's
// callback; it is the lower layer that package ddp asks for. It copies nothing
// that can be sent from where it lies. One goroutine may send while another
// receives. The Responder may not send before the Initiator has (§7.1.2 rule 4);
// Flush keeps such FPDUs until then, and [Conn.MaySend] tells.
//
// An FPDU should fit into one TCP segment, so [Conn.MULPDU] follows the segment
// size that the system reports. This package depends on no such alignment when it
// receives: TCP's order is all it needs.
//
// # Errors and the end
//
// An [*Error] has the code of RFC 5044 §8 or RFC 6581 §8 and the clause that was
// broken; [Error.TermWord] is how a Terminate says it. A [*RejectedError] has the
// Responder's private data. A [*ConfigError] is the caller's own, and costs no
// connection.
//
// CloseWrite ends one direction gracefully (§7.2), Close both, and Abort resets.
// Calls that block in full operation take no context: Close and Abort, from any
// goroutine, end them.
//
// # What is not there
//
// MPA over anything but a byte stream: there is no direct placement of TCP
// segments that arrive out of order (RFC 5044 §6 and appendix A allow it to those
// who are the TCP as well). A Responder with [Config.Revision] set to 2 refuses
// Requests of revision 1, which RFC 6581 §6 does not foresee: that is for tests.
package mpa
