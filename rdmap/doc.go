// Package rdmap implements RDMAP, the Remote Direct Memory Access Protocol (RFC
// 5040), with the atomic operations and Immediate Data of RFC 7306.
//
// A [Stream] is one end of an RDMAP stream. Below it is a [ddp.LLP], which
// moves DDP segments; above it is its owner, usually a queue pair, which
// implements [Submitter] and [Handler]. A stream looks STags up in the
// [stag.Table] of its [Config]. It has no goroutine, no clock and no socket of
// its own:
//
//	Submitter                              Handler
//	   │ Next, Submitted, Failed              ▲ Arrived, ReceiveBuffer,
//	   ▼                                      │ Deliver, Completed, Terminated
//	Transmit ◄── Fail: a Terminate         Receive ──► stag.Table
//	   │                                      ▲
//	   └─ ddp.Source ───► ddp.LLP ───► ddp.Sink
//
// The owner calls Transmit, and the LLP's Flush, whenever there may be
// something to send, and Receive in a loop; the two may run at the same time.
// For each of its own requests, it returns an [Operation] from Next. The stream
// answers the peer's Reads and atomics by itself.
//
// The messages, with how DDP carries them (Figures 4 and 5 of RFC 5040, Figures
// 2 and 3 of RFC 7306). [Opcode] names them; the first byte that DDP reserves
// for its ULP is a [Control]:
//
//	opcode  message                      DDP       header, then ULP data
//	     0  RDMA Write                   tagged    data
//	     1  RDMA Read Request            queue 1   ReadRequest (28 bytes)
//	     2  RDMA Read Response           tagged    data
//	     3  Send                         queue 0   data
//	     4  Send with Invalidate         queue 0   data
//	     5  Send with SE                 queue 0   data
//	     6  Send with SE and Invalidate  queue 0   data
//	     7  Terminate                    queue 2   Terminate (4 to 52 bytes)
//	     8  Immediate Data               queue 0   Immediate (8 bytes)
//	     9  Immediate Data with SE       queue 0   Immediate (8 bytes)
//	    10  Atomic Request               queue 1   AtomicRequest (52 bytes)
//	    11  Atomic Response              queue 3   AtomicResponse (12 bytes)
//
// # Order
//
// Operations are sent in the order of Next, responses in the order of the
// requests. The two alternate. Deliver is called in the order in which the peer
// sent. What the peer wrote before a Send is placed when the Send is delivered.
// A Read or an atomic starts when its request is delivered, so that it sees
// what was sent before it. A later Write or Send may overtake its response,
// unless the owner waits (a fence). Completed is called in the order of the
// Reads and atomics. The owner determines when a Write or a Send is complete,
// from what the LLP has accepted.
//
// At most ORD Reads and atomics are outstanding: MayRead reports whether
// another one can begin. At most IRD are accepted from the peer; one more ends
// the stream. The slot of a request is free before its response is flushed.
//
// # Errors
//
// An error ends the stream. Receive returns an [*Error], with the [TermCode] of
// RFC 5040 Figure 9 and the clause. The owner passes it to Fail, or an error of
// its own. Transmit sends a Terminate for the first error, after the message
// that is being sent and before anything else. Then [Stream.Ended] returns
// true: nothing more is sent, and the owner closes the stream, gracefully, so
// that the Terminate arrives. The owner flushes the operations that it still
// has, and the Reads and atomics without response. A [Terminate] of the peer is
// passed to the Handler. None is sent back, and nothing behind it is accepted
// from the peer.
//
// The peer is not trusted. Lengths, STags, offsets, sequence and state are
// checked before anything is placed; a Read Response is placed only where an
// outstanding Read requested it. IRD and ORD bound all that a stream holds.
//
// # What is not supported
//
// RDMAP version 0 (RDMA Consortium) is accepted, but never sent. Immediate Data
// that arrives in several DDP segments is refused. A ready-to-receive
// indication (RFC 6581) needs an LLP that preserves the order of segments, as
// MPA does; other LLPs need no RTR. Package rnic implements fences, completion
// queues and the life of the connection.
package rdmap
