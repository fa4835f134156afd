// Package machine is one side of a connection of Rx over an RNIC without I/O: messages,
// calls and time go in; messages, events and the next deadline come out. It has no
// goroutine, lock, timer or verbs, so a test can run it under any order of events.
// docs/rx-rdma.md is the specification; its sections are named where a rule is carried out.
//
// # What the owner does
//
// It calls the methods of [Conn] and its [Call]s, one at a time, each with the time. It
// passes each message that has come to [Conn.Received]. After each call it posts again the
// receives that it was told of ([Host.Free]), reports them with [Conn.Posted], and takes
// messages out with [Conn.Pull] until there are no more, which it sends in that order. It
// calls [Conn.Advance] when the time of [Conn.Deadline] has come. When the connection has
// an error ([Conn.Err]), it sends what Pull still has, which tells the peer, and ends it.
//
// # What holds
//
// A call delivers exactly the bytes that the peer has written, in their order, or fails
// with an [*AbortError]. No more receives are held for a call than its window has. A peer
// that breaks a rule gets the connection ended, with a [*ViolationError].
package machine
