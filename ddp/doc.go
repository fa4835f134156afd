// Package ddp implements DDP, the Direct Data Placement Protocol (RFC 5041): it
// cuts messages into segments. Each segment says where its payload belongs, so
// that the receiver can place it there even if others are still missing.
//
// # Headers
//
// A tagged segment names memory that was advertised to its sender, by STag and
// offset (§4.2). An untagged one names a buffer of a queue, by message sequence
// number and offset (§4.3):
//
//	 0        1         2             6                           14
//	+--------+---------+-------------+---------------------------+
//	|1L....DV| RsvdULP |    STag     |            TO             |  tagged
//	+--------+---------+-------------+---------------------------+
//
//	 0        1                   6           10          14          18
//	+--------+-------------------+-----------+-----------+-----------+
//	|0L....DV|      RsvdULP      |    QN     |    MSN    |    MO     |  untagged
//	+--------+-------------------+-----------+-----------+-----------+
//
// The numbers are bytes, all fields are in network order. L marks the last
// segment of a message, DV is the version, RsvdULP is for the ULP.
// [ParseSegment] and the AppendBinary methods are the codec, which has no
// state.
//
// # Streams
//
// A [Stream] joins the two halves over an [LLP], which moves segments. Package
// mpa has an LLP over TCP, package ddptest one in memory. The [Source] of a
// stream sends a [Message], whose bytes come from a [Payload]. Its [Sink]
// validates each segment in the order of §7.1 and places it at once, in any
// order of arrival. It delivers messages once, whole, and in the sender's
// order. The ULP is a [Receiver], which knows the memory. It places tagged
// segments itself. For untagged messages it returns a [Buffer], or declines
// them for now ([ErrDeclined]): then the segment stays with the LLP, and the
// next call of Receive passes it again. A sender calls Send until the message
// is done, and the LLP's Flush. A receiver calls Receive in a loop. Neither
// allocates anything while segments arrive in order.
//
// # Errors and teardown
//
// An error of the peer is an [*Error] with the type and code of §7.2, or a
// [*SegmentError] if the ULP has found it. Both have the header and the length
// of the segment. After it, nothing more is placed or delivered, but messages
// can still be sent, so that the ULP can notify the peer. A message that can't
// be sent is a [*MessageError]. The ULP decides when a stream is torn down:
// CloseWrite is graceful and leaves the other half open, Abort is not. The one
// exception is data behind the peer's own graceful end, for which §6.2.1
// requires an abort.
//
// The calls that block (Receive, CloseWrite, the LLP's Flush) take no context:
// Close and Abort, from any goroutine, end them.
//
// # What is not there
//
// Not supported are several streams on one LLP connection, and version 0 of the
// RDMA Consortium. A message with more than 64 gaps between its segments is
// refused; no sender that conforms to §5.3 causes that. A segment that is more
// than [DefaultWindow] ahead of one that is missing is refused too.
package ddp
