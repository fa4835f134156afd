// Package ddp implements DDP, the Direct Data Placement Protocol (RFC 5041): it
// cuts messages into segments each of which says where its payload belongs, so
// that the receiver can place it there whatever else is still missing.
//
// # Headers
//
// A tagged segment names memory that the peer has been told of, by STag and
// offset (§4.2); an untagged one names the next buffer of a queue, by message
// sequence number and offset (§4.3):
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
// The numbers are octets, all fields are in network order. L marks the last
// segment of a message, DV is the version, RsvdULP is the ULP's. [ParseSegment]
// and the AppendBinary methods are the codec; they keep no state.
//
// # Streams
//
// A [Stream] joins the two halves over an [LLP], which moves segments: package
// mpa has one over TCP, package ddptest one in memory. Its [Source] sends a
// [Message], whose octets come from a [Payload]. Its [Sink] checks what arrives
// in the order of §7.1, places it at once, in whatever order it comes, and
// delivers messages once, whole, and in the sender's order. The ULP is a
// [Receiver], which knows the memory: tagged placement is its own, for untagged
// messages it names a [Buffer]. Who sends calls Send until it is done, and the
// LLP's Flush; who receives calls Receive in a loop. In order, neither
// allocates anything.
//
// # Errors and teardown
//
// What the peer does wrong is an [*Error] with the type and code of §7.2, or a
// [*SegmentError] if the ULP has found it; both tell header and length of the
// segment. After it nothing is placed or delivered any more, but messages can
// still be sent, so that the ULP can tell the peer. A stream is torn down when
// the ULP says so: CloseWrite is graceful and leaves the other half open, Abort
// is not. The one exception is data behind the peer's own graceful end, upon
// which §6.2.1 wants the stream aborted.
//
// The calls that block (Receive, CloseWrite, the LLP's Flush) take no context:
// Close and Abort, which may come from any goroutine, end them.
//
// # What is not there
//
// Several streams on one LLP connection, and the version 0 of the RDMA
// Consortium. A message that comes with more than 64 gaps between its segments,
// which no sender causes that follows §5.3, is refused, and so is a segment that
// is more than [DefaultWindow] ahead of one that is missing.
package ddp
