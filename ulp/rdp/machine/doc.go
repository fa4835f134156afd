// Package machine is the protocol of an RDP endpoint without I/O (RFC 908, RFC 1151): segments,
// calls and time go in; segments, events and the next deadline come out. It has no goroutine, lock,
// timer or socket, so a test can run it under any order of events.
//
// A [Machine] is one endpoint. It holds the connections ([Conn]) that programs open with
// [Machine.Open], and those that peers open to a [Listener], which [Machine.Listen] makes. A
// connection is named by both addresses, the peer's UDP port, the version and both RDP ports.
//
// # What the owner does
//
// It calls the methods, one at a time, each with the time. It passes each segment that the carrier delivers to
// [Machine.Receive]. After each call, or a burst of them, it calls [Machine.Pull] for segments to send until
// there are no more, and [Machine.Events]. It calls [Machine.Advance] at the time of [Machine.Deadline].
//
// The owner should pass all segments of one burst to Receive before it calls Pull: segments that arrive
// together are acknowledged together.
//
// # What a program does
//
// It sends messages with [Conn.Send] and reads them with [Conn.Receive]; an event reports when a call that
// would have blocked can continue. [Conn.Status] returns what is unacknowledged. When that is nothing, which an
// Accepted event reports, the peer has accepted all and [Conn.Close] loses nothing. Close itself does not wait
// (RFC 908 §3.2.5).
//
// To avoid copies, [Conn.SendBuffer] sends from memory of the machine, [Params.Sink] gets data where it has
// arrived, and [Machine.Free] returns the memory of messages for reuse.
//
// # What holds
//
// Each message that Send has accepted is delivered once, whole and unchanged, or the connection ends with an
// error. A sequenced connection delivers in the order of sending. Another one delivers messages as they arrive,
// with their sequence numbers, from which a layer above can restore the order: with [Params.Numbers], each
// number appears once, including those of NULs.
//
// An acknowledgement says that the peer has accepted a message, not that its program has read it. With
// [Params.AckRead] it says that the program has read it, which makes a sender wait for a slow reader.
//
// What peers can make an endpoint hold is bounded: by [Config.MaxConns], [Config.MaxHalfOpen] and
// [Config.Memory], and for each connection by [Params.Window] messages that are not read, and twice as many
// slots. An idle connection needs some 800 bytes.
//
// docs/rdp-rules.md has the rules of the RFCs, our readings of what they leave open, and the tests of each
// rule. Comments name a rule where it is carried out.
//
// # Where it differs from the pseudo-code
//
// The pseudo-code of RFC 908 p.21 to p.29 has faults that RFC 1151 corrects, and others. This package differs
// from it:
//
//   - SYN and SYN,ACK are sent again until they are acknowledged, and a repeated SYN gets the same
//     SYN,ACK. SYN,ACK for a SYN that crossed ours opens (RFC 908 §5.2).
//   - After a wrong acknowledgement in SYN-SENT, the open begins again with a new number, a few times.
//   - In SYN-RCVD, an active open looks at the acknowledgement before the window, and an RST of the peer's
//     number takes it back to SYN-SENT: what looked like the peer's SYN may be old.
//   - A NUL is a segment with a number and no data. It fills a hole and does not jump over it, and its
//     acknowledgement counts.
//   - When a hole fills, RCV.CUR advances over all that has arrived. What was received out of sequence is not
//     delivered again; a sequenced connection keeps it.
//   - CLOSE-WAIT after an RST of the peer has its timer. What was accepted before can still be read.
//   - CLOSE-WAIT after Close answers with RST, as the first one may have been lost.
//   - SND.NXT stays inside the peer's acceptance window: one number less is sent than RFC 908 §3.5 allows.
//     Acknowledgements and RSTs carry SND.NXT as their number, and would be discarded outside.
//   - Close acknowledges what was accepted before it sends the RST.
//   - The machine waits longer for a peer that answers but accepts nothing, as its program does not read, than
//     for one that is silent.
//
// # Strangers
//
// Segments for no connection are answered as RFC 908 says, [Config.Answers] times in a second, and never
// with more bytes than they have. A SYN to a listener is answered up to [Config.SYNTries] times
// with as many bytes.
//
// With [Config.Cookies], a SYN needs no state: the number of the SYN,ACK encodes all that is needed (see
// cookie.go), and the peer's first segment opens the connection. This has a price. Limits are rounded down to
// one of eight values. If the acknowledgement of a peer that only listens is lost, the connection is not open
// before the peer's first keepalive. A connection from a forged address needs a guess of only 23 bits. And if a
// peer restarts while it opens, a late segment from before the restart can redeem the earlier cookie after the
// new SYN was answered: then both ends are open with different numbers, until their tries end.
//
// With [Config.StrictReset], an attacker that does not see the segments has to guess the exact number to reset
// a connection, instead of any in the window.
//
// # Where to read
//
// A segment arrives in machine.go, at a connection in arrive.go, at a listener in listen.go. receive.go
// processes its data, acked.go its acknowledgements. send.go accepts what a program sends, pull.go builds the
// segments, and out.go has the lists of what is in flight. Deadlines are in timers.go.
package machine
