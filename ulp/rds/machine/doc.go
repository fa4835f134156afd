// Package machine is the protocol of an RDS node without I/O: calls, segments and time go
// in; segments, deliveries, effects and the next deadline come out. It has no goroutine,
// lock, timer or socket, so a test can run it under any order of events.
//
// A [Machine] is one node. [Socket]s are bound to its ports. For each peer address, carrier
// and type of service it has a [Conn], with one [Path] or several; a path is a place for a
// connection of the carrier, which may come and go, while the sequence numbers go on.
//
// # What the owner does
//
// It calls the methods, one at a time, each with the time. After each call it carries out
// [Machine.Effects]: dial, hang up, transmit, wake who waits. It calls [Machine.Advance]
// when the time of [Machine.Deadline] has come.
//
// A carrier's connection is a [Link]. The owner announces it by [Path.Up], or by
// [Machine.Request] if the peer dialled; it passes segments in by [Path.Begin] and
// [Path.Fill], takes them out by [Path.Pull], and tells by [Path.Down] that it is lost. Calls
// for an older link of a path do nothing, so that the owner need not know which is the
// present one.
//
// # What holds
//
// A message that Send accepted is delivered once and in the order of its pair of sockets,
// across any loss of links, or an [Event] says that it is lost. An acknowledgement says that
// the message is in the queue of the destination's socket, or that there is no such socket.
//
// The [Operation] of a message is carried out before the message is delivered, and not again
// after that; or a Settled effect says that it has failed, or that its end is not known.
package machine
