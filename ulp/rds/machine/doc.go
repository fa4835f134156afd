// Package machine is the protocol of an RDS node without I/O: calls, segments and time go
// in; segments, deliveries, effects and the next deadline come out. It has no goroutine,
// lock, timer or socket, so a test can run it under any order of events.
//
// A [Machine] is one node. [Socket]s are bound to its ports. For each peer address, carrier
// and type of service it has a [Conn], with one [Path] or several. A path has at most one
// connection of the carrier at a time. Connections may come and go, while the path's sequence
// numbers continue.
//
// # What the owner does
//
// It calls the methods, one at a time, each with the time. After each call it carries out
// [Machine.Effects]: dial, hang up, transmit, wake what waits. It calls [Machine.Advance] at
// the time of [Machine.Deadline].
//
// A carrier's connection is a [Link]. The owner announces it by [Path.Up], or by
// [Machine.Request] if the peer dialed. It passes received segments to [Path.Begin] and
// [Path.Fill], gets segments to send from [Path.Pull], and reports by [Path.Down] that the
// link is lost. Calls for an older link of a path do nothing, so the owner need not know
// which link is the current one.
//
// # What holds
//
// A message that Send accepted is delivered once and in the order of its pair of sockets,
// across any loss of links, or an [Event] says that it is lost. An acknowledgement says that
// the message is in the queue of the destination's socket, or that there is no such socket.
//
// The [Operation] of a message is carried out before the message is delivered, and not again
// after that. Otherwise a Settled effect says that it has failed, or that its result is
// unknown.
package machine
